"""`read_file`: the lines of a text, with their numbers, or an image."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from hitherto.engine import Host
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, make_tool, text_output
from hitherto.engines.tools.file_types import image_kind
from hitherto.engines.tools.limits import IMAGE_BYTES, LINE_CHARS, READ_BYTES, READ_LINES
from hitherto.engines.tools.roots import ClientRoots, Roots
from hitherto.model import Image, Json
from hitherto.tasks import in_thread


class ReadFile(Input, frozen=True):
    """Read a text file, or look at an image (PNG, JPEG, GIF, WebP).

    Each line comes with its number and a tab before it, which are no part of the file. At most 2000 lines at a time:
    go on with `offset`.
    """

    path: Annotated[str, Meta(description="Absolute, or relative to the working directory")]
    offset: Annotated[int, Meta(ge=1, description="The first line to read, counted from 1")] | None = None
    limit: Annotated[int, Meta(ge=1, le=READ_LINES, description="How many lines to read")] | None = None


def read_file(roots: Roots | ClientRoots, host: Host) -> Tool:
    """Reads through the host, so that an editor's unsaved text counts; images from the disk."""

    async def run(args: ReadFile, _: Show) -> ToolOutput:
        path = await in_thread(lambda: roots.resolve(args.path))
        image = await in_thread(lambda: _image(roots, path))
        if image is not None:
            return ToolOutput(content=(image,))
        return _page(await host.read_text(path), args.offset or 1, args.limit or READ_LINES)

    def locations(args: ReadFile) -> tuple[Json, ...]:
        line = {"line": args.offset} if args.offset else {}
        return ({"path": roots.absolute(args.path), **line},)

    return make_tool(
        ReadFile, run, name="read_file", kind="read", title=lambda it: f"Read {it.path}", locations=locations
    )


def _image(roots: Roots | ClientRoots, path: str) -> Image | None:
    """The image in a file, if it begins like one."""
    try:
        data = roots.read(path, IMAGE_BYTES)
    except OSError:
        # Not there, no file, or too large: reading it as text says so.
        return None
    kind = image_kind(data)
    return None if kind is None else Image(mime_type=kind, data=base64.b64encode(data).decode("ascii"))


def _page(text: str, first: int, count: int) -> ToolOutput:
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines and first == 1:
        return text_output("(the file is empty)")
    if first > len(lines):
        raise ValueError(f"there is no line {first}: the file has {len(lines)} lines")
    shown = list(_numbered(lines, first, count))
    last = first + len(shown) - 1
    if last < len(lines):
        shown.append(f"(lines {first} to {last} of {len(lines)}; continue with offset {last + 1})")
    return text_output("\n".join(shown))


def _numbered(lines: list[str], first: int, count: int) -> Iterator[str]:
    """Lines with their numbers, until there are enough of them; at least one."""
    left = READ_BYTES
    for number in range(first, min(first + count, len(lines) + 1)):
        line = f"{number:>6}\t{shorten(lines[number - 1].removesuffix(chr(13)))}"
        left -= len(line.encode()) + 1
        if left < 0 and number > first:
            return
        yield line


def shorten(line: str) -> str:
    """The line, or the beginning of one that is very long."""
    if len(line) <= LINE_CHARS:
        return line
    return f"{line[:LINE_CHARS]}… ({len(line) - LINE_CHARS} more characters)"
