"""Run the command `hitherto` and write down which of its modules ran: `python -m tests.project.traced_command FILE ARGUMENTS`.

At SIGUSR1, and at the end, the modules that ran since the last time go to FILE.1, FILE.2, … in the order in which they first ran.
A module runs when one of its functions is called; its import, and values that are only made, do not count. What runs by the
clock does not run here: on a machine with much else to do, it would come between each time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

import hitherto
from hitherto.__main__ import main

PACKAGE = os.path.dirname(hitherto.__file__)
SCHEDULED_SECONDS = 0.5
LOOKS_AT_THE_CLOCK = uvicorn.Server.main_loop.__code__
"""Ten times a second; all that waits for it runs on each time."""


class Trace:
    """The files of the package whose functions were called, in the order of their first call."""

    def __init__(self, file: Path) -> None:
        self._file, self._numbers = file, itertools.count(1)
        self._files: dict[str, None] = {}
        self._clock: asyncio.Task[Any] | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if frame.f_code is LOOKS_AT_THE_CLOCK:
            self._clock = _task()
        elif event == "call" and file not in self._files and _is_module(file) and not self._is_aside(frame):
            self._files[file] = None

    def _is_aside(self, frame: FrameType) -> bool:
        return _is_import(frame) or (self._clock is not None and _task() is self._clock)

    def write(self, *_: object) -> None:
        """Write down what ran, and start anew."""
        files, self._files = self._files, {}
        lines = [str(Path(file).relative_to(PACKAGE)) for file in files]
        target = Path(f"{self._file}.{next(self._numbers)}")
        part = target.with_suffix(".part")
        part.write_text("".join(f"{line}\n" for line in lines))
        part.rename(target)


def _is_module(file: str) -> bool:
    return file.startswith(PACKAGE) and file.endswith(".py")


def _is_import(frame: FrameType | None) -> bool:
    """Whether this runs because a module of the package is imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and _is_module(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _task() -> asyncio.Task[Any] | None:
    """The task that runs, if one does in this thread."""
    with contextlib.suppress(RuntimeError):
        return asyncio.current_task()
    return None


def stop_schedules() -> None:
    """Let nobody wake up who sleeps until the next time."""
    sleep = asyncio.sleep

    async def sleep_on(delay: float, result: Any = None) -> Any:
        return await (sleep(delay, result) if delay < SCHEDULED_SECONDS else asyncio.Event().wait())

    asyncio.sleep = sleep_on


def trace(file: Path, arguments: list[str]) -> None:
    """Run the command, traced."""
    stop_schedules()
    traced = Trace(file)
    signal.signal(signal.SIGUSR1, traced.write)
    threading.setprofile(traced)
    sys.setprofile(traced)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        traced.write()


if __name__ == "__main__":
    trace(Path(sys.argv[1]), sys.argv[2:])
