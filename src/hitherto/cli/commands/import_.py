"""`hitherto import`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import IO, Any

import click
import msgspec

from hitherto.cli.command import command
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.input import lines_of
from hitherto.cli.terminal.output import Output, progress
from hitherto.errors import HithertoError
from hitherto.exports.read import begins_session
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


class Block(msgspec.Struct):
    """The lines of one session, the line number of the first, and their size in the file."""

    start: int
    lines: list[bytes]
    bytes: int = 0


@command(
    "hitherto import sessions.jsonl", "zcat sessions.jsonl.gz | hitherto import - --new-id", opens="make"
)
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--new-id", is_flag=True, help="Give each session a new id instead of the one in the file.")
@click.option(
    "--untrusted", is_flag=True, help="Import only titles, messages and times, for files from other people."
)
@click.option("--include-deleted", is_flag=True, help="Also import sessions that you deleted here.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    file: IO[bytes],
    new_id: bool,
    untrusted: bool,
    include_deleted: bool,
) -> int:
    """Import sessions from a JSON lines or JSON export. FILE is a file, or `-` for stdin.

    Each session is imported completely or not at all; if one fails, the others are still imported. Identical sessions
    that already exist are skipped. The exit code is that of the first failure.

    Everything in the file is restored, including folders, session keys and permissions. If the file is not your own, use
    --untrusted: it imports only the title, the messages and their times.

    A session that you deleted here is imported only with --include-deleted. Messages that you erased here stay erased.
    """
    code = exit_codes.OK
    with progress("Importing", _size(file)) as advance:
        async for block in blocks(lines_of(file)):
            try:
                await _import(
                    sessions,
                    out,
                    block,
                    new_id=new_id,
                    trusted=not untrusted,
                    include_deleted=include_deleted,
                )
            except HithertoError as error:
                code = code or exit_codes.exit_code(type(error))
                _print_failure(out, block, error)
            advance(block.bytes)
    return code


async def _import(
    sessions: Sessions, out: Output, block: Block, *, new_id: bool, trusted: bool, include_deleted: bool
) -> None:
    known = None
    if not new_id:
        known = await sessions.transfer.already_there(
            LOCAL, block.lines, trusted=trusted, first_line=block.start
        )
    if known is not None:
        _print_result(
            out, {"line": block.start, "skipped": known.id}, f"Skipped {known.id}: already imported"
        )
        return
    made = await sessions.import_(
        LOCAL,
        block.lines,
        new_id=new_id,
        trusted=trusted,
        first_line=block.start,
        include_deleted=include_deleted,
    )
    result = {"line": block.start, "imported": made.id, "messages": made.message_count}
    _print_result(out, result, f"Imported {made.id}: {formats.counted(made.message_count, 'message')}")


async def blocks(lines: AsyncIterator[bytes]) -> AsyncIterator[Block]:
    """The sessions of a file; each starts with its head line."""
    block: Block | None = None
    number = 0
    async for line in lines:
        number += 1
        if block is None and not line.strip():
            continue
        if block is not None and begins_session(line):
            yield block
            block = None
        block = block or Block(number, [])
        block.lines.append(line)
        block.bytes += len(line) + 1
    if block is not None:
        yield block


def _size(file: IO[bytes]) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None


def _print_result(out: Output, result: dict[str, Any], text: str) -> None:
    if out.json:
        out.document(result)
    else:
        out.line(text)


def _print_failure(out: Output, block: Block, error: HithertoError) -> None:
    where = "" if error.message.startswith("line ") else f"line {block.start}: "
    text = f"{where}{error.message} [{error.code}]"
    if out.json:
        out.document({"line": block.start, "error": {"code": error.code, "message": error.message}})
    out.note(f"hitherto: {text}")
