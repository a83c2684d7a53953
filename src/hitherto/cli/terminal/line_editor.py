"""Lines that somebody types. The first thread reads them and hears ^C while the conversation runs in another, so that
answers, servers and titles go on while a line is edited.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

KNOCK = signal.SIGURG
"""A signal that means nothing, and wakes the first thread."""
KNOCKS = (0.01, 0.05, 0.2, 1.0)
"""When to knock after a ^C, in seconds: it is not heard if it comes while a key is dealt with, until another comes."""


class Interrupted(Exception):
    """^C while a line was typed; `empty` if there was nothing in it yet."""

    def __init__(self, *, empty: bool) -> None:
        super().__init__()
        self.empty = empty


class _Wanted(NamedTuple):
    """A line that the conversation waits for."""

    prompt: str
    line: Future[str | None]


class Typist:
    """Whoever sits at the terminal, if somebody does."""

    def __init__(self) -> None:
        self.present = sys.stdin.isatty()
        self._editor = _line_editor() if self.present and sys.stdout.isatty() else None
        self._wanted: SimpleQueue[_Wanted | None] = SimpleQueue()
        self._stop: Callable[[], object] | None = None
        self._cancel: Callable[[], object] | None = None
        self._reading = self._interrupted = self._over = False
        self._first = threading.get_ident()
        self._signals: socket.socket

    # Asked by the conversation

    async def line(self, prompt: str) -> str | None:
        """The next line; None at the end of input. Raises `Interrupted` for ^C."""
        wanted = _Wanted(prompt, Future())
        self._wanted.put(wanted)
        return await asyncio.wrap_future(wanted.line)

    def remember(self, line: str) -> None:
        """Offer a line again to who looks for earlier ones."""
        if self._editor is not None:
            self._editor.add_history(line)

    @contextmanager
    def cancelling(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Let the first ^C call `cancel` in the event loop; the next one ends the conversation."""
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(cancel)
        try:
            yield
        finally:
            self._cancel, self._interrupted = None, False

    # Done by the first thread

    def serve(self, work: Callable[[Typist], Coroutine[Any, Any, T]]) -> T:
        """Run a conversation to its end."""
        done: Future[T] = Future()
        thread = threading.Thread(target=self._converse, args=(work, done), name="conversation", daemon=True)
        with _hearing(self._hear) as self._signals:
            thread.start()
            while (wanted := self._wanted.get()) is not None:
                self._read(wanted)
            thread.join()
        if self._over:
            raise KeyboardInterrupt
        return done.result()

    def _converse(self, work: Callable[[Typist], Coroutine[Any, Any, T]], done: Future[T]) -> None:
        async def whole() -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            if task is not None:
                self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
            loop.add_reader(self._signals, self._knock_after, loop)
            return await work(self)

        try:
            done.set_result(asyncio.run(whole()))
        except BaseException as error:  # noqa: BLE001 - it is raised in the first thread
            done.set_exception(error)
        finally:
            self._stop = None
            self._wanted.put(None)

    def _knock_after(self, loop: asyncio.AbstractEventLoop) -> None:
        if signal.SIGINT in self._signals.recv(4096):
            for seconds in KNOCKS:
                loop.call_later(seconds, self._knock)

    def _knock(self) -> None:
        if self._reading:
            signal.pthread_kill(self._first, KNOCK)

    def _read(self, wanted: _Wanted) -> None:
        if self._over or not wanted.line.set_running_or_notify_cancel():
            return
        try:
            wanted.line.set_result(self._typed(wanted.prompt))
        except Interrupted as interrupt:
            wanted.line.set_exception(interrupt)
        except (EOFError, OSError, ValueError):  # the terminal is gone
            wanted.line.set_result(None)
        finally:
            self._reading = self._interrupted = False

    def _typed(self, prompt: str) -> str | None:
        self._reading = True
        if self._interrupted:  # between two lines
            raise Interrupted(empty=True)
        line = self._line(prompt)
        self._reading = False
        return line

    def _line(self, prompt: str) -> str | None:
        if self._editor is not None:
            return input(prompt)
        if self.present:
            sys.stderr.write(prompt)
            sys.stderr.flush()
        line = sys.stdin.readline()
        return line.removesuffix("\n") if line else None

    def _hear(self, *_: object) -> None:
        """^C: it ends a line that is typed, cancels what can be cancelled; heard again, it ends the conversation."""
        if self._reading:
            raise Interrupted(empty=not (self._editor and self._editor.get_line_buffer()))
        if self._stop is None or self._over:
            raise KeyboardInterrupt
        again, self._interrupted = self._interrupted, True
        if again:
            self._over = True
            self._stop()
        elif self._cancel is not None:
            self._cancel()


def while_typing(work: Callable[[Typist], Coroutine[Any, Any, T]]) -> T:
    """Runs a command that is a conversation."""
    return Typist().serve(work)


@contextmanager
def _hearing(hear: Callable[..., None]) -> Iterator[socket.socket]:
    """Have ^C call `hear`, unless it was turned off from the start, as by nohup; each signal can be read as a byte."""
    known, calling = socket.socketpair()
    with known, calling:
        known.setblocking(False)
        calling.setblocking(False)
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else hear)
        knocked_before = signal.signal(KNOCK, lambda *_: None)
        woken_before = signal.set_wakeup_fd(calling.fileno(), warn_on_full_buffer=False)
        try:
            yield known
        finally:
            signal.set_wakeup_fd(woken_before)
            signal.signal(KNOCK, knocked_before)
            signal.signal(signal.SIGINT, before)


def _line_editor() -> ModuleType | None:
    """What edits lines and recalls earlier ones, where Python has it; a paste of several lines is one line to it."""
    try:
        import readline
    except ImportError:
        return None
    readline.set_auto_history(False)
    if "libedit" not in (readline.__doc__ or ""):
        readline.parse_and_bind("set enable-bracketed-paste on")
    return readline
