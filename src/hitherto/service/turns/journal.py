"""The transactions of a session's turns: the prompt, each step, the end. Nothing here waits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from hitherto.clean_text import clean_lines
from hitherto.errors import EntryNotFound, Interrupted, LeaseLost, ReadOnly
from hitherto.model import (
    OWN,
    Draft,
    Entry,
    Json,
    Lease,
    Part,
    Principal,
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
from hitherto.service.history.places import find_place, load_everything, payload_at
from hitherto.service.idempotency import Request
from hitherto.service.notes import TURNS, forget_question
from hitherto.service.records import change_session, load_lists, require_session, require_writable
from hitherto.service.turns.context import INTERRUPTED, failed_results, policy_for_window, unanswered_calls
from hitherto.service.turns.leases import Leases, take_lease
from hitherto.service.turns.questions import Questions
from hitherto.service.validation import checked_drafts, checked_title
from hitherto.summariser import Summariser
from hitherto.updates import Outcome

FAILURE = f"{OWN}failure"
"""The key of a session's meta under which stands which prompt could not be answered in its last turn, and why."""
FAILURE_CHARS = 2_000


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """A turn whose prompt is stored: the session, its context with the prompt last, and the lease it runs under."""

    session: Session
    history: tuple[Entry, ...]
    added: tuple[Entry, ...]
    lease: Lease


class TurnJournal:
    """Stores the turns of one session; every step is checked against the lease of its turn."""

    def __init__(self, core: Core, who: Principal, session_id: str) -> None:
        self._core, self._who, self._id = core, who, session_id
        self._store, self._now = core.store, core.now
        self._catalog, self._changes, self._compaction = Catalog(core), Changes(core), Compaction(core)
        self._leases, self._questions = Leases(core), Questions(core)

    def new_id(self) -> str:
        """An id for an entry that is about to be said."""
        return self._core.new_id()

    async def begin(
        self, holder: str, ttl_ms: int, parts: Sequence[Part], key: str | None
    ) -> Begun | Outcome:
        """Take the lease and store the prompt, in one transaction; what a dead turn left open is closed before it.

        The outcome comes back if the turn of this idempotency key has been run already. `Busy` if another turn runs,
        `Interrupted` if this one was begun and never ended.
        """
        now, prompt = self._now(), Draft(role="user", parts=tuple(parts))

        async def work(tx: Writer) -> Begun | Outcome:
            record = await require_session(tx, self._who, self._id)
            if record.session.source is not None:
                raise ReadOnly(record.session.id)
            request = Request.of(TURNS, record.owner, key, [self._id, prompt], now)
            known = None if request is None else await request.answered(tx)
            if known is not None and known.value is not None:
                return await _retold(tx, record, known.value)
            lease = await take_lease(tx, record, holder, ttl_ms)
            if key is not None and known is not None:
                raise Interrupted(key)
            if request is not None:
                await request.remember(tx, None)
            record = replace(record, lease=lease)
            before = await _context(tx, record)
            drafts = checked_drafts([*failed_results(unanswered_calls(before), INTERRUPTED), prompt])
            self._core.home.check_space(record)
            added = [complete_draft(draft, now, self.new_id) for draft in drafts]
            record = await append_entries(tx, record, added, now, self._store.secret)
            record = await unarchive(tx, record)
            await tx.put_live(record, None)
            record = await title_from_prompt(tx, record, added)
            meta = _without_failure(record.session)
            record = await change_session(tx, record, "status", status="running", meta=meta)
            return Begun(session=record.session, history=(*before, *added), added=tuple(added), lease=lease)

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
        self, drafts: Sequence[Draft], fence: int, outcome: Outcome, failure: str | None, key: str | None
    ) -> list[Entry]:
        """Store what was left unfinished, why the turn failed if it did, and the outcome; the lease is given back."""
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
                meta[FAILURE] = {"prompt": outcome.prompt, "why": clean_lines(failure[:FAILURE_CHARS])}
            await change_session(tx, record, "status", status=status, meta=meta)
            await forget_question(tx, record.owner, record.session.id)
            if key is not None and failure is None:
                await _note_outcome(tx, record.owner, key, outcome)
            return entries

        return await self._store.write(work, self._id)

    async def show(self, live: bytes, fence: int) -> None:
        """Show what is being said to every process."""
        await self._changes.put_live(self._who, self._id, live, fence=fence)

    async def renew(self, fence: int, ttl_ms: int) -> None:
        """Hold the lease for longer."""
        await self._leases.renew(self._who, self._id, fence, ttl_ms=ttl_ms)

    async def regain(self, fence: int, ttl_ms: int) -> int:
        """Take the lease anew that ran out under its holder, and return its fencing number; `LeaseLost` if somebody
        else has had it since."""

        async def work(tx: Writer) -> int:
            record = await require_session(tx, self._who, self._id)
            if record.lease is None or record.lease.fence != fence:
                raise LeaseLost
            return (await take_lease(tx, record, record.lease.holder, ttl_ms)).fence

        return await self._store.write(work, self._id)

    async def status(self, status: Status) -> None:
        """Say what the session is doing."""
        await self._catalog.set_status(self._who, self._id, status)

    async def ask(self, call: ToolCall, fence: int) -> None:
        """Let every process see that the turn waits for an answer about this call."""
        await self._questions.ask(self._who, self._id, call, fence=fence)

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
            left = {entry.id: entry for entry in await _context(tx, record)}
            if any(left.get(entry.id) != entry for entry in told):
                return record.session
            fields = title_fields(record.session, better, "auto")
            return (await change_session(tx, record, "rename", **fields)).session

        return await self._store.write(work, self._id)

    async def context(self) -> tuple[Entry, ...]:
        """The session's context as it is now."""

        async def work(tx: Reader) -> tuple[Entry, ...]:
            return await _context(tx, await require_session(tx, self._who, self._id))

        return await self._store.read(work)

    def is_full(self, used: int, window: int) -> bool:
        """Whether a context that takes so much of the window is to be made smaller before the turn."""
        return used > self._core.compaction.at * window

    async def make_room(self, fence: int, window: int, summariser: Summariser | None) -> Shrunk:
        """Make the context smaller, keeping its end."""
        policy = policy_for_window(window, self._core.compaction)
        return await self._compaction.shrink(
            self._who, self._id, summariser=summariser, policy=policy, fence=fence
        )

    async def end_requested(self) -> bool:
        """Whether another process wants the turn ended."""
        return await self._leases.end_requested(self._who, self._id)


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


async def _context(tx: Reader, record: Record) -> tuple[Entry, ...]:
    payloads = await tx.payloads(record.owner, (await load_lists(tx, record)).context())
    return tuple(map(decode_entry, payloads))


def _without_failure(session: Session) -> Json:
    """The session's meta, without why an earlier turn failed."""
    return {name: value for name, value in session.meta.items() if name != FAILURE}
