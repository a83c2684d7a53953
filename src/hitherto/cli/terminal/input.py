"""Input from the user: answers, text from stdin, and ^C.

Reads wait in the event loop, so that ^C takes effect at once.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

import click

from hitherto.cli.terminal.exit_codes import Declined
from hitherto.cli.terminal.output import clean
from hitherto.errors import InvalidInput, TooLarge
from hitherto.limits import ENTRY_BYTES

CHUNK = 65_536
UNHEARD_SECONDS = 5.0
"""How long an interrupted command may take to clean up before it is cancelled again."""

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


class Source(Protocol):
    """A stream that returns the bytes it has, without waiting for more."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


async def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation; raises `Declined` unless the user says yes. Without a terminal, `--yes` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("this needs confirmation, but there is no terminal: add --yes to confirm")
    answer = await ask_line(f"{clean(question)} [y/N] ")
    if answer is None or answer.strip().lower() not in ("y", "yes"):
        raise Declined("cancelled; nothing was changed")


async def ask_line(question: str) -> str | None:
    """Ask on the terminal; returns the typed line, or None at the end of input."""
    click.echo(question, nl=False, err=True)
    await _readable(sys.stdin)
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


async def read_text(argument: str | None) -> str:
    """The argument, or all of stdin without its last newline."""
    if argument is not None and argument != "-":
        return argument
    data = b""
    async for chunk in chunks(sys.stdin.buffer):
        data += chunk
        if len(data) > ENTRY_BYTES:
            raise TooLarge(f"the message is too long: at most {ENTRY_BYTES} bytes are allowed")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the message is not UTF-8: {error}") from None


async def lines_of(stream: Any) -> AsyncIterator[bytes]:
    """The lines of a stream as they come, each without its newline."""
    pending: list[bytes] = []
    async for chunk in chunks(stream):
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for other in others:
            yield b"".join(pending)
            pending = [other]
    if any(pending):
        yield b"".join(pending)


async def chunks(stream: Any) -> AsyncIterator[bytes]:
    """What a stream gives, as it comes."""
    source: Source = stream
    while True:
        await _readable(stream)
        if not (chunk := source.read1(CHUNK)):
            return
        yield chunk


async def _readable(stream: Any) -> None:
    """Return when there is something to read, or the end."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(stream, ready.set)
    except (OSError, ValueError):  # a regular file is always readable
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(stream)


@contextmanager
def bare_interrupts() -> Iterator[None]:
    """Raise ^C as `KeyboardInterrupt`, even if it cancelled the command, is wrapped in a group, or caused another error."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError:  # only ^C cancels a command
        raise KeyboardInterrupt from None
    except BaseException as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from None
        raise


def _is_interrupt(error: BaseException | None) -> bool:
    """True if the error is an interrupt, contains one, or was raised while one was handled."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def interrupts() -> Iterator[None]:
    """Let ^C end the running task.

    A waiting command is cancelled, so that it can clean up. A busy one is interrupted where it is, because it may not wait
    for a long time. If the exception is lost, for example in a finaliser, the command is cancelled after a few seconds.
    A second ^C is raised at once.
    """
    task = asyncio.current_task()
    if task is None or not _hears_interrupts():
        yield
        return
    with _woken_by_signals(), _handled(signal.SIGINT, _Interrupt(asyncio.get_running_loop(), task).hear):
        yield


class _Interrupt:
    """^C on its way to a task."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self._loop, self._task = loop, task
        self._heard = False

    def hear(self, _: int, where: FrameType | None) -> None:
        busy, self._heard = self._heard or not _is_asleep(where), True
        self._loop.call_soon_threadsafe(self._cancel_later if busy else self._task.cancel)
        if busy:
            raise KeyboardInterrupt

    def _cancel_later(self) -> None:
        self._loop.call_later(UNHEARD_SECONDS, self._task.cancel)


def _is_asleep(where: FrameType | None) -> bool:
    """True if the event loop is waiting for events."""
    return where is not None and where.f_globals.get("__name__") == "selectors"


@contextmanager
def _handled(number: signal.Signals, handler: Callable[..., object]) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _woken_by_signals() -> Iterator[None]:
    """Let signals wake the event loop, even just before it starts to wait or in another thread."""
    loop = asyncio.get_running_loop()
    hearing, calling = socket.socketpair()
    with hearing, calling:
        hearing.setblocking(False)
        calling.setblocking(False)
        loop.add_reader(hearing, hearing.recv, CHUNK)
        before = signal.set_wakeup_fd(calling.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(hearing)


@contextmanager
def cancelling(cancel: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Within `interrupts`: the first ^C calls `cancel` in the event loop; the next one interrupts again, unless the function
    that this yields was called in between."""
    if not _hears_interrupts():
        yield lambda: None
        return
    loop = asyncio.get_running_loop()

    def hear(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        loop.call_soon_threadsafe(cancel)

    def rearm() -> None:
        signal.signal(signal.SIGINT, hear)

    before = signal.getsignal(signal.SIGINT)
    with _handled(signal.SIGINT, hear):
        yield rearm


def _hears_interrupts() -> bool:
    """True in the main thread, unless ^C was disabled at the start, as nohup does."""
    first = threading.current_thread() is threading.main_thread()
    return first and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
