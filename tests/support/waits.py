"""Waiting in tests: for an event, within a limit that only a fault reaches, and each wait says what it is for."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import IO, Any, AnyStr, TypeVar, overload

T = TypeVar("T")

LIMIT = 240.0
"""Seconds. However busy the machine is, what is waited for comes within it, or never."""
NEVER = 10 * LIMIT
"""Seconds for a limit of the product that must not strike in a test: whoever waits is sooner."""
PAUSE = 0.01


def missed(what: str, limit: float = LIMIT) -> AssertionError:
    return AssertionError(f"waited {limit:g} s for {what}")


@contextlib.asynccontextmanager
async def within(what: str, *, limit: float = LIMIT) -> AsyncIterator[None]:
    """All that happens inside, within the limit."""
    bound = asyncio.timeout(limit)
    try:
        async with bound:
            yield
    except TimeoutError as error:
        # A timeout of the product itself is none of ours.
        if bound.expired():
            raise missed(what, limit) from error
        raise


async def arrives(awaitable: Awaitable[T], what: str, *, limit: float = LIMIT) -> T:
    """What is awaited."""
    async with within(what, limit=limit):
        return await awaitable


@overload
async def until(condition: Callable[[], Awaitable[T]], what: str, *, limit: float = LIMIT) -> T: ...


@overload
async def until(condition: Callable[[], T], what: str, *, limit: float = LIMIT) -> T: ...


async def until(condition: Callable[[], Any], what: str, *, limit: float = LIMIT) -> Any:
    """Ask again and again; returns the first answer that is true."""
    async with within(what, limit=limit):
        while True:
            answer = condition()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return answer
            await asyncio.sleep(PAUSE)


def block_until(condition: Callable[[], T], what: str, *, limit: float = LIMIT) -> T:
    """The same where there is no event loop, or where it may stand still."""
    deadline = time.monotonic() + limit
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise missed(what, limit)
        time.sleep(PAUSE)
    return answer


@contextlib.contextmanager
def in_time(what: str) -> Iterator[None]:
    """Ask inside, of a socket or the like that waits for `LIMIT` itself, which does not tell for what."""
    try:
        yield
    except TimeoutError as error:
        raise missed(what) from error


def is_set(event: threading.Event, what: str, *, limit: float = LIMIT) -> None:
    """Something that another thread says."""
    if not event.wait(limit):
        raise missed(what, limit)


def is_over(thread: threading.Thread, what: str, *, limit: float = LIMIT) -> None:
    thread.join(limit)
    if thread.is_alive():
        raise missed(what, limit)


def end_of(pipe: Path) -> IO[bytes] | None:
    """The end of a named pipe to write to, if somebody has opened the other one to read."""
    try:
        return open(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "wb")
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


@contextlib.contextmanager
def or_killed(process: subprocess.Popen[AnyStr], what: str, *, limit: float = LIMIT) -> Iterator[None]:
    """Read what a process says, inside: it is killed at the limit with all below it, which ends its pipes too."""
    reached = threading.Event()

    def strike() -> None:
        reached.set()
        kill(process)

    timer = threading.Timer(limit, strike)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        # What it did not say any more may have led to this.
        if reached.is_set():
            raise missed(what, limit) from error
        raise
    finally:
        timer.cancel()
        timer.join()
    if reached.is_set():
        raise missed(what, limit)


def line_of(
    process: subprocess.Popen[AnyStr],
    what: str,
    *,
    pipe: IO[AnyStr] | None = None,
    limit: float = LIMIT,
) -> AnyStr:
    """The next line that a process says, on its output if no other pipe is named; empty at the end of it."""
    source = pipe or process.stdout
    assert source is not None
    with or_killed(process, what, limit=limit):
        return source.readline()


def output(
    process: subprocess.Popen[AnyStr], what: str, given: AnyStr | None = None, *, limit: float = LIMIT
) -> tuple[Any, Any]:
    """What a process says from now to its end, on both pipes. Unlike `communicate` it loses nothing after `line_of`."""
    pipes = (process.stdout, process.stderr)
    said: dict[IO[AnyStr] | None, AnyStr] = {}

    def read(pipe: IO[AnyStr]) -> None:
        with pipe:
            said[pipe] = pipe.read()

    readers = [threading.Thread(target=read, args=(pipe,), daemon=True) for pipe in pipes if pipe is not None]
    with or_killed(process, what, limit=limit):
        for reader in readers:
            reader.start()
        if process.stdin is not None and not process.stdin.closed:
            _close(process.stdin, given)
        for reader in readers:
            # Until it is killed, if need be; and not for ever if somebody else has the pipe.
            is_over(reader, what, limit=2 * limit)
        process.wait()
    return said.get(pipes[0]), said.get(pipes[1])


def _close(pipe: IO[AnyStr], given: AnyStr | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        if given is not None:
            pipe.write(given)
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


def ended(process: subprocess.Popen[AnyStr], what: str, *, limit: float = LIMIT) -> int:
    """The code with which a process ends; it is killed at the limit."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired as error:
        kill(process)
        process.wait()
        raise missed(what, limit) from error


def kill(process: subprocess.Popen[AnyStr]) -> None:
    """End a process and all that it has started. One that was collected has a number no more."""
    if process.poll() is not None:
        return
    import psutil  # it looks at the machine when it is imported, which servers that are watched must not do

    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
