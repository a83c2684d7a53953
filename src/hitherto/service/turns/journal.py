"""The transactions of a session's turns: the prompt, each step, the end. Nothing here waits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from hitherto.clean_text import clean_lines
from hitherto.engine import Choices, Elicitation, Reply
from hitherto.errors import (
    Busy,
    EngineError,
    EntryNotFound,
    HithertoError,
    Interrupted,
    LeaseLost,
    ReadOnly,
    error_from,
)
from hitherto.model import (
    OWN,
    Draft,
    Entry,
    Fact,
    Json,
    Lease,
    Pending,
    Principal,
    QueueMode,
    Session,
    Shrunk,
    Status,
    ToolCall,
    decode_entry,
    plain_text,
)
from hitherto.permissions import Choice
from hitherto.ports import Reader, Record, Writer
from hitherto.service.catalog.metadata import title_fields
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.changes import Changes
from hitherto.service.compaction.compact import Compaction
from hitherto.service.core import Core
from hitherto.service.history.append import append_entries, complete_draft, title_from_prompt, unarchive
from hitherto.service.history.inbox import (
    is_held,
    must_wait,
    next_rows,
    place,
    place_unanswered,
    put_pending,
    steering_rows,
    withdraw,
)
from hitherto.service.history.places import find_place, load_everything, payload_at
from hitherto.service.idempotency import Request
from hitherto.service.memory.notebook import SessionNotebook
from hitherto.service.notes import END_REQUESTS, QUEUED, RUNS, TURNS, Note, Run, forget_question
from hitherto.service.records import (
    active_lease,
    change_session,
    context_entries,
    require_session,
    require_writable,
)
from hitherto.service.turns.context import policy_for_window
from hitherto.service.turns.interrupted import left_open
from hitherto.service.turns.leases import Leases, take_lease
from hitherto.service.turns.questions import Questions
from hitherto.service.validation import checked_drafts, checked_title
from hitherto.summariser import Summariser
from hitherto.updates import Emit, Outcome

FAILURE = f"{OWN}failure"
"""The key of a session's meta under which stands which prompt could not be answered in its last turn, and why."""
FAILURE_CHARS = 2_000


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose prompt is stored: the session, its context with the prompt last, and the lease it runs under.

    `rows` are what it answers, as far as somebody may ask for its end: rows of the inbox, and a prompt with a key.
    """

    session: Session
    history: tuple[Entry, ...]
    added: tuple[Entry, ...]
    lease: Lease
    rows: tuple[Pending, ...] = ()


class Queueing(msgspec.Struct, frozen=True, kw_only=True):
    """How a prompt waits for the turn that runs; `choices` and `ask` are those of the turn that answers it."""

    mode: QueueMode
    choices: Choices = Choices()
    ask: bool = False


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt in the inbox, and its place there: 0 once a turn answers it. `free`: no turn runs."""

    id: str
    place: int
    free: bool = False


