"""A session that the editor has open, bound to one of the agent's: prompts are stored and forwarded, answers are stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.agent.display import SessionDisplay
from hitherto.acp.agent.session import AttachedSession, Start
from hitherto.acp.protocol.session_rows import NOWHERE
from hitherto.acp.proxy.agent_link import AgentLink, entries_unknown_to, link_meta, link_of
from hitherto.acp.proxy.agent_options import (
    chosen_states,
    mode_to_set,
    options_to_set,
    with_mode,
    with_options,
    with_states,
)
from hitherto.acp.proxy.agent_process import AgentProcess, Refusal, result_of
from hitherto.acp.proxy.agent_session import AgentSession
from hitherto.acp.proxy.frames import Members, raw_json, text_of, value_of
from hitherto.engine import STOP_REASONS, Event, Heard, Message, Stopped, ToolEnded, Turn, answering
from hitherto.errors import Busy, EngineError, HithertoError
from hitherto.model import Change, Draft, Entry, Json, Part, Principal, Session, Usage
from hitherto.permissions import Choice
from hitherto.presentation.plain_conversation import earlier_conversation
from hitherto.service import Sessions
from hitherto.service.turns.context import CUT_OFF
from hitherto.sources.sync.recordings import can_be_read, link_recording
from hitherto.updates import Stored, Titled, Update

if TYPE_CHECKING:
    from hitherto.acp.proxy.connection import ProxyConnection

AUTHENTICATE = -32000
OpenedBy = Literal["resumed", "loaded", "new"]
"""How the agent's session was opened."""
OPENERS: tuple[tuple[str, tuple[str, ...], OpenedBy], ...] = (
    ("session/resume", ("sessionCapabilities", "resume"), "resumed"),
    ("session/load", ("loadSession",), "loaded"),
)
SETTING = ("cwd", "additionalDirectories", "mcpServers")
TOKEN_FIELDS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cachedReadTokens",
    "cache_write": "cachedWriteTokens",
}


class PromptRequest:
    """A prompt of the editor. `answer` is the agent's, once it has the prompt; `ended` are the events that were left when it
    was read. `begun` says that the prompt is stored, `abandoned` that nobody waits for the answer any more."""

    def __init__(self, parts: tuple[Part, ...], params: Members) -> None:
        self.parts, self.params = parts, params
        self.answer: asyncio.Future[Members] | None = None
        self.ended: list[Event] | None = None
        self.result: Members = {}
        self.refusal: Refusal | None = None
        self.begun = self.cancelled = self.abandoned = False

    def checked_result(self, message: Members) -> Members:
        """The result. A prompt that was cancelled has ended so, whatever the agent says: the protocol wants that answer.
        Raises `Refusal`."""
        if not self.cancelled:
            return result_of(message)
        return {**_result(message), "stopReason": raw_json("cancelled")}


