"""One running turn: an engine says what happens, and each step is stored before the next is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from recollect.engine import (
    Choices,
    Context,
    Conversation,
    Delta,
    Event,
    Message,
    Notice,
    Stopped,
    StopReason,
    ToolEnded,
    ToolProgress,
    Turn,
)
from recollect.errors import ContextTooLong, EngineError, LeaseLost, RecollectError
from recollect.model import Draft, Entry, Json, Status, ToolCall, Usage, plain_text
from recollect.permissions import CHOICES, REMEMBERED, Choice, Verdict, decided, remembering
from recollect.service.context import CANCELLED, FULL, INTERRUPTED, failed, summed, tokens_used
from recollect.service.desk import Begun, Desk
from recollect.service.saying import Saying
from recollect.updates import Ask, Compacted, Emit, Outcome, Said, Stored

T = TypeVar("T")
LEASE_MS = 15_000
RENEW_SECONDS = 5.0
LIVE_SECONDS = 0.1

REFUSED = {
    "plan": "refused: in plan mode nothing may be changed; describe what you would do instead",
    "dontAsk": "refused: this needs a permission, and nobody may be asked",
}
NOBODY = "refused: this needs a permission, and nobody is there to give it"
REJECTED = "refused by the user"


class RunningTurn:
    """Runs a turn that has begun. `run` returns its outcome, also when it was cancelled, or raises what went wrong;
    either way all that was said is stored by then and the lease is given back."""

    def __init__(
        self,
        desk: Desk,
        begun: Begun,
        conversation: Conversation,
        choices: Choices,
        window: int | None,
        ask: Ask | None,
        emit: Emit,
        key: str | None,
    ) -> None:
        self._desk, self._conversation, self._choices, self._key = desk, conversation, choices, key
        self._session, self._history, self._fence = begun.session, begun.history, begun.lease.fence
        self._prompt = begun.history[-1].id
        self._window, self._ask, self._emit = window, ask, emit
        self._saying = Saying(desk.new_id())
        self._calls: dict[str, ToolCall] = {}
        self._usages: list[Usage] = []
        self._answer: Entry | None = None
        self._stop: StopReason = "end_turn"
        self._questions, self._writing = asyncio.Lock(), asyncio.Lock()
        self._over, self._dirty = asyncio.Event(), asyncio.Event()
        self._engine: asyncio.Task[None] | None = None
        self._cancelled = False
        self._lost = False

    async def run(self) -> Outcome:
        """The whole turn."""
        self._engine = asyncio.create_task(self._answered(), name="turn")
        if self._cancelled:
            self._engine.cancel()
        beside = [asyncio.create_task(self._hold_lease()), asyncio.create_task(self._show())]
        try:
            await asyncio.wait([self._engine])
        finally:  # also when the whole program ends
            self._engine.cancel()
            await asyncio.wait([self._engine])
            self._over.set()
            self._dirty.set()
            await asyncio.wait(beside)
        return await self._finish(self._failure())

    def cancel(self) -> None:
        """End the turn where it is, if only at its very beginning; what was said is kept."""
        self._cancelled = True
        if self._engine is not None:
            self._engine.cancel()

    # The engine

    async def _answered(self) -> None:
        """Follow the engine to its end. A context that nears the window is made smaller first; one that proves too
        long all the same, once more."""
        used = tokens_used(self._history)
        if self._window is not None and used is not None and used > FULL * self._window:
            await self._make_room()
        try:
            await self._follow()
        except ContextTooLong:
            if self._answer is not None or not await self._make_room():
                raise
            await self._follow()

    async def _make_room(self) -> bool:
        done = await unbroken(self._desk.make_room(self._fence, self._window))
        if done is None:
            return False
        self._emit(Compacted(compaction=done))
        self._history = await self._desk.context()
        return True

    async def _follow(self) -> None:
        turn = Turn(session=self._session, history=self._history, choices=self._choices, permit=self._permit)
        events = self._conversation.run(turn)
        try:
            async for event in events:
                if type(event) is Delta:
                    self._said(event)
                else:
                    await self._happened(event)
        finally:
            if (close := getattr(events, "aclose", None)) is not None:
                await close()

    def _said(self, delta: Delta) -> None:
        self._saying.add(delta)
        self._emit(Said(entry=self._saying.entry, text=delta.text, thought=delta.thought))
        self._dirty.set()

    async def _happened(self, event: Event) -> None:
        match event:
            case Message():
                await unbroken(self._message(event))
            case ToolEnded():
                self._calls.pop(event.result.id, None)
                draft = Draft(role="tool", parts=(event.result, *event.extra), meta=event.meta)
                await unbroken(self._keep(draft))
            case ToolProgress() | Context() | Notice():
                self._emit(event)
            case Stopped():
                self._stop = event.reason
            case _:
                raise EngineError(f"the engine told something that is no event: {event!r:.200}")

    async def _message(self, event: Message) -> None:
        usage = event.usage or Usage()
        self._usages.append(usage)
        self._calls.update((part.id, part) for part in event.parts if isinstance(part, ToolCall))
        draft = Draft(
            role="assistant",
            parts=event.parts,
            id=self._saying.entry,
            model=event.model,
            usage=event.usage,
            tokens=usage.output,
            meta=event.meta,
        )
        self._answer = await self._keep(draft)

    async def _keep(self, draft: Draft) -> Entry:
        """Store an entry, then show it; whoever watches never sees it both stored and as live text."""
        async with self._writing:
            (entry,) = await self._desk.keep([draft], self._fence)
            if draft.id == self._saying.entry:
                self._saying = Saying(self._desk.new_id())
        self._emit(Stored(entry=entry))
        return entry

    # Beside the engine

    async def _hold_lease(self) -> None:
        """Renew the lease as long as the turn runs; without it the turn cannot go on."""
        while not await happens(self._over, RENEW_SECONDS):
            try:
                await self._desk.renew(self._fence, LEASE_MS)
            except LeaseLost:
                self._lost = True
                self.cancel()
                return
            except RecollectError:
                continue  # the store may come back before the lease is over; each step tells if it does not

    async def _show(self) -> None:
        """Show what is being said to every process, at most ten times a second."""
        while not self._over.is_set():
            await self._dirty.wait()
            self._dirty.clear()
            async with self._writing:
                if self._saying and not self._over.is_set():
                    with suppress(
                        RecollectError
                    ):  # it is only a preview; what is stored does not depend on it
                        await self._desk.show(self._saying.live(), self._fence)
            await happens(self._over, LIVE_SECONDS)

    # What tools may do

    async def _permit(self, call: ToolCall) -> Verdict:
        """Whether a tool may run; one question at a time, and an answer for always covers those that wait."""
        async with self._questions:
            ruling = decided(self._choices.mode, self._session.meta, call)
            if ruling == "allow":
                return Verdict(allowed=True)
            if ruling == "refuse":
                return Verdict(allowed=False, reason=REFUSED.get(self._choices.mode, REJECTED))
            if self._ask is None:
                return Verdict(allowed=False, reason=NOBODY)
            await self._desk.status("waiting")
            answer = await self._ask(call)
            await self._desk.status("running")
            return await self._settled(call, answer)

    async def _settled(self, call: ToolCall, answer: Choice | Verdict) -> Verdict:
        if isinstance(answer, Verdict):
            return answer
        if answer not in CHOICES:
            raise EngineError(f"an answer about a tool is one of {', '.join(CHOICES)}, not {answer!r}")
        meta = remembering(self._session.meta, call, answer)
        if meta is not self._session.meta:
            self._session = replace(self._session, meta=meta)
            await self._desk.remember({REMEMBERED: meta[REMEMBERED]})
        return Verdict(allowed=answer.startswith("allow"), reason=REJECTED)

    # The end

    def _failure(self) -> RecollectError | None:
        """What went wrong in the engine, if anything did."""
        if self._lost:
            return LeaseLost()
        if self._engine is None or self._engine.cancelled():
            self._stop = "cancelled"
            return None
        error = self._engine.exception()
        if error is None or isinstance(error, RecollectError):
            return error
        failure = EngineError(f"the engine failed: {type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure

    async def _finish(self, failure: RecollectError | None) -> Outcome:
        """Store what was left unfinished, tell how it ended, give the lease back."""
        if isinstance(failure, LeaseLost):
            raise failure
        outcome = Outcome(
            stop_reason=self._stop,
            prompt=self._prompt,
            answer=self._answer.id if self._answer else None,
            text=plain_text(self._answer) if self._answer else "",
            usage=summed(self._usages),
            requests=len(self._usages),
        )
        status: Status = "idle" if failure is None else "failed"
        entries = await self._desk.finish(self._unfinished(failure), self._fence, outcome, status, self._key)
        for entry in entries:
            self._emit(Stored(entry=entry))
        if failure is not None:
            raise failure
        return outcome

    def _unfinished(self, failure: RecollectError | None) -> list[Draft]:
        """What was being said, and an end for each tool that has none."""
        why = CANCELLED if self._stop == "cancelled" else INTERRUPTED
        marked: Json = {"partial": why} if failure is None else {"partial": why, "error": str(failure)}
        said = [self._saying.partial(marked)] if self._saying else []
        return [*said, *failed(self._calls.values(), why)]


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do this to its end even if the caller is cancelled meanwhile; the cancellation is felt afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event happens within so many seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
