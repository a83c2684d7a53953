"""A session that the editor has open, and the agent's behind it: prompts are kept, passed on, and what comes back is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.agent import display
from hitherto.acp.agent.session import Attached, Start
from hitherto.acp.protocol.session_rows import NOWHERE
from hitherto.acp.proxy.agent_link import Kept, keeping, kept_of, unknown_to
from hitherto.acp.proxy.agent_process import Life, Refusal, result_of
from hitherto.acp.proxy.agent_session import Seat
from hitherto.acp.proxy.frames import Members, text_of, value_of, written
from hitherto.engine import STOP_REASONS, Event, Message, Stopped, ToolEnded, Turn, answering
from hitherto.errors import EngineError, HithertoError
from hitherto.model import Change, Draft, Entry, Json, Part, Principal, Session, Usage
from hitherto.permissions import Choice
from hitherto.presentation.plain_conversation import told
from hitherto.service import Sessions
from hitherto.service.turns.context import CUT_OFF
from hitherto.sources.sync.recordings import can_be_read, claim
from hitherto.updates import Stored, Titled, Update

if TYPE_CHECKING:
    from hitherto.acp.proxy.connection import ProxyDoor

AUTHENTICATE = -32000
Found = Literal["resumed", "loaded", "new"]
"""How the agent's session was come by."""
OPENERS: tuple[tuple[str, tuple[str, ...], Found], ...] = (
    ("session/resume", ("sessionCapabilities", "resume"), "resumed"),
    ("session/load", ("loadSession",), "loaded"),
)
COUNTED = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cachedReadTokens",
    "cache_write": "cachedWriteTokens",
}