class ProxiedSession(AttachedSession):
    """See the module. `setting` has the parameters that the editor opened it with: folders, MCP servers and others."""

    connection: ProxyConnection
    display: ProxyDisplay

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        session: Session,
        engine: object,  # noqa: ARG002 - the agent answers
        display: ProxyDisplay,
        start: Start,
        **how: Any,
    ) -> None:
        super().__init__(
            sessions, who, session, answering(lambda turn: self._answer(turn)), display, start, **how
        )
        self.setting: Members = {"cwd": raw_json(session.cwd or NOWHERE)}
        self.agent_session: AgentSession | None = None
        self.link: AgentLink | None = None
        self.opened_with: Members = {}
        self._bind_lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._order = asyncio.Lock()
        self._requests: list[PromptRequest] = []
        self._cut_off: list[Draft] = []
        self._unstored: list[Draft] = []
        self._request = PromptRequest((), {})
        self._storing: asyncio.Task[None] | None = None

    # The agent's session

    async def bind(
        self, process: AgentProcess, agent_session_id: str, *, known: str | None, waiting: bool = False
    ) -> AgentSession:
        """Bind this session of the agent to ours; `waiting`: the editor does not know ours yet."""
        agent_session = AgentSession(
            process, agent_session_id, self.session.id, on_ready=self._on_ready, on_title=self._on_title
        )
        agent_session.waiting = waiting
        self._unbind()
        last = self.link or await self._stored_link() or AgentLink(id="", of="")
        self.agent_session = agent_session
        self.link = replace(last, id=agent_session_id, of=self.target, known=known)
        self.connection.relay.register(agent_session)
        agent_session.accepts_titles = (await self._remember()).title_by != "user"
        return agent_session

    async def ensure_bound(self, *, fresh: bool = False) -> AgentSession:
        """The agent's session; it is opened if necessary: the known one if the agent still has it, else a new one."""
        async with self._bind_lock:
            process = await self.connection.agent.ready()
            if not fresh and self.agent_session is not None and self.agent_session.process is process:
                return self.agent_session
            return (await self._bind_any(process, fresh=fresh))[0]

    async def open_agent_session(self, setting: Members, reported: Members | None = None) -> OpenedBy:
        """Open the agent's session with what the editor says now; `opened_with` is what the agent answers, or has `reported`
        already when it opened it."""
        async with self._bind_lock:
            self.setting = setting
            if (
                reported is not None
                and (link := await source_link(self.connection, self.session)) is not None
            ):
                await self.bind(await self.connection.agent.ready(), link.id, known=link.known)
                self.opened_with = reported
                return "loaded"
            return (await self._bind_any(await self.connection.agent.ready(), fresh=False))[1]

    async def _bind_any(self, process: AgentProcess, *, fresh: bool) -> tuple[AgentSession, OpenedBy]:
        target = await self._sessions.get(self._who, self.target)
        link = self.link or await self._stored_link() or await source_link(self.connection, self.session)
        if link is not None and not fresh and (ensure_bound := await self._rebind(process, link)) is not None:
            return ensure_bound
        with self.connection.relay.opening():
            result = await process.call("session/new", {"mcpServers": Raw(b"[]"), **self.setting})
            agent_session = await self.bind(
                process, session_id_in(result, self.connection.agent.name), known=None
            )
        agent_session.accepts_titles = agent_session.accepts_titles and target.message_count == 0
        self.opened_with = await self.restore(agent_session, result)
        await self.connection.relay.release(agent_session)
        return agent_session, "new"

    async def restore(self, agent_session: AgentSession, result: Members) -> Members:
        """Have the agent's session as it was: its mode and its options. Returns what the agent answered, as it is now."""
        link, process = self.link, agent_session.process
        if link is None:
            return result
        of = {"sessionId": raw_json(agent_session.agent_session_id)}
        for option in options_to_set(result, link.options):
            with suppress(Refusal):
                answer = await process.call("session/set_config_option", {**of, **option})
                result = {**result, **{name: answer[name] for name in ("configOptions",) if name in answer}}
        if link.mode is not None and mode_to_set(result, link.mode):
            with suppress(Refusal):
                await process.call("session/set_mode", {**of, "modeId": raw_json(link.mode)})
                result = with_mode(result, link.mode)
        return result

    def note_state(self) -> None:
        """Remember the mode, the options and the usage that the agent last reported."""
        if self.link is not None and self.agent_session is not None:
            self.link = with_states(self.link, self.agent_session.collector.states)

    async def choose(self, method: str, params: Members) -> Members:
        """Have the agent change its mode or an option, and remember that."""
        agent_session = await self.ensure_bound()
        of = {"sessionId": raw_json(agent_session.agent_session_id)}
        result = await agent_session.process.call(method, {**params, **of})
        agent_session.collector.states.update(chosen_states(method, params, result))
        self.note_state()
        await self._remember()
        return result

    def current_answer(self) -> Members:
        """What the agent answered when it opened its session, with the mode and the options of now."""
        result, link = self.opened_with, self.link
        if self.agent_session is not None:
            result = with_options(result, self.agent_session.collector.states)
        return result if link is None or link.mode is None else with_mode(result, link.mode)

    def goes_on(self, setting: Members) -> bool:
        """Whether the agent's session can be used as it is: it was opened in the same way, or cannot be opened again."""
        agent_session = self.agent_session
        if agent_session is None or agent_session.process is not self.connection.agent.running:
            return False
        same = all(value_of(setting.get(name)) == value_of(self.setting.get(name)) for name in SETTING)
        return same or not any(agent_session.process.supports(*path) for _, path, _ in OPENERS)

    async def _stored_link(self) -> AgentLink | None:
        return link_of(await self._sessions.get(self._who, self.target), self.connection.agent.name)

    async def _rebind(self, process: AgentProcess, link: AgentLink) -> tuple[AgentSession, OpenedBy] | None:
        """The agent's own session, reopened with the first method that works; None if none does."""
        for method, path, found in OPENERS:
            if (
                process.supports(*path)
                and (agent_session := await self._reopen(process, method, link)) is not None
            ):
                return agent_session, found
        return None

    async def _reopen(self, process: AgentProcess, method: str, link: AgentLink) -> AgentSession | None:
        """The agent's session, if it still has it. What it replays is ignored: it is in the store."""
        agent_session = await self.bind(process, link.id, known=link.known)
        agent_session.replaying = True
        try:
            params = {"mcpServers": Raw(b"[]"), **self.setting, "sessionId": raw_json(link.id)}
            self.opened_with = await self.restore(agent_session, await process.call(method, params))
        except Refusal as refusal:
            self._unbind()
            if refusal.code == AUTHENTICATE:
                raise
            return None
        agent_session.replaying = False
        agent_session.counted_cost = (await self._sessions.get(self._who, self.target)).cost or 0.0
        return agent_session

    def _unbind(self) -> None:
        if self.agent_session is not None:
            self.agent_session.closed = True
        self.agent_session = None

    async def _remember(self) -> Session:
        """Store the link to the agent's session, and how much of ours it knows. A read-only session stores nothing: it
        continues in a fork."""
        session = await self._sessions.get(self._who, self.target)
        if session.source is not None:
            return session
        agent, link = self.connection.agent, self.link
        session = await self._sessions.catalog.set_own_meta(
            self._who, session.id, link_meta(session, agent.name, link)
        )
        if link is None or not (can_be_read(agent.source) or (agent.running and can_reopen(agent.running))):
            return session
        return await link_recording(self._sessions, self._who, session, agent.source, link.id)

    # Prompts

    @property
    def is_busy(self) -> bool:
        """Whether a prompt of this editor is being answered, or waits for that."""
        return self.running or bool(self._requests)

    async def run_prompt(self, parts: Sequence[Part], params: Members) -> Members:
        """Store a prompt, have the agent answer it, and return the answer; everything is stored by then. An agent that queues
        prompts gets one that comes while it answers another at once; it is stored when that one has been answered."""
        request = PromptRequest(tuple(parts), params)
        if self.is_busy:
            await self._send_queued(request)
        self._requests.append(request)
        try:
            async with self._order:
                if request.answer is None:
                    await self._store_unprompted()
                await self._run_request(request)
        finally:
            self._requests.remove(request)
            if request.answer is not None and not request.begun:  # the agent has it
                request.abandoned = True
                self._unstored.append(Draft(role="user", parts=request.parts))
        return request.result or {"stopReason": raw_json("cancelled")}

    async def _send_queued(self, request: PromptRequest) -> None:
        agent_session = self.agent_session
        if agent_session is None or agent_session.process.exited or not _queues(agent_session.process):
            self.expect_idle()
            raise Busy("this client, on this connection", 0)
        await self._send(request, agent_session, await _prompt_pending(request.params, agent_session, ()))

    async def _run_request(self, request: PromptRequest) -> None:
        self._request = request
        try:
            await super().prompt(request.parts, {}, _refuse_question)
        except EngineError:
            if request.refusal is not None:
                raise request.refusal from None
            raise
        finally:
            await self._settle(knows=bool(request.result))

    async def _send(self, request: PromptRequest, agent_session: AgentSession, params: Members) -> None:
        """Send a prompt to the agent; what comes before its answer belongs to it."""

        def on_answer(message: Members) -> None:
            if request.abandoned:
                return
            result, failed = _result(message), "error" in message
            usage = _usage(result, agent_session)
            request.ended = agent_session.collector.end(usage, {"partial": CUT_OFF} if failed else None)
            for waiting in self._requests:
                if waiting is not request and waiting.answer is not None:
                    agent_session.collector.expect_echo(waiting.parts)

        agent_session.collector.expect_echo(request.parts)
        process = agent_session.process
        request.answer = await process.start_request("session/prompt", params, on_answer)
        request.answer.add_done_callback(lambda _: self._wake.set())

    async def cancel_prompt(self) -> None:
        """The editor cancels: the agent is notified and ends the turn itself. If it has not got the prompt yet, it never does."""
        for request in self._requests:
            request.cancelled = True
        sent = any(request.answer is not None for request in self._requests)
        if sent and self.agent_session is not None:
            await self.agent_session.process.notify(
                "session/cancel", {"sessionId": raw_json(self.agent_session.agent_session_id)}
            )
        else:
            self.cancel()

    def hear(self, parts: tuple[Part, ...]) -> None:
        """The user says something to the agent while it answers."""
        if parts and self.agent_session is not None:
            self.agent_session.hear(parts)

    async def _answer(self, turn: Turn) -> AsyncIterator[Event]:
        """See `engine.Conversation.run`: the agent's answer to the stored prompt."""
        request = self._request
        request.begun = True
        try:
            if self.link is not None and self.link.of != turn.session.id:
                self.link = replace(
                    self.link, of=turn.session.id
                )  # a read-only session now continues in a fork
            if request.answer is None:
                await self._send(request, *await self._prepare_prompt(request, turn))
            async with aclosing(self._events_until(request)) as events:
                async for event in events:
                    yield event
        except Refusal as refusal:
            request.refusal = refusal
            raise EngineError(refusal.message or "the agent refused the prompt") from refusal
        reason = text_of(request.result, "stopReason")
        yield Stopped(reason=next((known for known in STOP_REASONS if known == reason), "end_turn"))

    async def _prepare_prompt(self, request: PromptRequest, turn: Turn) -> tuple[AgentSession, Members]:
        """The agent's session, and the prompt with the messages that the agent lacks."""
        agent_session, before = await self.ensure_bound(), turn.history[:-1]
        missed = entries_unknown_to(self.link, before)
        if missed is None:
            agent_session, missed = await self.ensure_bound(fresh=True), before
        return agent_session, await _prompt_pending(request.params, agent_session, missed)

    async def _events_until(self, request: PromptRequest) -> AsyncGenerator[Event, None]:
        """The events until the answer arrives, and the rest of them after it."""
        agent_session, answer = self.agent_session, request.answer
        if agent_session is None or answer is None:
            return
        try:
            while not answer.done():
                self._wake.clear()
                for event in agent_session.collector.events() if request.ended is None else ():
                    yield event
                await self._wake.wait()
        except BaseException:  # called off from elsewhere, or nothing can be kept any more
            request.abandoned = True
            agent_session.collector.discard_emitted()
            self._cut_off += _drafts(agent_session.collector.events())
            if not answer.done():
                with suppress(HithertoError):
                    await agent_session.process.notify(
                        "session/cancel", {"sessionId": raw_json(agent_session.agent_session_id)}
                    )
            raise
        left = request.ended
        for event in left if left is not None else agent_session.collector.end(None, {"partial": CUT_OFF}):
            yield event
        request.result = request.checked_result(answer.result())

    async def _settle(self, *, knows: bool) -> None:
        """Everything stored is known to the editor, and to the agent if it has finished its answer."""
        await self.display.skip()
        self.display.refresh()
        self.note_state()
        if knows and self.link is not None and self.display.stored is not None:
            self.link = replace(self.link, of=self.target, known=self.display.stored)
            with suppress(HithertoError):  # otherwise the agent gets messages again that it knows
                await self._remember()

    # Messages of the agent between turns

    def _on_ready(self) -> None:
        self._wake.set()
        if self.is_busy or self.connection.leaving or self.agent_session is None:
            return
        if self._storing is None or self._storing.done():
            self._storing = self._start(self._store_unprompted())

    async def _store_unprompted(self) -> None:
        """Store what the agent has said between two turns, and prompts that it has and that never became a turn."""
        events = [] if self.agent_session is None else self.agent_session.collector.end()
        drafts = [*self._cut_off, *self._unstored, *_drafts(events)]
        self._cut_off, self._unstored = [], []
        if drafts:
            kept = await self._sessions.append(self._who, self.target, drafts)
            self.display.stored = kept.entries[-1]
            await self._settle(knows=True)

    def _on_title(self, title: str) -> None:
        if not self.connection.leaving:
            self._start(self._retitle(title))

    async def _retitle(self, title: str) -> None:
        with suppress(HithertoError):
            await self._sessions.turns.retitle(self._who, self.target, title)

    # Opening and closing

    async def begin(self) -> None:
        """Show changes from now on, and the held-back updates of the agent."""
        if self.agent_session is not None:
            await self.connection.relay.release(self.agent_session)
            await self._show_usage(self.agent_session)
        if not self._closing.is_set():
            self._background.append(self._start(self.display.run()))

    async def _show_usage(self, agent_session: AgentSession) -> None:
        """Show the last usage that the agent reported, if it has not reported it again."""
        usage = None if self.link is None else self.link.usage
        if usage is not None and "usage_update" not in agent_session.collector.states:
            await self.display.update("usage_update", usage)

    async def close(self) -> None:
        await super().close()
        with suppress(HithertoError):
            await self._store_unprompted()
        self._unbind()


