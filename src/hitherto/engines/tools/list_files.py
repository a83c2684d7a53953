"""`list_files`: what matches a glob pattern."""

from __future__ import annotations

import heapq
import threading
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta

from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, fit_lines, make_tool, printable, text_output
from hitherto.engines.tools.limits import LISTED
from hitherto.engines.tools.roots import Roots
from hitherto.engines.tools.walk import FoundPath, Glob, Walk, opened_folder
from hitherto.tasks import in_thread

Order = Literal["name", "newest"]


class ListFiles(Input, frozen=True):
    """List files whose path matches a glob pattern, such as `*`, `src/**/*.py` or `**/*.{ts,tsx}`.

    Without `**`, folders are listed too, with a slash at the end. Folders such as .git, node_modules, .venv and
    __pycache__ are left out unless the pattern names them. At most 1000 are shown.
    """

    pattern: Annotated[str, Meta(description="Relative to `path`; `**` stands for any number of folders")] = (
        "*"
    )
    path: Annotated[str, Meta(description="The folder to look in")] = "."
    order: Annotated[Order, Meta(description="By name, or the last changed first")] = "name"


def list_files(roots: Roots) -> Tool:
    """Lists what is on the disk."""

    async def run(args: ListFiles, _: Show) -> ToolOutput:
        stop = threading.Event()
        return await in_thread(lambda: _listed(roots, args, stop), stop.set)

    return make_tool(
        ListFiles,
        run,
        name="list_files",
        kind="search",
        title=lambda it: f"List {it.pattern}" + ("" if it.path == "." else f" in {it.path}"),
        locations=lambda it: ({"path": roots.absolute(it.path)},),
    )


def _listed(roots: Roots, args: ListFiles, stop: threading.Event) -> ToolOutput:
    glob = Glob(args.pattern)
    walk = Walk(glob, stop.is_set)
    shown = list[tuple[float, str]]()
    more = 0
    with opened_folder(roots, args.path) as folder:
        for found in walk.below(folder):
            line = _line(found, folders=not glob.deep)
            if line is None:
                continue
            heapq.heappush(shown, (_rank(found, args.order, -len(shown) - more), line))
            if len(shown) > LISTED:
                heapq.heappop(shown)
                more += 1
    lines = fit_lines([line for _, line in sorted(shown, reverse=True)])
    return text_output("\n".join(_render(lines, more + len(shown) - len(lines), cut=walk.cut)))


def _render(lines: list[str], more: int, *, cut: bool) -> list[str]:
    if not lines:
        lines.append("(nothing matches)")
    if more:
        lines.append(f"({more} more; narrow the pattern)")
    if cut:
        lines.append("(not everything was looked at: there is too much; narrow the pattern)")
    return lines


def _line(found: FoundPath, *, folders: bool) -> str | None:
    """How it is shown; None for a folder where only files are asked for."""
    is_folder = found.entry.is_dir(follow_symlinks=False)
    if is_folder and not folders:
        return None
    return printable(found.path) + ("/" if is_folder else "")


def _rank(found: FoundPath, order: Order, place: float) -> float:
    """What is shown first ranks highest; what has no time any more goes by its place, which is last."""
    if order == "newest":
        with suppress(OSError):
            return found.entry.stat(follow_symlinks=False).st_mtime
    return place