class TurnJournal:
    """Stores the turns of one session; every step is checked against the lease of its turn. `by` is who runs them: prompts
    that wait for a turn wait for the same."""

    def __init__(self, core: Core, who: Principal, session_id: str, by: str = "") -> None:
        self._core, self._who, self._id, self._by = core, who, session_id, by
        self._store, self._now = core.store, core.now
        self._catalog, self._changes, self._compaction = Catalog(core), Changes(core), Compaction(core)
        self._leases, self._questions = Leases(core), Questions(core)

    async def remember_for(
        self, session: Session, history: Sequence[Entry], asked: Sequence[Entry]
    ) -> tuple[SessionNotebook | None, tuple[Fact, ...]]:
        """The memory of whoever speaks in the session, and what of it bears on what is asked; nothing where none is kept."""
        tokens = self._core.compaction.memory_tokens
        if not tokens or not self._core.home.remembers:
            return None, ()
        notebook = SessionNotebook(self._core, self._who, session, history[-1].id)
        return notebook, await notebook.bearing(history, asked, tokens)

    def new_id(self) -> str:
        """An id for an entry that is about to be said."""
        return self._core.new_id()

    async def begin(
        self,
        holder: str,
        ttl_ms: int,
        prompt: Draft,
        key: str | None,
        queueing: Queueing | None = None,
    ) -> Begun | Waiting | Outcome:
        """Take the lease and store the prompt, in one transaction; what a dead turn left open is closed before it.

        The outcome comes back if the turn of this idempotency key has been run already. While another turn runs, or
        others wait, the prompt is stored in the inbox if it may wait, else that is `Busy`. `Interrupted` if this one was
        begun and never ended.
        """
        now = self._now()

        async def work(tx: Writer) -> Begun | Waiting | Outcome:
            record = await require_session(tx, self._who, self._id)
            if record.session.source is not None:
                raise ReadOnly(record.session.id)
            request = Request.of(TURNS, record.owner, key, [self._id, prompt], now)
            known = None if request is None else await request.answered(tx)
            if known is not None and (before := await _earlier(tx, record, known, key, queueing)) is not None:
                return before
            record, waits = await must_wait(tx, record, now, self._store.secret)
            if waits and queueing is None:
                raise await _busy(tx, record)
            if known is not None:
                raise Interrupted(key)
            (draft,) = checked_drafts([prompt])
            self._core.home.check_space(record)
            row = self._row(
                complete_draft(draft, now, self.new_id), key, queueing or Queueing(mode="followup")
            )
            if request is not None and key is not None:
                await request.remember(tx, None)
                await QUEUED.put(tx, record.owner, key, Note(row.id, now))
            if waits:
                return await self._enqueued(tx, record, row)
            return await self._begun(tx, record, row.entries, [] if key is None else [row], holder, ttl_ms)

        return await self._store.write(work, self._id)

    async def next(self, holder: str, ttl_ms: int, prompt: str | None = None) -> Begun | None:
        """Begin the next turn of the inbox, in one transaction: take the lease, and make entries of the rows that it answers.

        None if a turn runs, if nothing waits that this runner may answer, or if that turn would not answer `prompt`.
        """
        now = self._now()

        async def work(tx: Writer) -> Begun | None:
            record = await require_session(tx, self._who, self._id)
            if await is_held(tx, record):
                return None
            record = await place_unanswered(tx, record, now, self._store.secret)
            rows = next_rows(await tx.inbox(record.owner, record.num), self._by)
            if not rows or (prompt is not None and all(row.id != prompt for row in rows)):
                return None
            await tx.drop_pending(record, [row.id for row in rows])
            entries = [entry for row in rows for entry in row.entries]
            return await self._begun(tx, record, entries, rows, holder, ttl_ms)

        return await self._store.write(work, self._id)

    def _row(self, entry: Entry, key: str | None, queueing: Queueing) -> Pending:
        return Pending(
            id=entry.id,
            at=entry.at,
            entries=(entry,),
            mode=queueing.mode,
            by=self._by,
            key=key,
            ask=queueing.ask,
            choices=msgspec.to_builtins(queueing.choices),
        )

    async def _enqueued(self, tx: Writer, record: Record, row: Pending) -> Waiting:
        at = await put_pending(tx, record, row)
        held = active_lease(record.lease, await tx.now())
        if row.mode == "interrupt" and held is not None:
            await END_REQUESTS.put(tx, record.owner, self._id, Note(held.fence, self._now()))
        return Waiting(id=row.id, place=at, free=held is None)

    async def _begun(
        self,
        tx: Writer,
        record: Record,
        entries: Sequence[Entry],
        rows: Sequence[Pending],
        holder: str,
        ttl_ms: int,
    ) -> Begun:
        now = self._now()
        lease = await take_lease(tx, record, holder, ttl_ms)
        record = replace(record, lease=lease)
        before = await context_entries(tx, record)
        closing = await left_open(tx, record, before)
        added = [*(complete_draft(draft, now, self.new_id) for draft in closing), *entries]
        record = await append_entries(tx, record, added, now, self._store.secret)
        record = await unarchive(tx, record)
        await tx.put_live(record, None)
        record = await title_from_prompt(tx, record, added)
        await _note_runs(tx, record.owner, rows, Run(fence=lease.fence), now)
        meta = _without_failure(record.session)
        record = await change_session(tx, record, "status", status="running", meta=meta)
        return Begun(
            session=record.session,
            history=(*before, *added),
            added=tuple(added),
            lease=lease,
            rows=tuple(rows),
        )

    async def fate(self, prompt: str, key: str | None) -> Waiting | Outcome:
        """What has become of a prompt that was put into the inbox. Raises what its turn failed with."""

        async def work(tx: Reader) -> Waiting | Outcome:
            return await _fate(tx, await require_session(tx, self._who, self._id), prompt, key)

        return await self._store.read(work)

    async def withdraw(self, prompt: str) -> None:
        """Take a prompt out of the inbox, if it still waits there."""
        now = self._now()

        async def work(tx: Writer) -> None:
            await withdraw(tx, await require_session(tx, self._who, self._id), prompt, now)

        await self._store.write(work, self._id)

    async def is_steered(self) -> bool:
        """Whether something was said to the running turn."""

        async def work(tx: Reader) -> bool:
            record = await require_session(tx, self._who, self._id)
            return bool((await tx.inbox_size(record.owner, record.num)).rows)

        return await self._store.read(work)

    async def steer(self, fence: int) -> tuple[Pending, ...]:
        """Make entries of what was said to the running turn, as far as it comes first in the inbox."""
        now = self._now()

        async def work(tx: Writer) -> tuple[Pending, ...]:
            record = await require_session(tx, self._who, self._id)
            await require_writable(tx, record, fence)
            rows = steering_rows(await tx.inbox(record.owner, record.num), self._by)
            await place(tx, record, rows, now, self._store.secret)
            await _note_runs(tx, record.owner, rows, Run(fence=fence), now)
            return rows

        return await self._store.write(work, self._id)

    async def keep(self, drafts: Sequence[Draft], fence: int) -> list[Entry]:
        """Store what has been said or done; the live text goes with it."""
        now = self._now()

        async def work(tx: Writer) -> list[Entry]:
            return (await self._kept(tx, drafts, fence, now))[1]

        return await self._store.write(work, self._id)

    async def _kept(
        self, tx: Writer, drafts: Sequence[Draft], fence: int, now: int
    ) -> tuple[Record, list[Entry]]:
        record = await require_session(tx, self._who, self._id)
        await require_writable(tx, record, fence)
        entries = [complete_draft(draft, now, self.new_id) for draft in drafts]
        if entries:
            self._core.home.check_space(record)
            record = await append_entries(tx, record, entries, now, self._store.secret)
        await tx.put_live(record, None)
        return record, entries

    async def finish(
        self,
        drafts: Sequence[Draft],
        fence: int,
        outcome: Outcome,
        failure: HithertoError | None,
        rows: Sequence[Pending],
    ) -> list[Entry]:
        """Store what was left unfinished, why the turn failed if it did, and how it ended for whoever asks about the `rows`
        that it has answered; the lease is given back, and what waited without a turn of its own follows."""
        now = self._now()
        status: Status = "idle" if failure is None else "failed"

        async def work(tx: Writer) -> list[Entry]:
            record, entries = await self._kept(tx, drafts, fence, now)
            lease = record.lease
            if lease is not None:
                over = replace(lease, expires_at=await tx.now())
                await tx.put_lease(record, over)
                record = replace(record, lease=over)
            meta = _without_failure(record.session)
            if failure is not None:
                why = clean_lines(failure.message[:FAILURE_CHARS])
                meta[FAILURE] = {"prompt": outcome.prompt, "why": why}
            record = await change_session(tx, record, "status", status=status, meta=meta)
            await forget_question(tx, record.owner, record.session.id)
            await _note_ends(tx, record.owner, rows, fence, outcome, failure, now)
            await place_unanswered(tx, record, now, self._store.secret)
            return entries

        return await self._store.write(work, self._id)

    async def show(self, live: bytes, fence: int) -> None:
        """Show what is being said to every process."""
        await self._changes.put_live(self._who, self._id, live, fence=fence)

    async def renew(self, fence: int, ttl_ms: int) -> None:
        """Hold the lease for longer."""
        await self._leases.renew(self._who, self._id, fence, ttl_ms=ttl_ms)

    async def regain(self, fence: int, ttl_ms: int, rows: Sequence[Pending] = ()) -> int:
        """Take the lease anew that ran out under its holder, and return its fencing number; `LeaseLost` if somebody
        else has had it since. The turn goes on to answer these `rows`."""

        async def work(tx: Writer) -> int:
            record = await require_session(tx, self._who, self._id)
            if record.lease is None or record.lease.fence != fence:
                raise LeaseLost
            taken = (await take_lease(tx, record, record.lease.holder, ttl_ms)).fence
            await _note_runs(tx, record.owner, rows, Run(fence=taken), self._now())
            return taken

        return await self._store.write(work, self._id)

    async def status(self, status: Status) -> None:
        """Say what the session is doing."""
        await self._catalog.set_status(self._who, self._id, status)

    async def ask(self, call: ToolCall, fence: int, *, alone: bool = False) -> None:
        """Let every process see that the turn waits for an answer about this call; `alone`, from nobody else."""
        await self._questions.ask(self._who, self._id, call, fence=fence, alone=alone)

    async def elicit(self, asked: Elicitation, fence: int) -> None:
        """Let every process see that the turn waits for what a tool server wants to know."""
        await self._questions.elicit(self._who, self._id, asked, fence=fence)

    async def replied(self, asked: Elicitation) -> Reply | None:
        """What was replied elsewhere, if anything was."""
        return await self._questions.replied(self._who, self._id, asked.id)

    async def answered(self, call: ToolCall) -> Choice | None:
        """What was answered about this call elsewhere, if anything was."""
        return await self._questions.answered(self._who, self._id, call.id)

    async def remember(self, changes: Json) -> None:
        """Keep something of our own in the session's metadata."""
        await self._catalog.set_own_meta(self._who, self._id, changes)

    async def retitle(self, title: str, told: Sequence[Entry] = ()) -> Session:
        """Give a better title by machine; one that a person or another agent gave stays.

        It was made from what is `told`: if some of it was erased or is gone meanwhile, nothing changes.
        """

        async def work(tx: Writer) -> Session:
            record = await require_session(tx, self._who, self._id)
            better = checked_title(title)
            if better is None or record.session.title_by not in (None, "auto"):
                return record.session
            left = {entry.id: entry for entry in await context_entries(tx, record)}
            if any(left.get(entry.id) != entry for entry in told):
                return record.session
            fields = title_fields(record.session, better, "auto")
            return (await change_session(tx, record, "rename", **fields)).session

        return await self._store.write(work, self._id)

    async def context(self) -> tuple[Entry, ...]:
        """The session's context as it is now."""

        async def work(tx: Reader) -> tuple[Entry, ...]:
            return await context_entries(tx, await require_session(tx, self._who, self._id))

        return await self._store.read(work)

    def is_full(self, used: int, window: int) -> bool:
        """Whether a context that takes so much of the window is to be made smaller before the turn."""
        return used > self._core.compaction.at * window

    async def make_room(
        self, fence: int, window: int, summariser: Summariser | None, emit: Emit = lambda _: None
    ) -> Shrunk:
        """Make the context smaller, keeping its end."""
        policy = policy_for_window(window, self._core.compaction)
        return await self._compaction.shrink(
            self._who, self._id, summariser=summariser, policy=policy, fence=fence, emit=emit
        )

    async def end_requested(self) -> bool:
        """Whether another process wants the turn ended."""
        return await self._leases.end_requested(self._who, self._id)


