"""This machine as the host of tools."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.engine import Finished
from hitherto.engines.tools.limits import TEXT_BYTES
from hitherto.engines.tools.processes import run_command
from hitherto.engines.tools.roots import Roots
from hitherto.tasks import in_thread


class LocalHost:
    """Reads and writes UTF-8 within the roots, and runs commands. Line ends and byte order marks are left alone."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots

    async def read_text(self, path: str) -> str:
        """The text of a regular file. Raises `OSError` (`OutsideRoots` among them), `ValueError` if it is no text."""
        data = await in_thread(lambda: self._roots.read(path, TEXT_BYTES))
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(_no_text(data)) from None
        if "\0" in text:
            raise ValueError(_no_text(data))
        return text

    async def write_text(self, path: str, text: str) -> None:
        """Replace a regular file at once, or make one and the folders it needs."""
        data = text.encode("utf-8")
        await in_thread(lambda: self._roots.replace(path, data))

    async def run(
        self, command: str, cwd: str, *, seconds: float, output_bytes: int, show: Callable[[str], None]
    ) -> Finished:
        """Run a shell command, without the variables that look like secrets; its process group ends before this."""
        begin = await in_thread(lambda: self._roots.resolve(cwd))
        return await run_command(command, begin, seconds=seconds, output_bytes=output_bytes, show=show)


def _no_text(data: bytes) -> str:
    return f"not UTF-8 text ({len(data)} bytes); use a command to read it"
