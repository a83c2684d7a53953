"""`write_file` and `edit_file`: a file is replaced whole, and what has changed is given as a diff."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from hitherto.engine import Host
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, make_tool, printable, text_output
from hitherto.engines.tools.limits import DIFF_BYTES, TEXT_BYTES
from hitherto.engines.tools.roots import ClientRoots, Roots
from hitherto.model import Json
from hitherto.tasks import in_thread

PATH = Meta(description="Absolute, or relative to the working directory")


class WriteFile(Input, frozen=True):
    """Create a file, or replace a whole file. Missing folders are created. To change a part, use edit_file."""

    path: Annotated[str, PATH]
    content: Annotated[str, Meta(description="All of the new text")]


class EditFile(Input, frozen=True):
    """Replace a piece of text in a file.

    `old` must be in the file exactly as given, white space included and line numbers left out, and only once: give
    enough of the lines around it, or set `replace_all`. Line endings stay as they are in the file.
    """

    path: Annotated[str, PATH]
    old: Annotated[str, Meta(description="The text to be replaced")]
    new: Annotated[str, Meta(description="The text to put in its place")]
    replace_all: Annotated[bool, Meta(description="Replace it wherever it is")] = False


def write_file(roots: Roots | ClientRoots, host: Host, turn: asyncio.Lock) -> Tool:
    """Writes through the host; `turn` keeps changes apart that are asked for at the same time."""

    async def run(args: WriteFile, _: Show) -> ToolOutput:
        async with turn:
            path = await in_thread(lambda: roots.resolve(args.path))
            known, old = await _before(host, path)
            await _write(host, path, args.content)
        done = "Made" if known and old is None else "Replaced"
        return text_output(
            f"{done} {printable(path)}.", output=_diff(path, old, args.content) if known else None
        )

    return make_tool(
        WriteFile,
        run,
        name="write_file",
        kind="edit",
        title=lambda it: f"Write {it.path}",
        locations=lambda it: _place(roots, it.path),
    )


def edit_file(roots: Roots | ClientRoots, host: Host, turn: asyncio.Lock) -> Tool:
    """Reads and writes through the host; `turn` keeps changes apart that are asked for at the same time."""

    async def run(args: EditFile, _: Show) -> ToolOutput:
        async with turn:
            path = await in_thread(lambda: roots.resolve(args.path))
            text = await host.read_text(path)
            new, count = replace_text(text, args.old, args.new, everywhere=args.replace_all)
            await _write(host, path, new)
        times = f", in {count} places" if count > 1 else ""
        return text_output(f"Edited {printable(path)}{times}.", output=_diff(path, text, new))

    return make_tool(
        EditFile,
        run,
        name="edit_file",
        kind="edit",
        title=lambda it: f"Edit {it.path}",
        locations=lambda it: _place(roots, it.path),
    )


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> tuple[str, int]:
    """The text with `old` replaced, and how many times. Models know only plain line ends: both are put into those
    that the text has, the more frequent ones first if it has both kinds."""
    if not old:
        raise ValueError("`old` is empty; to create or replace a whole file, use write_file")
    if old == new:
        raise ValueError("`old` and `new` are the same")
    windows = text.count("\r\n")
    spellings = (_crlf, _lf) if 2 * windows > text.count("\n") else (_lf, _crlf)
    for spelled in spellings:
        count = text.count(spelled(old))
        if count > 1 and not everywhere:
            raise ValueError(
                f"`old` occurs {count} times; give more of the text around it, or set replace_all"
            )
        if count:
            return text.replace(spelled(old), spelled(new)), count
    raise ValueError("`old` is not in the file; read it again and give the text exactly")


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _crlf(text: str) -> str:
    return _lf(text).replace("\n", "\r\n")


async def _before(host: Host, path: str) -> tuple[bool, str | None]:
    """Whether it is known what was there, and the text if there was one."""
    try:
        return True, await host.read_text(path)
    except FileNotFoundError:
        return True, None
    except (OSError, ValueError):
        # No text, too large, or forbidden: writing says if it cannot be replaced.
        return False, None


async def _write(host: Host, path: str, text: str) -> None:
    if len(text.encode()) > TEXT_BYTES:
        raise ValueError(f"a file may have at most {TEXT_BYTES} bytes")
    await host.write_text(path, text)


def _diff(path: str, old: str | None, new: str) -> Json | None:
    """The change for programs, unless it is very large."""
    if len((old or "").encode()) + len(new.encode()) > DIFF_BYTES:
        return None
    return {"diff": {"path": path, "oldText": old, "newText": new}}


def _place(roots: Roots | ClientRoots, path: str) -> tuple[Json, ...]:
    return ({"path": roots.absolute(path)},)
