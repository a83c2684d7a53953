"""One running turn: an engine says what happens, and each step is stored before the next is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from hitherto.engine import (
    Choices,
    ClientHost,
    Context,
    Conversation,
    Delta,
    Elicit,
    Elicitation,
    Event,
    Heard,
    Message,
    Notice,
    Reply,
    Stopped,
    StopReason,
    ToolEnded,
    ToolProgress,
    Turn,
    running_call,
    summariser_of,
)
from hitherto.errors import ContextTooLong, EngineError, HithertoError, LeaseLost, SessionNotFound
from hitherto.model import Draft, Entry, Json, ToolCall, Usage, plain_text
from hitherto.permissions import CHOICES, REMEMBERED, Choice, Mode, Verdict, decide, remember
from hitherto.service.compaction.plan import as_compaction
from hitherto.service.turns.context import (
    CANCELLED,
    CUT_OFF,
    INTERRUPTED,
    WITHDRAWN,
    failed_results,
    sum_usage,
)
from hitherto.service.turns.journal import Begun, TurnJournal
from hitherto.service.turns.partial_message import CallIds, PartialMessage
from hitherto.tasks import finish, happens, wait_all
from hitherto.updates import Ask, Compacted, Emit, Outcome, Said, Stored
from hitherto.values.token_count import context_size
from hitherto.values.usage.prices import ASSUMED_WINDOW

T = TypeVar("T")
LEASE_MS = 15_000
RENEW_SECONDS = 5.0
LIVE_SECONDS = 0.1
SMALLER = 4
"""How often a turn is retried with a smaller context."""
ANSWER_SECONDS = 0.2
"""How often a waiting turn looks for an answer given in another process."""
REPLY_SECONDS = 600.0
"""How long a tool server waits for what it asked the user."""
LOOK_SECONDS = 0.5
"""How often a turn looks for a request to end it."""

REFUSED = {
    "plan": "refused: in plan mode nothing may be changed; describe what you would do instead",
    "dontAsk": "refused: this needs permission, and this mode never asks",
}
NOBODY = "refused: this needs permission, and there is nobody to ask"
REJECTED = "refused by the user"
UNAIDED = "the context was summarised without the model: {}"
ASSUMED = (
    "the window of the model is not known: {:,} tokens are assumed, and the context of about {:,} is summarised first;"
    " HITHERTO_WINDOWS sets the window of a model"
)


class RunningTurn:
    """Runs a turn that has begun. `run` returns its outcome, also when it was cancelled, or raises what went wrong;
    either way all that was said is stored by then and the lease is given back."""

    def __init__(
        self,
        journal: TurnJournal,
        begun: Begun,
        conversation: Conversation,
        choices: Choices,
        window: int | None,
        ask: Ask | None,
        emit: Emit,
        servers: str,
        mode: Callable[[], Mode] | None,
        elicit: Elicit | None = None,
        host: ClientHost | None = None,
    ) -> None:
        self._mode = mode or (lambda: choices.mode)
        self._journal, self._conversation, self._choices = journal, conversation, choices
        self._servers = servers
        self._session, self._history, self._fence = begun.session, begun.history, begun.lease.fence
        self._begun, self._prompt = list(begun.added), begun.history[-1].id
        self._asked = [entry for entry in begun.added if entry.role == "user"] or [begun.history[-1]]
        self._rows = list(begun.rows)
        self._window, self._assumed = window or ASSUMED_WINDOW, window is None
        self._ask, self._emit, self._ask_user = ask, emit, elicit
        self._host = host
        self._elicitations: set[asyncio.Task[Reply]] = set()
        self._elicited: dict[str, list[Json]] = {}
        self._partial = PartialMessage(journal.new_id())
        self._ids, self._calls = CallIds(), dict[str, ToolCall]()
        self._inputs: dict[str, Any] = {}
        self._tools: dict[str, ToolProgress] = {}
        self._context: Context | None = None
        self._usages: list[Usage] = []
        self._answer: Entry | None = None
        self._stop: StopReason = "end_turn"
        self._questions, self._writing, self._regaining = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self._over, self._dirty = asyncio.Event(), asyncio.Event()
        self._engine: asyncio.Task[None] | None = None
        self._cancelled = False
        self._lost: HithertoError | None = None

    async def run(self) -> Outcome:
        """The whole turn."""
        self._engine = asyncio.create_task(self._follow_engine(), name="turn")
        if self._cancelled:
            self._engine.cancel()
        beside = [asyncio.create_task(work) for work in (self._hold_lease(), self._show(), self._listen())]
        try:
            await asyncio.wait([self._engine])
        finally:  # also when the whole program ends
            self._engine.cancel()
            await wait_all(self._engine)
            self._over.set()
            self._dirty.set()
            await wait_all(*beside, *self._elicitations)
        return await finish(self._finish(self._failure()))

    def cancel(self) -> None:
        """End the turn where it is, if only at its very beginning; what was said is kept."""
        if self._engine is not None and not self._cancelled:
            self._engine.cancel()
        self._cancelled = True

    # The engine

    async def _follow_engine(self) -> None:
        """Follow the engine to its end. A context that nears the window is made smaller first; one that proves too
        long all the same, at the beginning or as it grows, is made smaller where it is."""
        self._emit_begun()
        used = await asyncio.to_thread(context_size, self._history)
        if self._journal.is_full(used.number, self._window):
            if self._assumed:
                self._emit(Notice(text=ASSUMED.format(self._window, used.number)))
            await self._make_room()
        for more in reversed(range(SMALLER)):
            try:
                await self._follow()
                return
            except ContextTooLong:
                if not more or not await self._make_room():
                    raise

    def _emit_begun(self) -> None:
        """Show what the beginning of the turn has stored, once."""
        while self._begun:
            self._emit(Stored(entry=self._begun.pop(0)))

    async def _make_room(self) -> bool:
        summariser = summariser_of(self._conversation, self._choices)
        done = await self._fenced(
            lambda fence: self._journal.make_room(fence, self._window, summariser, self._emit)
        )
        if done.fallback is not None:
            self._emit(Notice(text=UNAIDED.format(done.fallback), severity="warning"))
        if (compaction := as_compaction(done)) is None:
            return False
        self._emit(Compacted(compaction=compaction))
        self._history = await self._journal.context()
        return True

    async def _follow(self) -> None:
        notebook, remembered = await self._journal.remember_for(self._session, self._history, self._asked)
        turn = Turn(
            session=self._session,
            history=self._history,
            choices=self._choices,
            permit=self._permit,
            steered=self._steered,
            elicit=self._elicit,
            remembered=remembered,
            notebook=notebook,
        )
        events = self._conversation.run(turn)
        try:
            async for event in events:
                if type(event) is Delta:
                    self._handle_delta(event)
                else:
                    await self._handle_event(event)
        finally:
            if (close := getattr(events, "aclose", None)) is not None:
                await close()

    def _handle_delta(self, delta: Delta) -> None:
        self._partial.add(delta)
        self._emit(Said(entry=self._partial.entry, text=delta.text, thought=delta.thought))
        self._dirty.set()

    async def _handle_event(self, event: Event) -> None:
        match event:
            case Message():
                await finish(self._message(event))
            case ToolEnded():
                await finish(self._keep(self._ended(event)))
            case Heard():
                await finish(self._keep(Draft(role="user", parts=event.parts, meta=event.meta)))
            case ToolProgress():
                self._show_tool(replace(event, id=self._ids.stored(event.id)))
            case Context():
                self._context = event
                self._emit(event)
                self._dirty.set()
            case Notice():
                self._emit(event)
            case Stopped():
                self._stop = event.reason
            case _:
                raise EngineError(f"the engine sent something that is not an event: {event!r:.200}")

    def _show_tool(self, running: ToolProgress) -> None:
        self._tools[running.id] = running
        self._emit(running)
        self._dirty.set()

    def _ended(self, event: ToolEnded) -> Draft:
        number = self._ids.stored(event.result.id)
        self._calls.pop(number, None)
        self._tools.pop(number, None)
        changed, elicited = self._inputs.pop(number, None), self._elicited.pop(number, None)
        meta = event.meta if changed is None else {**event.meta, "input": changed}
        if elicited is not None:
            meta = {**meta, "elicitations": elicited}
        return Draft(role="tool", parts=(replace(event.result, id=number), *event.extra), meta=meta)

    async def _message(self, event: Message) -> None:
        usage = event.usage or Usage()
        self._usages.append(usage)
        parts = self._ids.taken(event.parts, self._history)
        self._calls.update((part.id, part) for part in parts if isinstance(part, ToolCall))
        draft = Draft(
            role="assistant",
            parts=parts,
            id=self._partial.entry,
            model=event.model,
            usage=event.usage,
            tokens=usage.output,
            meta=event.meta,
        )
        self._answer = await self._keep(draft)

    async def _keep(self, draft: Draft) -> Entry:
        """Store an entry, then show it; whoever watches never sees it both stored and as live text."""
        async with self._writing:
            (entry,) = await self._fenced(lambda fence: self._journal.keep([draft], fence))
            if draft.id == self._partial.entry:
                self._partial = PartialMessage(self._journal.new_id())
        self._emit(Stored(entry=entry))
        if self._tools:  # others still run
            self._dirty.set()
        return entry

    async def _steered(self) -> tuple[Entry, ...]:
        """What was said to the turn meanwhile, stored behind all that it has said; never between a call and its result."""
        if self._calls or not await self._journal.is_steered():
            return ()
        return await finish(self._take_in())

    async def _take_in(self) -> tuple[Entry, ...]:
        async with self._writing:
            rows = await self._fenced(self._journal.steer)
            self._rows.extend(rows)
        entries = tuple(entry for row in rows for entry in row.entries)
        for entry in entries:
            self._emit(Stored(entry=entry))
        return entries

    # Beside the engine

    async def _hold_lease(self) -> None:
        """Renew the lease as long as the turn runs; without it the turn cannot continue."""
        while not await happens(self._over, RENEW_SECONDS):
            try:
                await self._fenced(lambda fence: self._journal.renew(fence, LEASE_MS))
            except LeaseLost as lost:
                self._give_up(lost)
                return
            except HithertoError:
                continue  # the store may come back before the lease is over; each step fails if it does not

    async def _listen(self) -> None:
        """End the turn if another process wants that, through whichever door it was begun; or has deleted the session,
        so that nothing of it could be kept."""
        while not await happens(self._over, LOOK_SECONDS):
            try:
                if await self._journal.end_requested():
                    self.cancel()
                    return
            except SessionNotFound as gone:
                self._give_up(gone)
                return
            except HithertoError:
                continue  # the store may be away for a moment; each step fails if it stays so

    def _give_up(self, why: HithertoError) -> None:
        """End a turn that can store nothing any more."""
        self._lost = why
        self.cancel()

    async def _fenced(self, work: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """Do this under the lease. One that ran out while the machine slept is taken anew if nobody else has had it."""
        fence = self._fence
        try:
            return await work(fence)
        except LeaseLost:
            async with self._regaining:
                if self._fence == fence:
                    self._fence = await self._journal.regain(fence, LEASE_MS, self._rows)
            return await work(self._fence)

    async def _show(self) -> None:
        """Show what is being said to every process, at most ten times a second."""
        while not self._over.is_set():
            await self._dirty.wait()
            self._dirty.clear()
            async with self._writing:
                if (self._partial or self._tools or self._context) and not self._over.is_set():
                    live = self._partial.live(self._tools.values(), self._context)
                    # It is only a preview; what is stored does not depend on it.
                    with suppress(HithertoError):
                        await self._fenced(partial(self._journal.show, live))
            await happens(self._over, LIVE_SECONDS)

    # What tools may do

    async def _permit(self, call: ToolCall) -> Verdict:
        """Whether a tool may run. If it may, it is shown to run, without any output yet."""
        call = replace(call, id=self._ids.stored(call.id))
        verdict = await self._verdict(call)
        if verdict.allowed:
            running_call.set(call)  # of the task that asks, which runs the tool
            self._show_tool(ToolProgress(id=call.id))
        return verdict

    async def _verdict(self, call: ToolCall) -> Verdict:
        """The ruling; one question at a time, and an answer for always covers those that wait."""
        if (verdict := self._known(call)) is not None:
            return verdict
        async with self._questions:
            if (verdict := self._known(call)) is not None:
                return verdict
            if self._ask is None:
                return Verdict(allowed=False, reason=NOBODY)
            alone = self._host is not None and self._host.approves(call)
            await self._fenced(lambda fence: self._journal.ask(call, fence, alone=alone))
            answer = await (self._ask(call) if alone else self._answer_about(call, self._ask))
            await self._journal.status("running")
            return await self._apply_answer(call, answer)

    async def _answer_about(self, call: ToolCall, ask: Ask) -> Choice | Verdict:
        """What is answered first, by whoever is asked here or by somebody elsewhere."""
        return await _first(ask(call), self._answer_from_elsewhere(call))

    async def _answer_from_elsewhere(self, call: ToolCall) -> Choice:
        while not await happens(self._over, ANSWER_SECONDS):
            with suppress(HithertoError):  # the store may be away for a moment
                if (answer := await self._journal.answered(call)) is not None:
                    return answer
        raise asyncio.CancelledError

    # What tool servers ask

    async def _elicit(self, asked: Elicitation) -> Reply:
        """What the user says to a tool server: here, or elsewhere. It is kept with the result of the call; what is not
        answered when the turn ends, or for too long, is cancelled."""
        if self._ask_user is None or self._over.is_set():
            return Reply(action="cancel")
        task = asyncio.create_task(self._reply_to(asked, self._ask_user))
        self._elicitations.add(task)
        task.add_done_callback(self._elicitations.discard)
        return await task

    async def _reply_to(self, asked: Elicitation, ask: Elicit) -> Reply:
        async with self._questions:
            await self._fenced(lambda fence: self._journal.elicit(asked, fence))
            reply = await _first(ask(asked), self._reply_from_elsewhere(asked))
            await self._journal.status("running")
        kept: Json = {"server": asked.server, "message": asked.message, "action": reply.action}
        kept |= {} if asked.url is None else {"url": asked.url}
        kept |= {} if reply.content is None else {"content": reply.content}
        self._elicited.setdefault(asked.call, []).append(kept)
        return reply

    async def _reply_from_elsewhere(self, asked: Elicitation) -> Reply:
        deadline = asyncio.get_running_loop().time() + REPLY_SECONDS
        while not await happens(self._over, ANSWER_SECONDS):
            with suppress(HithertoError):  # the store may be away for a moment
                if (reply := await self._journal.replied(asked)) is not None:
                    return reply
            if asyncio.get_running_loop().time() > deadline:
                break
        return Reply(action="cancel")

    def _known(self, call: ToolCall) -> Verdict | None:
        """What needs no question, in the mode of now."""
        mode = self._mode()
        ruling = decide(mode, self._session, call, self._servers)
        if ruling == "ask":
            return None
        refused = REFUSED.get(mode, REJECTED)
        return Verdict(allowed=ruling == "allow", reason="" if ruling == "allow" else refused)

    async def _apply_answer(self, call: ToolCall, answer: Choice | Verdict) -> Verdict:
        if isinstance(answer, Verdict):
            if answer.allowed and answer.input is not None:
                self._inputs[call.id] = answer.input
            return answer
        if answer not in CHOICES:
            raise EngineError(f"unknown answer {answer!r} about a tool: use one of {', '.join(CHOICES)}")
        meta = remember(self._session, call, answer, self._servers)
        if meta is not self._session.meta:
            self._session = replace(self._session, meta=meta)
            await self._journal.remember({REMEMBERED: meta[REMEMBERED]})
        return Verdict(allowed=answer.startswith("allow"), reason=REJECTED)

    # The end

    def _failure(self) -> HithertoError | None:
        """What went wrong in the engine, if anything did."""
        if self._lost is not None:
            return self._lost
        if self._engine is None or self._engine.cancelled():
            self._stop = "cancelled"
            return self._emit_begun_late()
        error = self._engine.exception()
        return None if error is None else _as_hitherto_error(error)

    def _emit_begun_late(self) -> HithertoError | None:
        """Report what a turn stored that was cancelled before its first step."""
        try:
            self._emit_begun()
        except Exception as error:  # noqa: BLE001 - whatever it is, the turn must be finished
            return _as_hitherto_error(error)
        return None

    async def _finish(self, failure: HithertoError | None) -> Outcome:
        """Store what was left unfinished, report how it ended, release the lease."""
        if isinstance(failure, LeaseLost | SessionNotFound):
            raise failure
        unfinished = self._unfinished(failure)
        said = next((draft for draft in unfinished if draft.role == "assistant"), self._answer)
        outcome = Outcome(
            stop_reason=self._stop,
            prompt=self._prompt,
            answer=said.id if said else None,
            text=plain_text(said) if said else "",
            usage=sum_usage(self._usages),
            requests=len(self._usages),
        )
        try:
            entries = await self._store_end(unfinished, outcome, failure)
        except LeaseLost:
            raise
        except (
            HithertoError
        ) as error:  # it cannot be stored: then at least the session is not left as running
            failure = failure or error
            entries = await self._store_end([], outcome, failure)
        for entry in entries:
            self._emit(Stored(entry=entry))
        if failure is not None:
            raise failure
        return outcome

    async def _store_end(
        self, drafts: list[Draft], outcome: Outcome, failure: HithertoError | None
    ) -> list[Entry]:
        return await self._fenced(
            lambda fence: self._journal.finish(drafts, fence, outcome, failure, self._rows)
        )

    def _unfinished(self, failure: HithertoError | None) -> list[Draft]:
        """What was being said, and an end for each tool that has none."""
        cancelled = self._stop == "cancelled"
        results = failed_results(self._calls.values(), CANCELLED if cancelled else INTERRUPTED)
        if not self._partial:
            return results
        self._usages.append(Usage())  # the cost of an unfinished answer is unknown
        marked: Json = {"partial": WITHDRAWN if cancelled else CUT_OFF}
        if failure is not None:
            marked["error"] = str(failure)
        return [self._partial.partial(marked), *results]


async def _first(here: Awaitable[T], there: Awaitable[T]) -> T:
    """What comes first; the other is cancelled."""
    both = asyncio.ensure_future(here), asyncio.ensure_future(there)
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return both[0].result() if both[0].done() else both[1].result()
    finally:
        for each in both:
            each.cancel()
        await wait_all(*both)


def _as_hitherto_error(error: BaseException) -> HithertoError:
    """What went wrong, as an error of ours."""
    if isinstance(error, HithertoError):
        return error
    failure = EngineError(f"the engine failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