class Proxied(Attached):
    """See the module. `setting` is what the editor opened it with: folders, MCP servers and whatever else it said."""

    door: ProxyDoor
    showing: Showing

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        session: Session,
        engine: object,  # noqa: ARG002 - the agent answers
        showing: Showing,
        start: Start,
        **how: Any,
    ) -> None:
        super().__init__(
            sessions, who, session, answering(lambda turn: self._answered(turn)), showing, start, **how
        )
        self.setting: Members = {"cwd": written(session.cwd or NOWHERE)}
        self.seat: Seat | None = None
        self.kept: Kept | None = None
        self.opened_with: Members = {}
        self._seating = asyncio.Lock()
        self._bell = asyncio.Event()
        self._asked: Members = {}
        self._result: Members = {}
        self._waiting: asyncio.Future[Members] | None = None
        self._refusal: Refusal | None = None
        self._keeping: asyncio.Task[None] | None = None

    # The agent's session

    async def sit(self, life: Life, behind: str, *, known: str | None, waiting: bool = False) -> Seat:
        """Have this session of the agent's behind ours; `waiting`: the editor does not know ours yet."""
        seat = Seat(life, behind, self.session.id, rung=self._rung, entitle=self._entitle)
        seat.waiting = waiting
        self._stand_up()
        self.seat, self.kept = seat, Kept(id=behind, of=self.target, known=known)
        self.door.relay.seat(seat)
        seat.titles = (await self._remember()).title_by != "user"
        return seat

    async def seated(self, *, fresh: bool = False) -> Seat:
        """The agent's session, opened if need be: its own if it still has it, else a new one."""
        async with self._seating:
            life = await self.door.agent.ready()
            if not fresh and self.seat is not None and self.seat.life is life:
                return self.seat
            return (await self._seat(life, fresh=fresh))[0]

    async def open_behind(self, setting: Members, told: Members | None = None) -> Found:
        """Open the agent's session with what the editor says now; `opened_with` is what the agent answers, or has `told`
        already when it opened it."""
        async with self._seating:
            self.setting = setting
            if told is not None and (kept := await origin_of(self.door, self.session)) is not None:
                await self.sit(await self.door.agent.ready(), kept.id, known=kept.known)
                self.opened_with = told
                return "loaded"
            return (await self._seat(await self.door.agent.ready(), fresh=False))[1]

    async def _seat(self, life: Life, *, fresh: bool) -> tuple[Seat, Found]:
        target = await self._sessions.get(self._who, self.target)
        kept = self.kept or kept_of(target, self.door.agent.name) or await origin_of(self.door, self.session)
        if kept is not None and not fresh and (seated := await self._reseated(life, kept)) is not None:
            return seated
        with self.door.relay.opening():
            result = await life.ask("session/new", {"mcpServers": Raw(b"[]"), **self.setting})
            seat = await self.sit(life, named(result, self.door.agent.name), known=None)
        seat.titles = seat.titles and target.message_count == 0
        self.opened_with = result
        await self.door.relay.release(seat)
        return seat, "new"

    async def _reseated(self, life: Life, kept: Kept) -> tuple[Seat, Found] | None:
        """The agent's own session, by the first of its ways to open it that does."""
        for method, path, found in OPENERS:
            if life.can(*path) and (seat := await self._reopened(life, method, kept)) is not None:
                return seat, found
        return None

    async def _reopened(self, life: Life, method: str, kept: Kept) -> Seat | None:
        """The agent's session, if it still has it. What it replays of it is known."""
        seat = await self.sit(life, kept.id, known=kept.known)
        seat.muted = True
        try:
            params = {"mcpServers": Raw(b"[]"), **self.setting, "sessionId": written(kept.id)}
            self.opened_with = await life.ask(method, params)
        except Refusal as refusal:
            self._stand_up()
            if refusal.code == AUTHENTICATE:
                raise
            return None
        seat.muted = False
        seat.counted = (await self._sessions.get(self._who, self.target)).cost or 0.0
        return seat

    def _stand_up(self) -> None:
        if self.seat is not None:
            self.seat.closed = True
        self.seat = None

    async def _remember(self) -> Session:
        """Keep which session of the agent's it is, and how much of ours it knows. In one that is read-only nothing is
        kept: it goes on in a fork."""
        session = await self._sessions.get(self._who, self.target)
        if session.source is not None:
            return session
        agent, kept = self.door.agent, self.kept
        session = await self._sessions.catalog.set_own_meta(
            self._who, session.id, keeping(session, agent.name, kept)
        )
        if kept is None or not (can_be_read(agent.source) or (agent.alive and opens(agent.alive))):
            return session
        return await claim(self._sessions, self._who, session, agent.source, kept.id)

    # Prompts

    async def relayed(self, parts: Sequence[Part], params: Members) -> Members:
        """Keep a prompt, have the agent answer it, and return its answer; all of it has been kept by then."""
        self.expect_idle()
        await self._keep_unasked()
        self._asked, self._result, self._refusal = params, {}, None
        try:
            await super().prompt(parts, {}, _nobody)
        except EngineError:
            if self._refusal is not None:
                raise self._refusal from None
            raise
        finally:
            await self._settle(knows=bool(self._result))
        return self._result or {"stopReason": written("cancelled")}

    async def call_off(self) -> None:
        """The editor cancels: the agent is told, and ends the turn itself; if it has not heard of it yet, it never does."""
        if self._waiting is not None and self.seat is not None:
            await self.seat.life.tell("session/cancel", {"sessionId": written(self.seat.behind)})
        else:
            self.cancel()

    async def _answered(self, turn: Turn) -> AsyncIterator[Event]:
        """See `engine.Conversation.run`: what the agent says to the prompt that is stored."""
        try:
            seat, params = await self._placed(turn)
            self._waiting = await seat.life.begin("session/prompt", params)
            self._waiting.add_done_callback(lambda _: self._bell.set())
            async with aclosing(self._heard(seat, self._waiting)) as events:
                async for event in events:
                    yield event
        except Refusal as refusal:
            self._refusal = refusal
            raise EngineError(refusal.message or "the agent refuses") from refusal
        finally:
            self._waiting = None
        reason = text_of(self._result, "stopReason")
        yield Stopped(reason=next((known for known in STOP_REASONS if known == reason), "end_turn"))

    async def _placed(self, turn: Turn) -> tuple[Seat, Members]:
        """The agent's session, and the prompt with what was said without it."""
        if self.kept is not None and self.kept.of != turn.session.id:
            self.kept = replace(
                self.kept, of=turn.session.id
            )  # a read-only session has begun to go on in a fork
        seat, before = await self.seated(), turn.history[:-1]
        missed = unknown_to(self.kept, before)
        if missed is None:
            seat, missed = await self.seated(fresh=True), before
        return seat, await _prompting(self._asked, seat, missed)

    async def _heard(self, seat: Seat, answer: asyncio.Future[Members]) -> AsyncGenerator[Event, None]:
        """What is said until the answer comes, and the rest of it then."""
        try:
            while not answer.done():
                self._bell.clear()
                for event in seat.collector.events():
                    yield event
                await self._bell.wait()
        except BaseException:  # called off from elsewhere, or nothing can be kept any more
            seat.collector.cut()
            if not answer.done():
                with suppress(HithertoError):
                    await seat.life.tell("session/cancel", {"sessionId": written(seat.behind)})
            raise
        failed = answer.exception()
        result = {} if failed else _result(answer.result())
        for event in seat.collector.end(_usage(result, seat), {"partial": CUT_OFF} if failed else None):
            yield event
        self._result = result_of(answer.result())

    async def _settle(self, *, knows: bool) -> None:
        """Nothing of what was kept is news to the editor; nor to the agent, if it has come to the end of what it said."""
        await self.showing.skip()
        self.showing.retold()
        if knows and self.kept is not None and self.showing.stored is not None:
            self.kept = replace(self.kept, of=self.target, known=self.showing.stored)
            with suppress(HithertoError):  # without it the agent is told again what it knows
                await self._remember()

    # What the agent says by itself

    def _rung(self) -> None:
        self._bell.set()
        if self.running or self.door.leaving or self.seat is None:
            return
        if self._keeping is None or self._keeping.done():
            self._keeping = self._start(self._keep_unasked())

    async def _keep_unasked(self) -> None:
        """Keep what the agent has said between two turns."""
        if self.seat is None:
            return
        drafts = [draft for event in self.seat.collector.end() if (draft := _draft(event))]
        if drafts:
            kept = await self._sessions.append(self._who, self.target, drafts)
            self.showing.stored = kept.entries[-1]
            await self._settle(knows=True)

    def _entitle(self, title: str) -> None:
        if not self.door.leaving:
            self._start(self._retitle(title))

    async def _retitle(self, title: str) -> None:
        with suppress(HithertoError):
            await self._sessions.turns.retitle(self._who, self.target, title)

    # As every session that is open

    async def begin(self) -> None:
        """Show what happens elsewhere from now on, and what the agent has said of the session meanwhile."""
        if self.seat is not None:
            await self.door.relay.release(self.seat)
        if not self._closing.is_set():
            self._beside.append(self._start(self.showing.run()))

    async def close(self) -> None:
        await super().close()
        with suppress(HithertoError):
            await self._keep_unasked()
        self._stand_up()


