"""`search_files`: the lines in which a regular expression is found.

Files are found and opened here, by descriptors within the roots; a process of its own, which can be ended whatever the
pattern does, is given their bytes. A search that takes too long returns what it has found so far.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, fit_lines, make_tool, printable, text_output
from hitherto.engines.tools.limits import HITS, PATTERN_CHARS, SEARCH_SECONDS, SEARCHED_FILE_BYTES
from hitherto.engines.tools.regex_process import Matcher, MatcherEnded
from hitherto.engines.tools.roots import Roots, read_at
from hitherto.engines.tools.walk import Glob, Walk, opened_folder
from hitherto.tasks import in_thread

BATCH_BYTES = 512 * 1024
"""How much is sent at once, if no single file is larger."""


class SearchFiles(Input, frozen=True):
    """Find the lines of text files that match a regular expression (Python's syntax), as path:line:text.

    Folders such as .git, node_modules, .venv and __pycache__ are left out unless `glob` names them. At most 200 lines
    are shown.
    """

    pattern: Annotated[str, Meta(min_length=1, max_length=PATTERN_CHARS, description="Matched line by line")]
    path: Annotated[str, Meta(description="A folder, or one file")] = "."
    glob: Annotated[str, Meta(description="Only files like this, such as `*.py` or `src/**/*.ts`")] | None = (
        None
    )
    ignore_case: bool = False


class _Search:
    """One search. `stop` ends it from another thread."""

    def __init__(self, roots: Roots, args: SearchFiles) -> None:
        self._roots = roots
        self._args = args
        self._stop = threading.Event()
        self._walk = Walk(Glob(_anywhere(args.glob)), self._stop.is_set)
        self._lines = list[str]()
        self._too_large = 0
        self._matcher = Matcher(args.pattern, ignore_case=args.ignore_case)

    def stop(self) -> None:
        self._stop.set()
        self._matcher.kill()

    def close(self) -> None:
        self._matcher.close()

    def run(self) -> ToolOutput:
        ended = False
        try:
            with self._matcher as matcher:
                matcher.begin()
                for batch in _batches(self._files()):
                    self._lines += (
                        f"{printable(batch[hit.file][0])}:{hit.line}:{hit.text}"
                        for hit in matcher.match([data for _, data in batch])
                    )
                    if len(self._lines) > HITS:
                        break
        except MatcherEnded:
            ended = True
        shown = fit_lines(self._lines[:HITS])
        return text_output("\n".join((*shown, *self._notes(len(shown), ended=ended))))

    def _notes(self, shown: int, *, ended: bool) -> Iterator[str]:
        if ended:
            yield f"(stopped: a search may take {SEARCH_SECONDS:g} s; use a simpler pattern, or fewer files)"
        elif not self._lines:
            yield "(nothing found)"
        if len(self._lines) > shown:
            yield f"(only the first {shown} lines; narrow the pattern)"
        elif self._walk.cut and not ended:
            yield "(not every file was looked at: there are too many; give a path or a glob)"
        if self._too_large:
            yield f"({self._too_large} files of more than {SEARCHED_FILE_BYTES} bytes were left out)"

    def _files(self) -> Iterator[tuple[str, bytes]]:
        with self._roots.spot(self._args.path) as spot:
            state = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
            if not stat.S_ISDIR(state.st_mode):
                yield self._args.path, read_at(spot.folder, spot.name, SEARCHED_FILE_BYTES)
                return
        with opened_folder(self._roots, self._args.path) as folder:
            yield from self._files_below(folder)

    def _files_below(self, folder: int) -> Iterator[tuple[str, bytes]]:
        prefix = "" if self._args.path == "." else self._args.path.rstrip("/") + "/"
        for found in self._walk.below(folder, prefix):
            if not found.entry.is_file(follow_symlinks=False):
                continue
            try:
                yield found.path, read_at(found.folder, found.entry.name, SEARCHED_FILE_BYTES)
            except OSError as error:
                # What vanished, or may not be read, is passed over.
                self._too_large += error.errno == errno.EFBIG


def _anywhere(glob: str | None) -> str:
    """A pattern for whole paths: one without a slash is about names, in any folder."""
    if not glob:
        return "**"
    return glob if "/" in glob else f"**/{glob}"


def _batches(files: Iterator[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Files in portions, so that not each of them waits for an answer."""
    batch, size = list[tuple[str, bytes]](), 0
    for path, data in files:
        batch.append((path, data))
        size += len(data)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def search_files(roots: Roots) -> Tool:
    """Searches what is on the disk."""

    async def run(args: SearchFiles, _: Show) -> ToolOutput:
        search = _Search(roots, args)
        limit = asyncio.get_running_loop().call_later(SEARCH_SECONDS, search.stop)
        try:
            return await in_thread(search.run, search.stop)
        finally:
            limit.cancel()
            search.close()

    return make_tool(
        SearchFiles,
        run,
        name="search_files",
        kind="search",
        title=lambda it: f"Search for {it.pattern}" + (f" in {it.path}" if it.path != "." else ""),
        locations=lambda it: ({"path": roots.absolute(it.path)},),
    )