def can_reopen(process: AgentProcess) -> bool:
    """Whether the agent lists its sessions, and can open them again."""
    return process.supports("sessionCapabilities", "list") and any(
        process.supports(*path) for _, path, _ in OPENERS
    )


async def source_link(connection: ProxyConnection, session: Session) -> AgentLink | None:
    """The link to the agent's session that one of ours was synced from: the agent knows all of it."""
    own = connection.agent.own_id_of(session.id) if session.source == connection.agent.source else None
    if own is None:
        return None
    page = await connection.sessions.history(connection.who, session.id, last=True, limit=1)
    return AgentLink(id=own, of=session.id, known=page.entries[-1].id if page.entries else None)


async def _prompt_pending(asked: Members, agent_session: AgentSession, missed: tuple[Entry, ...]) -> Members:
    """The parameters of the prompt as the agent gets it."""
    params = {**asked, "sessionId": raw_json(agent_session.agent_session_id)}
    text = await earlier_conversation(missed)
    if text:
        block = {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}
        rest = bytes(asked.get("prompt", Raw(b"[]"))).strip()[1:]
        comma = b"" if rest.lstrip() == b"]" else b","
        params["prompt"] = Raw(b"[%b%b%b" % (bytes(raw_json(block)), comma, rest))
    return params


