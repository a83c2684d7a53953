"""`hitherto blame`."""

from __future__ import annotations

import os
import re

import click

from hitherto.cli.command import command
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.source_lines import read_file
from hitherto.cli.terminal.output import Output, clean
from hitherto.edits.origins import LineOrigin, SourceLine
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, Value
from hitherto.presentation import formats
from hitherto.service import Sessions

_RANGE = re.compile(r"(.+?):(\d+)(?:-(\d*))?")


class Traced(Value, frozen=True):
    """A line of the file, with its commit (None: not committed, or no repository) and where it comes from."""

    line: int
    commit: str | None
    session: str | None
    message: str | None
    confidence: float | None


@command(
    "hitherto blame src/parser.py",
    "hitherto blame src/parser.py:40-60",
    "hitherto blame src/parser.py:42 --json",
    opens="read",
)
@click.argument("file", metavar="FILE[:FROM-TO]")
@click.option(
    "-C",
    "folder",
    metavar="FOLDER",
    default=".",
    help="The folder that FILE is in; by default the current one.",
)
async def run(sessions: Sessions, out: Output, *, file: str, folder: str) -> None:
    """Show which message of which session wrote each line of a file, and the prompt that led to it.

    The file is read as it is; in a git repository each line has its commit, unless it is not committed yet. A line that no session is
    known to have written stays unknown.

    In a pipe, each line has these tab-separated fields: line, commit, session, message, confidence, text.
    """
    name, first, last = _given(file, folder)
    file_lines = read_file(folder, name)
    if file_lines.lines and first > len(file_lines.lines):
        raise InvalidInput(f"{name!r} has only {len(file_lines.lines)} lines")
    if file_lines.unknown is not None:
        out.note(f"The commits of these lines are not known: {file_lines.unknown}")
    found = await sessions.edits.trace(LOCAL, file_lines.lines, file_lines.repository)
    wanted = [
        (line, commit, origin)
        for line, commit, origin in zip(file_lines.lines, file_lines.commits, found, strict=True)
        if first <= line.number and (last is None or line.number <= last)
    ]
    if out.json:
        out.document({"lines": [_row(*each) for each in wanted]})
    elif out.terminal:
        await _draw(sessions, out, wanted)
    else:
        for each in wanted:
            row = _row(*each)
            out.row(row.line, row.commit, row.session, row.message, row.confidence, each[0].text)


def _given(file: str, folder: str) -> tuple[str, int, int | None]:
    """The name of the file, and the lines that are wanted of it."""
    found = _RANGE.fullmatch(file)
    if found is None or os.path.lexists(os.path.join(folder, file)):
        return file, 1, None
    first = int(found[2])
    last = first if found[3] is None else int(found[3]) if found[3] else None
    if first < 1 or (last is not None and last < first):
        raise InvalidInput(f"{file!r}: lines are counted from 1, and the first comes before the last")
    return found[1], first, last


def _row(line: SourceLine, commit: str | None, origin: LineOrigin | None) -> Traced:
    if origin is None:
        return Traced(line=line.number, commit=commit, session=None, message=None, confidence=None)
    return Traced(
        line=line.number,
        commit=commit,
        session=origin.session,
        message=origin.message,
        confidence=origin.confidence,
    )


async def _draw(
    sessions: Sessions, out: Output, wanted: list[tuple[SourceLine, str | None, LineOrigin | None]]
) -> None:
    from rich.text import Text

    short = await short_ids(sessions, (origin.session for _, _, origin in wanted if origin is not None))
    width = max((len(each) for each in short.values()), default=0)
    last: LineOrigin | None = None
    for line, _, origin in wanted:
        if origin is not None and (last is None or origin.message != last.message):
            when = formats.local(origin.at)
            asked = f"  > {clean(origin.prompt)[:200]}" if origin.prompt else ""
            head = f"{short[origin.session]}  {when}  {origin.confidence:.0%}"
            out.draw(Text.assemble((clean(head), "cyan"), (asked, "bold")))
        session = "" if origin is None else short[origin.session]
        out.draw(Text.assemble((f"{clean(session):{width}}  {line.number:>5}  ", "dim"), clean(line.text)))
        last = origin