async def _earlier(
    tx: Reader, record: Record, known: Note[Outcome | None], key: str | None, queueing: Queueing | None
) -> Waiting | Outcome | None:
    """What became of the prompt with this key; None if that is not known. `Busy` if it waits and the caller does not."""
    if known.value is not None:
        return await _retold(tx, record, known.value)
    queued = None if key is None else await QUEUED.get(tx, record.owner, key)
    if queued is None:
        return None
    fate = await _fate(tx, record, queued.value, key)
    if isinstance(fate, Waiting) and queueing is None:
        raise await _busy(tx, record)
    return fate


async def _busy(tx: Reader, record: Record) -> Busy:
    """Why the session cannot be written to now: a turn runs, or somebody waits for the next."""
    lease, now = record.lease, await tx.now()
    return Busy("", 0) if lease is None else Busy(lease.holder, max(now - lease.acquired_at, 0))


async def _fate(tx: Reader, record: Record, prompt: str, key: str | None) -> Waiting | Outcome:
    rows = [row.id for row in await tx.inbox(record.owner, record.num)]
    held = active_lease(record.lease, await tx.now())
    if prompt in rows:
        return Waiting(id=prompt, place=rows.index(prompt) + 1, free=held is None)
    note = await RUNS.get(tx, record.owner, prompt)
    run = Run(fence=0) if note is None else note.value
    if run.outcome is not None:
        return await _retold(tx, record, run.outcome)
    if run.code is not None:
        raise error_from(run.code, run.message) or EngineError(run.message)
    if held is None or held.fence != run.fence:
        raise Interrupted(key)
    return Waiting(id=prompt, place=0)