def session_id_in(result: Members, agent: str) -> str:
    agent_session_id = text_of(result, "sessionId")
    if agent_session_id is None:
        raise EngineError(f"the agent {agent!r} created a session but returned no sessionId")
    return agent_session_id


def _result(message: Members) -> Members:
    """The result of an answer; an error has none."""
    try:
        return result_of(message)
    except Refusal:
        return {}


def _usage(result: Members, agent_session: AgentSession) -> Usage | None:
    """The usage of the turn, as far as the agent reports it."""
    reported = value_of(result.get("usage"))
    tokens = reported if isinstance(reported, dict) else {}
    known = {name: tokens.get(field) for name, field in TOKEN_FIELDS.items()}
    counts: Json = {
        name: value for name, value in known.items() if isinstance(value, int) and 0 <= value < 1 << 40
    }
    if (
        agent_session.collector.cost is not None
        and agent_session.collector.cost >= agent_session.counted_cost
    ):
        counts["cost"] = agent_session.collector.cost - agent_session.counted_cost
        agent_session.counted_cost = agent_session.collector.cost
    return Usage(**counts) if counts else None


def _drafts(events: Iterable[Event]) -> list[Draft]:
    return [draft for event in events if (draft := _draft(event))]


def _draft(event: Event) -> Draft | None:
    match event:
        case Message():
            return Draft(role="assistant", parts=event.parts, usage=event.usage, meta=event.meta)
        case Heard():
            return Draft(role="user", parts=event.parts, meta=event.meta)
        case ToolEnded():
            return Draft(role="tool", parts=(event.result,), meta=event.meta)
    return None


def _queues(process: AgentProcess) -> bool:
    """Whether the agent takes prompts while it answers another. There is no capability of the protocol for it yet: agents say
    so in their `_meta`."""
    able = value_of(process.greeting.get("agentCapabilities"))
    meta = able.get("_meta") if isinstance(able, dict) else None
    named = [meta, *meta.values()] if isinstance(meta, dict) else []
    return any(isinstance(each, dict) and each.get("promptQueueing") is True for each in named)


async def _refuse_question(_: object) -> Choice:
    """The agent asks the editor itself."""
    raise EngineError("the agent asks the editor itself")


class ProxyDisplay(SessionDisplay):
    """Messages of a turn of this editor were already relayed, so they are not shown again. `stored` is the last stored entry
    of the turn."""

    stored: str | None = None

    def emit(self, update: Update) -> None:
        if isinstance(update, Stored):
            self.stored = update.entry.id
        elif isinstance(update, Titled):
            super().emit(update)

    def note_change(self, change: Change) -> None:
        if not self._turn_running:
            super().note_change(change)
