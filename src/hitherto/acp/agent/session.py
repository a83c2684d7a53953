"""A session that a client has open: its engine conversation, one turn at a time, and its display."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from hitherto.acp.agent.display import PAGE_BYTES, SessionDisplay
from hitherto.acp.agent.editor_host import Start as Start
from hitherto.acp.agent.editor_host import text_within
from hitherto.acp.agent.slash_commands import (
    CommandRun,
    CommandTarget,
    arguments_of,
    available_commands,
    server_command,
)
from hitherto.acp.protocol.options import ChosenOptions, choices
from hitherto.engine import (
    ClientHost,
    Context,
    Conversation,
    Engine,
    Host,
    OffersPrompts,
    Setup,
    StartsServers,
)
from hitherto.errors import Busy, HithertoError, SessionNotFound
from hitherto.model import Json, Part, Principal, Session, Shrunk, ToolCall
from hitherto.service import Sessions
from hitherto.service.turns.open_session import OpenSession
from hitherto.updates import Ask, Elicitor, Outcome, Update
from hitherto.values.mcp_servers import McpServer
from hitherto.values.token_count import last_reported

QUESTION_SECONDS = 0.5
"""How often to look whether somebody else has answered."""
USAGE_ENTRIES = 100
"""How many of the last entries are searched for the tokens that the last answer used."""


class AttachedSession:
    """See the module. `start` starts tasks that end with the connection. `ask` asks its user about a call. While `outlives`
    says so, the client has left, and its turns go on."""

    ask: Ask

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        session: Session,
        engine: Engine,
        display: SessionDisplay,
        start: Start,
        *,
        roots: Sequence[str] = (),
        servers: Sequence[McpServer] = (),
        host: Host | None = None,
        local: bool = True,
        elicitor: Elicitor | None = None,
        warm: asyncio.Event | None = None,
    ) -> None:
        self.session = session
        self.display = display
        self.outlives: Callable[[], bool] = lambda: False
        self._sessions, self._who, self._engine, self._start = sessions, who, _CapturingEngine(engine), start
        self._roots, self._servers, self._host, self._local = tuple(roots), tuple(servers), host, local
        self._elicitor, self._warm = elicitor, warm
        self._background: list[asyncio.Task[None]] = []
        self._open_task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[OpenSession] | None = None
        self._turns: set[asyncio.Task[Outcome]] = set()
        self._question: asyncio.Task[None] | None = None
        self._since = 0.0
        self._cancelled = self._command_running = False

    @property
    def running(self) -> bool:
        """Whether a turn of this client runs, or waits."""
        return bool(self._turns)

    @property
    def target(self) -> str:
        """The session that is written to."""
        return self.display.target

    @property
    def chosen(self) -> ChosenOptions:
        """What the user has chosen for the session."""
        return self.display.known.chosen

    def is_set_up(self, roots: Sequence[str], servers: Sequence[McpServer]) -> bool:
        """Whether the session was opened with these folders and servers."""
        return (self._roots, self._servers) == (tuple(roots), tuple(servers))

    def expect_idle(self) -> None:
        """Raise `Busy` while a turn of this client runs."""
        if self._turns:
            age = asyncio.get_running_loop().time() - self._since
            raise Busy("this client, on this connection", round(age * 1000))

    async def begin(self) -> None:
        """Send the available commands, show updates from now on, and open the engine, unless the session is read-only and
        may never be prompted."""
        await self.display.update("available_commands_update", {"availableCommands": available_commands()})
        if self._closing.is_set():
            return
        self._background.append(self._start(self.display.run()))
        self.display.asked = self._note_question
        self.display.followed = lambda: self._start(self._send_usage(self._opened or self._open()))
        if self.session.source is None:
            ready = self._opened or self._open()
            self._background.append(self._start(self._send_usage(ready)))
            if self._servers:
                self._background.append(self._start(self._send_server_prompts()))

    async def begin_known(self) -> None:
        """The same for a session that is not new: what is known of it is sent too."""
        await self.begin()
        await self.display.show_info()

    async def servers_started(self) -> None:
        """Wait until each tool server is ready, has failed, or has run out of time."""
        if not self._servers:
            return
        with suppress(HithertoError):  # the next prompt reports what is wrong with the engine
            await self._ready()
            conversation = self._engine.conversation
            if isinstance(conversation, StartsServers):
                await conversation.started()

    async def expand(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """A prompt whose text is a slash command for a prompt of a tool server, with what that says behind it; any other
        stays as it is. Raises `InvalidInput` if the server refuses."""
        named = server_command(parts) if self._servers else None
        if named is None:
            return parts
        await self._ready()
        conversation = self._engine.conversation
        offered = await conversation.prompts() if isinstance(conversation, OffersPrompts) else ()
        found = next((each for each in offered if each.name == named[0]), None)
        if found is None or not isinstance(conversation, OffersPrompts):
            return parts
        return (*parts, *await conversation.expand(found.name, arguments_of(found, named[1])))

    async def text_of(self, path: str) -> str | None:
        """The text of a file that the session's tools may touch; None if there is none."""
        return await text_within(self._roots, self._host, path, local=self._local)

    async def prompt(self, parts: Sequence[Part], meta: Json, ask: Ask) -> Outcome:
        """Run a turn. Everything is shown when this returns or raises. If the caller is cancelled, the turn is too.

        While another turn runs, here or elsewhere, the prompt is stored, and gets the next. `Busy` while a command runs.
        """
        if self._command_running:
            self.expect_idle()
        with self.display.turn():
            return await self._run(self._run_prompt(parts, meta, ask))

    async def run_command(self, command: CommandRun) -> Outcome:
        """Run a slash command instead of a turn, and show its output; nothing is stored."""

        async def done() -> Outcome:
            said = await command(CommandTarget(self._sessions, self._who, self.target, self._compact))
            await self.display.show_message(said)
            return Outcome(stop_reason="end_turn", prompt="", text=said)

        self.expect_idle()
        self._command_running = True
        try:
            return await self._run(done())
        finally:
            self._command_running = False

    async def _run(self, turn: Coroutine[Any, Any, Outcome]) -> Outcome:
        if not self._turns:
            self._since, self._cancelled = asyncio.get_running_loop().time(), False
        task = asyncio.create_task(turn)
        self._turns.add(task)
        task.add_done_callback(self._forget_turn)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                return Outcome(stop_reason="cancelled", prompt="")
            if not task.done() and not self._goes_on:
                self.cancel()
                await asyncio.wait([task])
            raise
        finally:
            if not self._goes_on:
                self._turns.discard(task)
                self.display.refresh()
                await self.display.settle()

    @property
    def _goes_on(self) -> bool:
        return self.outlives() and not self._command_running

    def _forget_turn(self, task: asyncio.Task[Outcome]) -> None:
        self._turns.discard(task)
        if not task.cancelled():
            task.exception()  # seen, even if whoever prompted has left

    async def is_idle_within(self, seconds: float) -> bool:
        """Whether all turns of this client have ended by then."""
        if self._turns:
            await asyncio.wait(tuple(self._turns), timeout=seconds)
        return not self._turns

    def needs_its_client(self, call: ToolCall) -> bool:
        """Whether the call acts on the client's own machine: then nobody else may permit it."""
        return isinstance(self._host, ClientHost) and self._host.approves(call)

    def _note_question(self) -> None:
        """A turn of somebody else waits for an answer: this client is asked too."""
        if self._question is None or self._question.done():
            self._question = self._start(self._answer_questions())
            self._background.append(self._question)

    async def _answer_questions(self) -> None:
        """Ask the user what a turn of somebody else waits for, as long as it does; the first answer counts, whoever gives it."""
        asked: set[str] = set()
        with suppress(SessionNotFound):
            while not self.running and (call := await self._pending()) is not None and call.id not in asked:
                asked.add(call.id)
                await self.display.settle()  # the call is shown before it is asked about
                asking = asyncio.ensure_future(self.ask(call))
                try:
                    while not asking.done() and await self._pending() == call:
                        await asyncio.wait([asking], timeout=QUESTION_SECONDS)
                    answer = asking.result() if asking.done() else None
                    if isinstance(answer, str):
                        await self._sessions.questions.answer(self._who, self.target, call.id, answer)
                finally:
                    asking.cancel()
                    await asyncio.wait([asking])

    async def _pending(self) -> ToolCall | None:
        return await self._sessions.questions.pending(self._who, self.target)

    def cancel(self) -> None:
        """End the running turn, or the one that is about to run, and take back what waits."""
        self._cancelled = self.running
        if self._command_running:
            for task in self._turns:
                task.cancel()
        elif self._opened is not None and self._opened.done() and not self._opened.exception():
            self._opened.result().cancel()

    async def close(self) -> None:
        """End the running turn, and close the session."""
        self.cancel()
        if self._turns:
            await asyncio.wait(tuple(self._turns))
        self._closing.set()
        if self._open_task is not None:
            await asyncio.wait([self._open_task])
        for task in self._background:
            task.cancel()

    async def _run_prompt(self, parts: Sequence[Part], meta: Json, ask: Ask) -> Outcome:
        opened = await self._ready()
        if self._cancelled:
            return Outcome(stop_reason="cancelled", prompt="")

        def emit(update: Update) -> None:
            self.display.target = opened.session_id  # it exists by now: something happens in it
            self.display.emit(update)

        chosen = choices(self.chosen, meta)
        return await opened.prompt(
            parts, choices=chosen, ask=ask, emit=emit, queue="followup", mode=lambda: self.chosen.mode
        )

    async def _compact(self) -> Shrunk:
        opened = await self._ready()
        done = await opened.compact(choices=choices(self.chosen, {}), emit=self.display.emit)
        self.display.target = opened.session_id
        return done

    async def _ready(self) -> OpenSession:
        """The session, open in the engine. A read-only session continues in a fork, which is created when there is something
        to store in it. If the engine could not be opened before, this tries again."""
        opened = self._opened
        if opened is None or (opened.done() and opened.exception() is not None):
            opened = self._open()
        return await asyncio.shield(opened)

    async def _send_usage(self, ready: asyncio.Future[OpenSession]) -> None:
        """Send how full the context is, if the last answer and the engine know it. Nothing is imported for this."""
        page = await self._sessions.history(
            self._who, self.target, last=True, limit=USAGE_ENTRIES, max_bytes=PAGE_BYTES
        )
        reported = last_reported(page.entries)
        if reported is None:
            return
        with suppress(HithertoError):  # the next prompt reports what is wrong with the engine
            await asyncio.shield(ready)
            if self._warm is not None:
                await self._warm.wait()
            size = await self._engine.conversation.window(choices(self.chosen, {}))
            if not self.running:  # a running turn knows better
                self.display.emit(Context(used=reported[1], size=size))

    async def _send_server_prompts(self) -> None:
        """Send the commands again, with the prompts of tool servers, if they have any."""
        with suppress(HithertoError):  # the next prompt reports what is wrong with the engine
            await self._ready()
            conversation = self._engine.conversation
            if isinstance(conversation, OffersPrompts) and (offered := await conversation.prompts()):
                commands = available_commands(offered)
                await self.display.update("available_commands_update", {"availableCommands": commands})

    def _open(self) -> asyncio.Future[OpenSession]:
        self._opened = asyncio.get_running_loop().create_future()
        self._open_task = self._start(self._keep_open(self._opened))
        return self._opened

    async def _keep_open(self, ready: asyncio.Future[OpenSession]) -> None:
        """Keep the engine's conversation open. The same task must open and close it, because of its tool servers."""
        try:
            async with self._sessions.opened(
                self._who,
                self.session.id,
                self._engine,
                roots=self._roots,
                mcp_servers=self._servers,
                host=self._host,
                local=self._local,
                elicitor=self._elicitor,
                continuing=True,
                report=self.display.report,
            ) as opened:
                ready.set_result(opened)
                await self._closing.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
            with suppress(Exception):
                ready.result()  # reported by the next prompt, if there is one


class _CapturingEngine:
    """An engine that remembers the conversation it opened."""

    conversation: Conversation

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:
        async with self._engine.open(setup) as self.conversation:
            yield self.conversation