async def _note_runs(tx: Writer, owner: str, rows: Sequence[Pending], run: Run, now: int) -> None:
    for row in rows:
        if row.mode is not None:
            await RUNS.put(tx, owner, row.id, Note(run, now))


async def _note_ends(
    tx: Writer,
    owner: str,
    rows: Sequence[Pending],
    fence: int,
    outcome: Outcome,
    failure: HithertoError | None,
    now: int,
) -> None:
    """Note how the turn ended for every request that it has answered."""
    for row in rows:
        ended = replace(outcome, prompt=row.id, text="")
        if failure is None:
            await _note_runs(tx, owner, [row], Run(fence=fence, outcome=ended), now)
        else:
            why = failure.message[:FAILURE_CHARS]
            await _note_runs(tx, owner, [row], Run(fence=fence, code=failure.code, message=why), now)
        if row.key is not None and failure is None:
            await _note_outcome(tx, owner, row.key, ended)


async def _note_outcome(tx: Writer, owner: str, key: str, outcome: Outcome) -> None:
    """Note how the turn ended, for requests with the same idempotency key: without what was said."""
    if (begun := await TURNS.get(tx, owner, key)) is not None:
        await TURNS.put(tx, owner, key, begun._replace(value=replace(outcome, text="")))


async def _retold(tx: Reader, record: Record, outcome: Outcome) -> Outcome:
    """The outcome of an earlier turn, with its answer as far as that is still there."""
    if outcome.answer is None:
        return outcome
    with suppress(EntryNotFound):
        place = await find_place(tx, record, await load_everything(tx, record), outcome.answer)
        return replace(outcome, text=plain_text(decode_entry(await payload_at(tx, record.owner, place))))
    return outcome


def _without_failure(session: Session) -> Json:
    """The session's meta, without why an earlier turn failed."""
    return {name: value for name, value in session.meta.items() if name != FAILURE}
