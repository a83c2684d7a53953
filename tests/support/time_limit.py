"""A limit of time for each test, its set-up and tear-down included.

Past it the process prints what every thread and every asyncio task waits for, ends the processes that it has started,
and exits: the test counts as failed, and pytest-xdist goes on with the others in a new process. A limit that raises
an error instead would have to be heard by whoever waits, and then by the fixtures that clean up after it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import faulthandler
import gc
import os
import threading
import traceback
from collections.abc import Iterator
from types import AsyncGeneratorType, FrameType
from typing import TextIO

import psutil
import pytest

LIMIT_SECONDS = 600.0
"""Only a fault reaches it, also on a machine that has ten times more to do than it can."""
LAST_SECONDS = 60.0
"""How much later the process is ended from outside Python, if the interpreter itself stands still."""

# Before pytest begins to capture: what is printed here must be seen.
_stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", errors="replace")
atexit.register(_stderr.close)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "limit(seconds): how long this test may take at most")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.config.getoption("usepdb"):
        return (yield)
    marker = item.get_closest_marker("limit")
    seconds = float(marker.args[0]) if marker else LIMIT_SECONDS
    timer = threading.Timer(seconds, _end, (item.nodeid, seconds))
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(seconds + LAST_SECONDS, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        timer.cancel()


def _end(test: str, seconds: float) -> None:
    try:
        print(f"\n{test} took more than {seconds:g} s. It waits here:", file=_stderr)
        faulthandler.dump_traceback(_stderr, all_threads=True)
        _print_tasks(_stderr)
        _stderr.flush()
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=LAST_SECONDS / 2)
    finally:
        os._exit(1)


def _print_tasks(out: TextIO) -> None:
    for loop in [each for each in gc.get_objects() if isinstance(each, asyncio.AbstractEventLoop)]:
        for task in asyncio.all_tasks(loop):
            frames = ((frame, frame.f_lineno) for frame in _frames(task.get_coro()))
            print(f"{task.get_name()} waits here:", file=out)
            out.writelines(traceback.StackSummary.extract(frames).format())


def _frames(coroutine: object) -> Iterator[FrameType]:
    """Where a coroutine stands, and in turn what it waits for; `Task.print_stack` stops at the first of them."""
    while coroutine is not None:
        frame = _first(coroutine, "cr_frame", "ag_frame", "gi_frame")
        if isinstance(frame, FrameType):
            yield frame
        awaited = _first(coroutine, "cr_await", "ag_await", "gi_yieldfrom")
        # The step of an async generator, a fixture's for one, does not say whose step it is.
        steps = [each for each in gc.get_referents(awaited) if isinstance(each, AsyncGeneratorType)]
        coroutine = steps[0] if steps else awaited


def _first(value: object, *names: str) -> object:
    return next((found for name in names if (found := getattr(value, name, None)) is not None), None)