def opens(life: Life) -> bool:
    """Whether the agent lists its sessions, and can open them again."""
    return life.can("sessionCapabilities", "list") and any(life.can(*path) for _, path, _ in OPENERS)


async def origin_of(door: ProxyDoor, session: Session) -> Kept | None:
    """The agent's session that one of ours was read from: it knows all of it."""
    own = door.agent.own(session.id) if session.source == door.agent.source else None
    if own is None:
        return None
    page = await door.sessions.history(door.who, session.id, last=True, limit=1)
    return Kept(id=own, of=session.id, known=page.entries[-1].id if page.entries else None)


async def _prompting(asked: Members, seat: Seat, missed: tuple[Entry, ...]) -> Members:
    """The parameters of the prompt as the agent gets it."""
    params = {**asked, "sessionId": written(seat.behind)}
    text = await told(missed)
    if text:
        block = {"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}
        rest = bytes(asked.get("prompt", Raw(b"[]"))).strip()[1:]
        comma = b"" if rest.lstrip() == b"]" else b","
        params["prompt"] = Raw(b"[%b%b%b" % (bytes(written(block)), comma, rest))
    return params


def named(result: Members, agent: str) -> str:
    behind = text_of(result, "sessionId")
    if behind is None:
        raise EngineError(f"the agent {agent!r} made a session and did not say which")
    return behind


def _result(message: Members) -> Members:
    """The result of an answer; an error has none."""
    try:
        return result_of(message)
    except Refusal:
        return {}


def _usage(result: Members, seat: Seat) -> Usage | None:
    """What the turn used, as far as the agent says."""
    told = value_of(result.get("usage"))
    tokens = told if isinstance(told, dict) else {}
    known = {name: tokens.get(field) for name, field in COUNTED.items()}
    counts: Json = {
        name: value for name, value in known.items() if isinstance(value, int) and 0 <= value < 1 << 40
    }
    if seat.collector.cost is not None and seat.collector.cost >= seat.counted:
        counts["cost"] = seat.collector.cost - seat.counted
        seat.counted = seat.collector.cost
    return Usage(**counts) if counts else None


def _draft(event: Event) -> Draft | None:
    match event:
        case Message():
            return Draft(role="assistant", parts=event.parts, usage=event.usage, meta=event.meta)
        case ToolEnded():
            return Draft(role="tool", parts=(event.result,))
    return None


async def _nobody(_: object) -> Choice:
    """The agent asks the editor itself."""
    raise EngineError("the agent asks for itself")


class Showing(display.Showing):
    """See the module. What the agent says in a turn of this editor has been passed on already; `stored` is the last entry
    of it that was kept."""

    stored: str | None = None

    def emit(self, update: Update) -> None:
        if isinstance(update, Stored):
            self.stored = update.entry.id
        elif isinstance(update, Titled):
            super().emit(update)

    def retold(self) -> None:
        """Something about the session may have changed, such as its title."""
        self._changed = True
        self._wake.set()

    def changed(self, change: Change) -> None:
        if not self._turning:
            super().changed(change)
