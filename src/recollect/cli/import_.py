"""`recollect import`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import IO, Any

import click
import msgspec

from recollect.cli import exits, wording
from recollect.cli.asking import lines_of
from recollect.cli.command import command
from recollect.cli.output import Output
from recollect.cli.progress import progress
from recollect.errors import RecollectError
from recollect.model import LOCAL, decode_json
from recollect.service import Sessions


class _Peek(msgspec.Struct):
    """What tells a session's first line from the others."""

    format: Any = None


class Block(msgspec.Struct):
    """The lines of one session, the number of the first, and how many bytes of the file they take."""

    start: int
    lines: list[bytes]
    bytes: int = 0


@command("recollect import sessions.jsonl", "zcat sessions.jsonl.gz | recollect import - --new-id")
@click.argument("file", metavar="FILE", type=click.File("rb"))
@click.option("--new-id", is_flag=True, help="Give each session a new id, so that none can be there already.")
async def run(sessions: Sessions, out: Output, *, file: IO[bytes], new_id: bool) -> int:
    """Read sessions from an export, a file or `-` for stdin.

    Each session is imported whole or not at all, and the others go on. The exit code is that of the first that failed.
    """
    code = exits.OK
    with progress("Importing", _size(file)) as advance:
        async for block in blocks(lines_of(file)):
            try:
                made = await sessions.import_session(LOCAL, block.lines, new_id=new_id)
            except RecollectError as error:
                code = code or exits.exit_code(type(error))
                _tell_failure(out, block, error)
            else:
                told = {"line": block.start, "imported": made.id, "messages": made.message_count}
                text = f"Imported {made.id}: {wording.counted(made.message_count, 'message')}"
                _tell(out, told, text)
            advance(block.bytes)
    return code


async def blocks(lines: AsyncIterator[bytes]) -> AsyncIterator[Block]:
    """The sessions of a file; each begins with its head line."""
    block: Block | None = None
    number = 0
    async for line in lines:
        number += 1
        if not line.strip():
            continue
        if block is not None and _is_head(line):
            yield block
            block = None
        block = block or Block(number, [])
        block.lines.append(line)
        block.bytes += len(line) + 1
    if block is not None:
        yield block


def _is_head(line: bytes) -> bool:
    try:
        return msgspec.json.decode(line, type=_Peek).format is not None
    except msgspec.MsgspecError:
        pass
    try:
        value = decode_json(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "format" in value


def _size(file: IO[bytes]) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None


def _tell(out: Output, told: dict[str, Any], text: str) -> None:
    if out.json:
        out.document(told)
    else:
        out.line(text)


def _tell_failure(out: Output, block: Block, error: RecollectError) -> None:
    text = f"line {block.start}: {error.message} [{error.code}]"
    if out.json:
        out.document({"line": block.start, "error": {"code": error.code, "message": error.message}})
    out.note(f"recollect: {text}")
