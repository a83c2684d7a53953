"""`recollect export`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from recollect.cli import wording
from recollect.cli.command import command, complete_session
from recollect.cli.files import new_file
from recollect.cli.naming import full_ids
from recollect.cli.output import Output, clean_json
from recollect.cli.progress import Advance, progress
from recollect.limits import LIST_PAGE
from recollect.model import LOCAL, Filter
from recollect.service import Sessions

Write = Callable[[bytes], object]


@command(
    "recollect export 019a8c0e -o session.jsonl",
    "recollect export --all | gzip > sessions.jsonl.gz",
    "recollect export 019a8c0e | ssh other recollect import -",
)
@click.argument("named", metavar="[SESSION]...", nargs=-1, shell_complete=complete_session)
@click.option("--all", "everything", is_flag=True, help="All sessions, archived ones too.")
@click.option("--output", "-o", metavar="FILE", default="-", help="Write to this file instead of stdout.")
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
async def run(
    sessions: Sessions, out: Output, *, named: tuple[str, ...], everything: bool, output: str, force: bool
) -> None:
    """Write sessions as JSON lines, which `recollect import` reads back exactly.

    Files and pipes get the stored bytes. On a terminal, control characters are written as JSON escapes. With --json a
    report is printed when the export goes to a file.
    """
    if everything == bool(named):
        raise click.UsageError("name the sessions to export, or give --all")
    ids = await _every_id(sessions) if everything else await full_ids(sessions, named)
    if output == "-":
        with _to_stdout() as write, progress("Exporting", len(ids), hidden=sys.stdout.isatty()) as advance:
            await _export(sessions, ids, write, advance)
        return
    with new_file(output, force=force) as stream, progress("Exporting", len(ids)) as advance:
        lines = await _export(sessions, ids, stream.write, advance)
    if out.json:
        out.document({"file": output, "sessions": ids, "lines": lines})
    else:
        out.note(f"{wording.counted(len(ids), 'session')} in {output}")


async def _export(sessions: Sessions, ids: list[str], write: Write, advance: Advance) -> int:
    """Write the lines of these sessions; returns how many."""
    count = 0
    for session_id in ids:
        async for line in sessions.export(LOCAL, session_id):
            write(line + b"\n")
            count += 1
        advance(1)
    return count


async def _every_id(sessions: Sessions) -> list[str]:
    """The ids of all sessions, each once."""
    found: dict[str, None] = {}
    cursor: str | None = None
    while True:
        page = await sessions.find(LOCAL, Filter(archived="include"), cursor=cursor, limit=LIST_PAGE)
        found |= dict.fromkeys(session.id for session in page.sessions)
        if (cursor := page.cursor) is None:
            return list(found)


@contextmanager
def _to_stdout() -> Iterator[Write]:
    stream = sys.stdout.buffer
    if sys.stdout.isatty():
        yield lambda line: stream.write(clean_json(line.rstrip(b"\n")).encode() + b"\n")
    else:
        yield stream.write
    stream.flush()
