"""`hitherto trace`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hitherto import __version__
from hitherto.cli.command import command
from hitherto.cli.source_lines import Change, read_changes, read_file
from hitherto.cli.terminal.output import Output
from hitherto.edits.origins import Repository
from hitherto.errors import InvalidInput
from hitherto.exports.agent_trace import trace_record
from hitherto.ids import now_ms
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.settings import read_settings


@command(
    "hitherto trace HEAD",
    "hitherto trace main..feature > traces.jsonl",
    "hitherto trace --file src/parser.py",
    opens="read",
)
@click.argument("commit", metavar="[COMMIT]", required=False)
@click.option(
    "--file", "-f", "files", metavar="FILE", multiple=True, help="All lines of this file; repeatable."
)
@click.option(
    "-C", "folder", metavar="FOLDER", default=".", help="The repository; by default the current folder."
)
async def run(
    sessions: Sessions, out: Output, *, commit: str | None, files: tuple[str, ...], folder: str
) -> None:
    """Print Agent Trace records: which lines were written in which conversation, by which model.

    Each line of the output is a record: of the lines that a commit added, one for each commit of a range (A..B), by default of HEAD;
    or, with --file, of all lines of files as HEAD has them. Lines that no session is known to have written are left out, and so is
    all that was said. Links lead to the page at HITHERTO_PAGE.
    """
    if commit is not None and files:
        raise InvalidInput("give a commit or files, not both")
    changes, repository = _files(folder, files) if files else read_changes(commit or "HEAD", folder)
    found = iter(
        await sessions.edits.trace(LOCAL, [line for each in changes for line in each.lines], repository)
    )
    page, now = read_settings().page, now_ms()
    for change in changes:
        traced = [(line, next(found)) for line in change.lines]
        out.document(trace_record(traced, revision=change.revision, tool=__version__, at=now, page=page))


def _files(folder: str, names: Sequence[str]) -> tuple[list[Change], Repository]:
    """All lines of these files, as one change."""
    read = [read_file(folder, name, committed=True) for name in names]
    return [Change([line for each in read for line in each.lines], read[0].revision)], read[0].repository
