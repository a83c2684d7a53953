"""Lines for a conversation: edited on a terminal, or read from stdin as they come.

Reading waits in the event loop, so that answers, servers and titles continue while a line is typed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol

from hitherto.cli.terminal import input as terminal_input
from hitherto.cli.terminal.output import clean_lines

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

BACKSPACE = "\x7f"
TYPED_BYTES = 65_536


class Interrupted(Exception):
    """^C while a line was typed; `empty` if there was nothing in it yet."""

    def __init__(self, *, empty: bool) -> None:
        super().__init__()
        self.empty = empty


class _Source(Protocol):
    """Where lines come from."""

    async def read(self, prompt: str, *, kept: bool) -> str | None:
        """The next line; None at the end. Raises `Interrupted`."""

    def interrupt(self) -> None:
        """Have the `read` that waits raise `Interrupted`."""

    def remember(self, text: str) -> None:
        """Offer a text again to a user who looks for earlier ones."""

    def unseen(self) -> AbstractContextManager[None]:
        """Show nothing of what is typed, but keep it."""


class LineReader:
    """Reads the lines of one conversation, and decides what ^C means in it."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        """Whether somebody types the lines."""
        self._source: _Source = _editor() or _Stdin(prompting=self.interactive)
        self._cancel: Callable[[], object] | None = None
        self._interrupted = False
        self._rearm: Callable[[], object] = lambda: None

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Within `interrupts`: ^C interrupts a line, calls what `cancelling` was given, or else counts for the next line.
        Another one before that is done ends the command."""
        with terminal_input.cancelling(self._interrupt) as self._rearm:
            yield

    async def line(self, prompt: str, *, kept: bool = False) -> str | None:
        """The next line; None at the end of input. Raises `Interrupted` for ^C. With `kept`, the line begins with what was typed
        unseen; a question never does."""
        if self._interrupted:  # between two lines
            self._heed()
            raise Interrupted(empty=True)
        with self.cancelling(self._source.interrupt):
            try:
                return await self._source.read(prompt, kept=kept)
            except (EOFError, OSError):  # the terminal is gone
                return None

    def remember(self, text: str) -> None:
        """Offer a text again to a user who looks for earlier ones."""
        self._source.remember(text)

    def unseen(self) -> AbstractContextManager[None]:
        """Show nothing of what is typed, but keep it for the next line. ^C is heard."""
        return self._source.unseen()

    @contextmanager
    def cancelling(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Let the first ^C call `cancel` in the event loop; the next one ends the command."""
        outer, self._cancel = self._cancel, cancel
        try:
            yield
        finally:
            self._cancel = outer
            self._heed()

    def _interrupt(self) -> None:
        self._interrupted = True
        if self._cancel is not None:
            self._cancel()

    def _heed(self) -> None:
        self._interrupted = False
        self._rearm()


class _Stdin:
    """The lines of stdin. A terminal may be there, but none on which a line can be edited."""

    def __init__(self, *, prompting: bool) -> None:
        self._prompting = prompting
        self._lines = terminal_input.lines_of(sys.stdin.buffer)
        self._next: asyncio.Task[bytes | None] | None = None
        self._interrupts = asyncio.Event()

    async def read(self, prompt: str, *, kept: bool) -> str | None:  # noqa: ARG002 - the terminal keeps it
        self._write(prompt)
        self._interrupts.clear()
        if self._next is None:
            self._next = asyncio.create_task(self._read())
        interrupted = asyncio.create_task(self._interrupts.wait())
        try:
            await asyncio.wait((self._next, interrupted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            interrupted.cancel()
        if not self._next.done():  # it is the next line still
            self._write("\n")
            raise Interrupted(empty=True)
        line, self._next = self._next.result(), None
        return None if line is None else line.decode(sys.stdin.encoding, "surrogateescape").removesuffix("\r")

    def interrupt(self) -> None:
        self._interrupts.set()

    def remember(self, text: str) -> None:
        """Nobody can look for it here."""

    def unseen(self) -> AbstractContextManager[None]:
        """The terminal, if there is one, stays as it is."""
        return nullcontext()

    async def _read(self) -> bytes | None:
        return await anext(self._lines, None)

    def _write(self, text: str) -> None:
        if self._prompting:
            sys.stderr.write(text)
            sys.stderr.flush()


class _ThrownAway(Exception):
    """^C in the line editor."""


class _Editor:
    """prompt_toolkit: edits a line and recalls earlier ones; a paste of several lines is one line to it."""

    def __init__(self, session: PromptSession[str], remember: Callable[[str], None]) -> None:
        self._session, self.remember = session, remember
        self._is_unseen = False
        self._kept = ""

    async def read(self, prompt: str, *, kept: bool) -> str | None:
        if self._is_unseen:
            self._keep_typed()
        begun, self._kept = (self._kept, "") if kept else ("", self._kept)
        with _wakeup_kept():
            try:
                return await self._session.prompt_async(
                    prompt, default=begun, handle_sigint=False, set_exception_handler=False
                )
            except _ThrownAway:
                raise Interrupted(empty=not self._session.default_buffer.text) from None

    def interrupt(self) -> None:
        app = self._session.app
        if app.is_running and not app.is_done:
            app.key_processor.send_sigint()

    @contextmanager
    def unseen(self) -> Iterator[None]:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        termios.tcsetattr(terminal, termios.TCSANOW, _unseen_mode(before))
        self._is_unseen = True
        try:
            yield
        finally:
            self._is_unseen = False
            with suppress(OSError, termios.error):  # the terminal is gone
                self._keep_typed()
                termios.tcsetattr(terminal, termios.TCSANOW, before)

    def _keep_typed(self) -> None:
        """Read what was typed: it must not answer a question that was not asked yet."""
        typed = os.read(sys.stdin.fileno(), TYPED_BYTES).decode(errors="ignore")
        self._kept = _typed_text(self._kept + typed)


def _unseen_mode(mode: list[Any]) -> list[Any]:
    """No echo, reads that do not wait, and ^C that throws away nothing of what was typed."""
    input_, output, control, local, in_speed, out_speed, characters = mode
    local = local & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH
    characters = [*characters]
    characters[termios.VMIN] = characters[termios.VTIME] = 0
    return [input_, output, control, local, in_speed, out_speed, characters]


def _typed_text(typed: str) -> str:
    """The text that the keys have typed: backspace removes a character, other keys that write nothing are dropped."""
    text = ""
    for key in typed:
        text = text[:-1] if key == BACKSPACE else text + key
    return clean_lines(text).strip("\n")


def _editor() -> _Editor | None:
    """An editor, if somebody types and can see what is edited. Only then is prompt_toolkit imported: it takes time."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory
    from prompt_toolkit.output.vt100 import Vt100_Output
    from prompt_toolkit.styles import Style
    from prompt_toolkit.utils import is_dumb_terminal

    if is_dumb_terminal():
        return None

    class Remembered(InMemoryHistory):
        """Holds what it is given by `remember`, not each line: that may be the answer to a question."""

        remember = InMemoryHistory.append_string

        def append_string(self, string: str) -> None:
            """Called for each line."""

    history = Remembered()
    output = Vt100_Output.from_pty(sys.stdout)
    output.enable_cpr = False  # nothing here needs the cursor's place, and not every terminal answers
    plain = Style(
        [("aborting", "noinherit"), ("exiting", "noinherit")]
    )  # else it fills the row with grey spaces
    session = PromptSession[str](
        history=history, output=output, style=plain, enable_suspend=True, interrupt_exception=_ThrownAway
    )
    return _Editor(session, history.remember)


@contextmanager
def _wakeup_kept() -> Iterator[None]:
    """prompt_toolkit hears of a change of the window's size by the event loop, which forgets who else was to be woken."""
    woken = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
