"""A chat in the terminal: turns in one session, or in several, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Self

from hitherto.cli.options.turn import TurnOptions
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.entries import MARK_STYLE, Styled, write
from hitherto.cli.terminal.line_reader import Interrupted, LineReader
from hitherto.cli.terminal.output import Output, clean, clean_lines
from hitherto.cli.turns import prompt as prompts
from hitherto.cli.turns.display import Screen, UpdatePrinter
from hitherto.cli.turns.permission import asking
from hitherto.engine import Choices, Context, Engine
from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.service.turns.open_session import OpenSession
from hitherto.updates import Outcome, Update


class ChatSession:
    """The session is created by the first prompt, so that leaving before it stores nothing."""

    def __init__(
        self, sessions: Sessions, out: Output, lines: LineReader, options: TurnOptions, engine: Engine
    ) -> None:
        self.sessions, self.out, self.lines, self.options, self.engine = sessions, out, lines, options, engine
        self.choices: Choices = options.choices
        self.session: Session | None = None
        self.title: str | None = None
        self.context: Context | None = None
        self.over = False
        self._opened: OpenSession | None = None
        self._opening = AsyncExitStack()
        self._screen = Screen(out)
        self._printer = UpdatePrinter(self._screen)
        self._deferred: list[Update] | None = None
        self._runs = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._opening.aclose()

    async def line(self, prompt: str, *, kept: bool = False) -> str | None:
        """The next typed line, with `kept` after what was typed during the last turn; notices that arrive meanwhile are shown
        afterwards."""
        self._deferred = []
        try:
            return await self.lines.line(prompt, kept=kept)
        finally:
            deferred, self._deferred = self._deferred, None
            for update in deferred:
                self._show(update)

    def aside(self, text: str, style: str = "dim") -> None:
        """Print a line of the program itself."""
        if self.out.terminal:
            write(self.out, Styled(clean(text), style))
        else:
            self.out.note(text)

    async def turn(self, text: str) -> int:
        """Run a prompt; returns its exit code."""
        prompts.prompt_text(text)
        self.lines.remember(clean_lines(text))
        with self._working():
            # All of it: ^C may come when the session was just opened and the turn has not begun.
            outcome = await prompts.cancellable(self._run(text), self.lines.cancelling)
        return self._report_outcome(outcome or prompts.NOTHING)

    async def _run(self, text: str) -> Outcome:
        opened = await self._open()
        ask = asking(self._answer, self._question) if self.lines.interactive else None
        return await prompts.run_prompt(opened, text, self.choices, ask, self._show, self.lines.cancelling)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While a turn runs, a sign on the terminal says so, and typing is hidden."""
        with self.lines.unseen():
            self._runs = True
            self._show_sign()
            try:
                yield
            finally:
                self._runs = False
                self._screen.pause()

    def _show_sign(self) -> None:
        if self._runs and self._deferred is None:
            self._screen.show_sign()

    async def change_session(self, session: Session) -> None:
        """Continue in another session."""
        self._opened = None
        await self._opening.aclose()
        self.session = session

    async def _open(self) -> OpenSession:
        if self._opened is None:
            if self.session is None:
                await prompts.require_model(self.engine, self.choices)
                self.session = await prompts.create_session(self.sessions, self.options, self.title)
            opening = self.sessions.opened(
                LOCAL,
                self.session.id,
                self.engine,
                mcp_servers=self.options.servers,
                report=prompts.reporting(self._report),
            )
            self._opened = await self._opening.enter_async_context(opening)
        return self._opened

    def _show(self, update: Update) -> None:
        if isinstance(update, Context):
            self.context = update
        if not self.out.json:
            self._printer(update)
            self._show_sign()

    def _report(self, update: Update) -> None:
        if self._deferred is not None:
            self._deferred.append(update)
        else:
            self._show(update)

    async def _answer(self, question: str) -> str | None:
        """The typed answer to a question; ^C cancels the turn."""
        try:
            return await self.line(question)
        except Interrupted:
            if self._opened is not None:
                self._opened.cancel()
            return None
        finally:
            self._show_sign()

    def _question(self, styled: Styled) -> None:
        self._screen.pause()
        self.aside(styled.text, styled.style)

    def _report_outcome(self, outcome: Outcome) -> int:
        if self.out.json:
            self.out.document(prompts.document(None if self.session is None else self.session.id, outcome))
        stopped = prompts.STOPPED.get(outcome.stop_reason)
        if stopped is not None:
            self.aside(stopped, MARK_STYLE)
        if self.out.terminal:
            self.out.line("")
        return exit_codes.OK if stopped is None else exit_codes.ENGINE
