"""`hitherto export`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click

from hitherto.cli.command import command, complete_session
from hitherto.cli.options.session_ids import full_ids
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.files import new_file
from hitherto.cli.terminal.output import Advance, Output, clean_json, progress
from hitherto.errors import SessionNotFound, StoreDamaged
from hitherto.exports import FORMATS
from hitherto.limits import CHANGES_PAGE, LIST_PAGE
from hitherto.model import LOCAL, Filter
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.values.positions import BEGINNING

Write = Callable[[bytes], object]


IN_MEMORY = 16 * 1024 * 1024
PIECE = 1024 * 1024


class Exported(NamedTuple):
    """What was written, and which sessions were not, each with the reason."""

    sessions: list[str]
    lines: int
    left_out: dict[str, str]


class Form(NamedTuple):
    """The format of an export; `raw` includes secrets."""

    format: str
    raw: bool


@command(
    "hitherto export 019a8c0e -o session.jsonl",
    "hitherto export 019a8c0e --format html -o session.html",
    "hitherto export --all | gzip > sessions.jsonl.gz",
    "hitherto export 019a8c0e | ssh other hitherto import -",
    opens="read",
    picks="session_names",
)
@click.argument("session_names", metavar="[SESSION]...", nargs=-1, shell_complete=complete_session)
@click.option("--all", "everything", is_flag=True, help="Export all sessions, including archived ones.")
@click.option(
    "--format", type=click.Choice(list(FORMATS)), default="jsonl", show_default=True, help="The format."
)
@click.option("--redact", is_flag=True, help="Replace secrets, and list what was replaced.")
@click.option("--raw", is_flag=True, help="Include secrets.")
@click.option("--output", "-o", metavar="FILE", default="-", help="Write to this file instead of stdout.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session_names: tuple[str, ...],
    everything: bool,
    format: str,
    redact: bool,
    raw: bool,
    output: str,
    force: bool,
) -> int:
    """Export sessions as JSON lines or JSON, which `hitherto import` restores exactly, or as Markdown or HTML to read.

    Markdown and HTML exports replace secrets unless you give --raw. JSON lines and JSON are your own copy and keep secrets
    unless you give --redact. Files and pipes receive the stored bytes; on a terminal, control characters are written as
    JSON escapes. With --json and --output, a report is printed.

    With --all, a session that is damaged is left out and named on stderr, and the exit code is 1.
    """
    if everything == bool(session_names):
        raise click.UsageError("name the sessions to export, or use --all")
    form = _form(format, redact=redact, raw=raw)
    ids = await _every_id(sessions) if everything else await full_ids(sessions, session_names)
    if FORMATS[format].for_reading and len(ids) != 1:
        raise click.UsageError(f"--format {format} exports one session at a time, not {len(ids)}")
    export = _export_whole if everything else _export
    if output == "-":
        with _to_stdout() as write, progress("Exporting", len(ids), hidden=sys.stdout.isatty()) as advance:
            done = await export(sessions, ids, form, write, advance)
    else:
        with new_file(output, force=force) as stream, progress("Exporting", len(ids)) as advance:
            done = await export(sessions, ids, form, stream.write, advance)
        if out.json:
            left_out = [{"session": id_, "error": error} for id_, error in done.left_out.items()]
            out.document(
                {"file": output, "sessions": done.sessions, "lines": done.lines, "left_out": left_out}
            )
        else:
            out.note(f"{formats.counted(len(done.sessions), 'session')} exported to {output}")
    for session_id, error in done.left_out.items():
        out.note(f"Left out {session_id}: {error}")
    return exit_codes.FAILED if done.left_out else exit_codes.OK


def _form(format: str, *, redact: bool, raw: bool) -> Form:
    if redact and raw:
        raise click.UsageError("use either --redact or --raw, not both")
    return Form(format, raw=raw or not (redact or FORMATS[format].for_reading))


async def _export(sessions: Sessions, ids: list[str], form: Form, write: Write, advance: Advance) -> Exported:
    """Write these sessions. Raises for the first that cannot be read."""
    count = 0
    for session_id in ids:
        async for piece in sessions.transfer.export_file(LOCAL, session_id, form.format, raw=form.raw):
            write(piece)
            count += piece.count(b"\n")
        advance(1)
    return Exported(ids, count, {})


async def _export_whole(
    sessions: Sessions, ids: list[str], form: Form, write: Write, advance: Advance
) -> Exported:
    """Write those of these sessions that can be read to their end, and nothing of the others."""
    written, count, left_out = list[str](), 0, dict[str, str]()
    for session_id in ids:
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as whole:
            try:
                done = await _export(sessions, [session_id], form, whole.write, advance)
            except SessionNotFound:  # deleted since
                continue
            except StoreDamaged as error:
                left_out[session_id] = error.message
                continue
            whole.seek(0)
            while piece := whole.read(PIECE):
                write(piece)
        written.append(session_id)
        count += done.lines
    return Exported(written, count, left_out)


async def _every_id(sessions: Sessions) -> list[str]:
    """The ids of all sessions, each once; also of damaged ones, which lists leave out."""
    found: dict[str, None] = {}
    cursor: str | None = None
    while True:
        page = await sessions.find(LOCAL, Filter(archived="include"), cursor=cursor, limit=LIST_PAGE)
        found |= dict.fromkeys(session.id for session in page.sessions)
        if (cursor := page.cursor) is None:
            break
    position = BEGINNING
    while changes := await sessions.changes.since(LOCAL, after=position, limit=CHANGES_PAGE):
        found |= dict.fromkeys(change.session for change in changes if change.kind != "delete")
        position = changes[-1].position
    return list(found)


@contextmanager
def _to_stdout() -> Iterator[Write]:
    stream = sys.stdout.buffer
    if sys.stdout.isatty():
        yield lambda piece: stream.write(clean_json(piece).encode())
    else:
        yield stream.write
    stream.flush()
