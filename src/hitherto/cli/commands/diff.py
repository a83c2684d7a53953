"""`hitherto diff`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.options.values import no_pager_option
from hitherto.cli.terminal.output import Output, clean
from hitherto.edits.changes import FileChange, FileEdit, SessionChanges
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions

STYLES = {"+": "green", "-": "red", "@": "cyan", "d": "bold"}


@command(
    "hitherto diff 019a8c0e",
    "hitherto diff 019a8c0e --patch",
    "hitherto diff 019a8c0e --file src/parser.py --patch",
    opens="read",
)
@session_argument
@click.option("--file", "-f", metavar="FILE", help="Only files whose path ends with this.")
@click.option(
    "--patch", "-p", is_flag=True, help="Show the changed lines in a pipe too, each hunk with its message."
)
@click.option("--stat", is_flag=True, help="Show only the files and how many lines changed in each.")
@no_pager_option
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str,
    file: str | None,
    patch: bool,
    stat: bool,
    no_pager: bool,
) -> None:
    """Show what a session changed: its files, with the lines it added and removed from its first edit to its last. What its
    subagents changed is included.

    On a terminal, and with --patch, the changed lines are shown, and with each hunk the message that made it. Edits that failed, or that the session undid, are marked.

    In a pipe, each line has these tab-separated fields: path, lines added, lines removed, number of edits.
    """
    found = await sessions.edits.changes(LOCAL, await named_session(sessions, session), file=file)
    if out.json:
        out.document(found)
        return
    if not found.files:
        out.note("This session changed no such file." if file else "This session changed no files.")
    if patch or (out.terminal and not stat):
        with out.paged(wanted=not no_pager):
            for line in (line for each in found.files for line in patch_lines(each)):
                _print(out, line)
            if out.terminal and found.files:
                out.note(_summary(found))
    elif out.terminal:
        rows = [
            (f"+{each.added}", f"−{each.removed}", str(len(each.edits)), each.path) for each in found.files
        ]
        out.table(("ADDED", "REMOVED", "EDITS", "FILE"), rows)
        out.note(_summary(found))
    else:
        for each in found.files:
            out.row(each.path, each.added, each.removed, len(each.edits))


def _summary(found: SessionChanges) -> str:
    return f"+{found.added} −{found.removed} · {formats.counted(len(found.files), 'file')}"


def patch_lines(file: FileChange) -> Iterator[str]:
    """The edits of a file, as lines of a patch to be read."""
    yield f"diff {clean(file.path)}"
    for edit in file.edits:
        yield f"@@ {clean(edit.message)} {formats.utc(edit.at)}{_remarks(edit)} @@"
        for at, hunk in enumerate(edit.hunks):
            if at:
                yield "@@"
            yield from (f"-{clean(line)}" for line in hunk.removed)
            yield from (f"+{clean(line)}" for line in hunk.added)


def _remarks(edit: FileEdit) -> str:
    known = (
        ("moved to " + clean(edit.to or ""), edit.kind == "move"),
        ("deleted", edit.kind == "delete"),
        ("whole file", edit.kind == "write"),
        ("failed", edit.failed),
        ("undone", edit.undone),
        ("lines unknown", edit.kind == "edit" and not edit.hunks),
    )
    return "".join(f" · {remark}" for remark, holds in known if holds)


def _print(out: Output, line: str) -> None:
    if not out.terminal:
        out.line(line)
        return
    from rich.text import Text

    out.draw(Text(line, style=STYLES.get(line[:1], "")))
