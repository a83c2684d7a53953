"""What was said: appending it, reading it, erasing it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from hitherto import spans as algebra
from hitherto.errors import (
    AlreadyExists,
    EntryNotFound,
    HithertoError,
    InvalidInput,
    StoreError,
    StoreFull,
    TooLarge,
)
from hitherto.limits import (
    ENTRY_BYTES,
    HISTORY_PAGE,
    LOG_ENTRIES,
    checked_limit,
    checked_number,
)
from hitherto.model import (
    Appended,
    Draft,
    Entry,
    HistoryPage,
    Principal,
    Session,
    View,
    decode_entry,
    encode,
    plain_text,
)
from hitherto.ports import Reader, Record, Row, Totals, Writer
from hitherto.service.catalog.sessions import titled
from hitherto.service.history.erasure import untold
from hitherto.service.idempotency import Request, at_most_once, expect_revision
from hitherto.service.notes import APPENDED
from hitherto.service.records import (
    Core,
    erased,
    is_erased,
    load_checkpoint,
    load_lists,
    required,
    totals_of,
    writable,
)
from hitherto.service.validation import MICROS, checked_drafts, checked_entry, checked_name, checked_owner
from hitherto.spans import Place, Stretch
from hitherto.titles import title_from

READ_NOTED_EVERY = 3_600_000
NOTING_SECONDS = 0.1
AHEAD_MS = 86_400_000
"""Clocks differ, but not by more."""


class History(Core):
    """The entries of sessions."""

    async def append(
        self,
        who: Principal,
        session_id: str,
        drafts: Draft | Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        expected_revision: int | None = None,
        fence: int | None = None,
    ) -> Appended:
        """Add messages to the end of a session, all or none; they are durable when this returns.

        `expected_revision` refuses if the session has changed since it was read; `fence` is the number of the
        caller's lease. The same idempotency key appends once.
        """
        given = (drafts,) if isinstance(drafts, Draft) else tuple(drafts)
        now = self._now()

        async def work(tx: Writer) -> Appended:
            record = await required(tx, who, session_id)
            await writable(tx, record, fence)
            expect_revision(record, expected_revision)
            self._check_room(record)
            entries = [self._complete(draft, now) for draft in checked_drafts(given)]
            await _expect_new(tx, record, [draft.id for draft in given if draft.id is not None])
            record = await append_entries(tx, record, entries, now)
            record = await self._taken_back(tx, record)
            await self._title_from(tx, record, entries)
            return Appended(
                entries=tuple(entry.id for entry in entries),
                revision=record.session.revision,
                message_count=record.session.message_count,
            )

        if idempotency_key is None:
            return await self._store.write(work)
        request = Request(APPENDED, checked_owner(who), idempotency_key, [session_id, given], now)

        async def once(tx: Writer) -> Appended:
            await required(tx, who, session_id)  # a deleted session answers nothing, whatever is remembered
            return await at_most_once(tx, request, work)

        return await self._store.write(once)

    async def history(
        self,
        who: Principal,
        session_id: str,
        *,
        view: View = "context",
        checkpoint: str | None = None,
        after: str | None = None,
        before: str | None = None,
        around: str | None = None,
        last: bool = False,
        limit: int = 100,
        max_bytes: int | None = None,
        seen: bool = False,
    ) -> HistoryPage:
        """A page of one view of a session, in the order in which it was said; as a checkpoint has it, if one is named.

        From the start, or with `last` up to the end; `after`, `before` and `around` name an entry of the view. A page
        of more than `max_bytes` is cut at the end that is farther from where it was asked for, at both ends around an
        entry; one entry it always has. `seen` says that somebody reads it with their own eyes: what was said until now
        is not new to them any more.
        """

        async def work(tx: Reader) -> tuple[Record, HistoryPage]:
            record = await required(tx, who, session_id)
            checked_limit(limit, HISTORY_PAGE)
            anchors = [anchor for anchor in (after, before, around) if anchor is not None]
            if len(anchors) + last > 1:
                raise InvalidInput("give one of after, before, around and last")
            if view not in ("context", "conversation"):
                raise InvalidInput(f"view is context or conversation, not {view!r}")
            if checkpoint is None:
                lists = await load_lists(tx, record)
            else:
                lists = await load_checkpoint(tx, record, checkpoint)
            stretches = lists.context() if view == "context" else lists.conversation()
            total = algebra.size(stretches)
            place = await _ordinal(tx, record, stretches, anchors[0]) if anchors else 0
            mode = _mode(after=after, before=before, around=around, last=last)
            start = {
                "after": place + 1,
                "before": place - limit,
                "around": place - limit // 2,
                "last": total - limit,
                "start": 0,
            }[mode]
            stop = place if before is not None else max(start, 0) + limit
            start, stop = max(start, 0), min(stop, total)
            if max_bytes is not None:
                asked = _Asked(start, stop, mode, place)
                start, stop = await _affordable(tx, record.owner, stretches, asked, max_bytes)
            past = algebra.left_behind(stretches, lists.context()) if view == "conversation" else 0
            return record, await _page(tx, record, stretches, start, stop, past)

        record, page = await self._store.read(work)
        await self._note_reading(record, seen=seen)
        return page

    async def entry(self, who: Principal, session_id: str, entry_id: str) -> Entry:
        """One entry of the conversation, or of what only a checkpoint still has."""

        async def work(tx: Reader) -> Entry:
            record = await required(tx, who, session_id)
            try:
                place = await find_place(tx, record, (await load_lists(tx, record)).conversation(), entry_id)
            except EntryNotFound:
                place = await find_place(tx, record, await _everything(tx, record), entry_id)
            return decode_entry(await _payload(tx, record.owner, place))

        return await self._store.read(work)

    async def erase(self, who: Principal, session_id: str, entry_id: str) -> None:
        """Blank the content of one entry for good, in this session and in every fork that shares it.

        Its place in the history stays; its words, its facts, raw copies that hold it and a title made from it go. So
        do the summaries of compactions that were made of it: what they stood for is the context again.
        """

        async def work(tx: Writer) -> None:
            record = await required(tx, who, session_id)
            stretches = await _everything(tx, record)
            place = await find_place(tx, record, stretches, entry_id)
            payload = await _payload(tx, record.owner, place)
            old = decode_entry(payload)
            if is_erased(old):
                return
            await tx.erase(record.owner, place, encode(erased(old, len(payload))))
            # In one order always, so that two who erase do not wait for each other.
            for num in sorted(await tx.reaching(record.owner, place.log)):
                await self._forget(tx, record.owner, num, place, old)

        await self._store.write(work)

    def _complete(self, draft: Draft, now: int) -> Entry:
        if draft.at is not None and checked_number(draft.at, "the time of an entry") > now + AHEAD_MS:
            raise InvalidInput(f"a message cannot be said in the future: times are in ms, not {draft.at}")
        entry = Entry(
            id=checked_name(draft.id, "an entry id") or self._new_id(),
            at=now if draft.at is None else draft.at,
            role=draft.role,
            parts=draft.parts,
            model=draft.model,
            usage=draft.usage,
            tokens=draft.tokens,
            meta=draft.meta,
        )
        return checked_entry(entry)

    async def _taken_back(self, tx: Writer, record: Record) -> Record:
        """A session in which people go on is not put away any more; part of the same change."""
        if not record.session.archived:
            return record
        return await tx.rewrite(replace(record, session=replace(record.session, archived=False)), "append")

    async def _title_from(self, tx: Writer, record: Record, entries: Sequence[Entry]) -> Record:
        """Give a session without a title one from the first meaningful prompt; part of the same change."""
        if record.session.title is not None:
            return record
        prompts = (title_from(plain_text(entry)) for entry in entries if entry.role == "user")
        title = next(filter(None, prompts), None)
        if title is None:
            return record
        session = replace(record.session, **titled(record.session, title, "auto"))
        return await tx.rewrite(replace(record, session=session), "append")

    async def _note_reading(self, record: Record, *, seen: bool) -> None:
        """Remember, at most once an hour, that the session was read: retention spares what people look at.

        At once if somebody has `seen` what is newer than that.
        """
        said, known = record.session.updated_at, record.session.read_at
        at = max(self._now(), said) if seen else self._now()
        if known is None or at - known >= READ_NOTED_EVERY or (seen and known < said):
            noting = asyncio.ensure_future(self._store.write(lambda tx: tx.put_read_at(record, at)))
            noting.add_done_callback(lambda done: done.cancelled() or done.exception())
            # Nobody who reads has to wait for those who write, nor for a disk that is full.
            await asyncio.wait([noting], timeout=NOTING_SECONDS)
            if noting.done():
                with suppress(StoreError):
                    noting.result()

    async def _forget(self, tx: Writer, owner: str, num: int, place: Place, old: Entry) -> None:
        """Take what was derived from an erased entry out of a session that reaches it."""
        found = await tx.by_num(owner, num)
        record = None if found is None else await tx.session(owner, found.session.id)
        if record is None or algebra.ordinal(await _everything(tx, record), place) is None:
            return
        await tx.drop_facts(owner, record.session.id, old.id)
        await tx.drop_raw_copies(owner, num)
        record = await untold(tx, record, place)
        derived = title_from(plain_text(old))
        session = record.session
        fields: dict[str, object] = {
            "earlier_titles": tuple(title for title in session.earlier_titles if title != derived)
        }
        if session.title_by == "auto" and session.title == derived:
            fields |= {"title": None, "title_by": None}
        await self._change(tx, record, "erase", **fields)


class Written(NamedTuple):
    """An entry and the bytes that it is kept as."""

    entry: Entry
    payload: bytes


async def append_entries(tx: Writer, record: Record, entries: Sequence[Entry], now: int) -> Record:
    """Put entries at the head of the session's own log; counts, times and revision move with them."""
    return await append_written(tx, record, [written(entry) for entry in entries], now)


async def append_written(tx: Writer, record: Record, entries: Sequence[Written], now: int) -> Record:
    """The same, of entries that are written down already."""
    if record.head + len(entries) > LOG_ENTRIES:
        raise StoreFull(f"a log holds at most {LOG_ENTRIES} entries: fork the session to go on")
    rows, sums = [], record.totals
    for seq, (entry, payload) in enumerate(entries, record.head + 1):
        sums = sums.plus(totals_of(entry, payload))
        rows.append(Row(entry=entry, payload=payload, seq=seq, totals=sums))
    updated = max(record.session.updated_at, *(entry.at for entry, _ in entries))
    session = _grown(record.session, len(entries), sums.minus(record.totals), updated)
    return await tx.extend(
        replace(
            record,
            session=session,
            order_at=max(record.order_at, min(updated, now)),
            head=record.head + len(entries),
            totals=sums,
        ),
        rows,
    )


def _grown(session: Session, messages: int, sums: Totals, updated: int) -> Session:
    tokens = (session.token_count or 0) + sums.tokens
    cost = round((session.cost or 0) * MICROS) + sums.cost
    return replace(
        session,
        revision=session.revision + 1,
        updated_at=updated,
        message_count=session.message_count + messages,
        token_count=tokens or None,
        error_count=session.error_count + sums.errors,
        cost=cost / MICROS if cost else None,
        bytes=session.bytes + sums.bytes,
    )


def written(entry: Entry) -> Written:
    """The entry with its bytes, if it can be read back from them: what cannot would break whoever meets it later."""
    try:
        payload = encode(entry)
        if len(payload) > ENTRY_BYTES:
            raise TooLarge(f"an entry may have at most {ENTRY_BYTES} bytes, this one has {len(payload)}")
        decode_entry(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"an entry must be made of the parts and values that an entry has: {error}"
        ) from None
    return Written(entry, payload)


async def _expect_new(tx: Reader, record: Record, ids: Sequence[str]) -> None:
    """Raise if an id stands in the session's history already, in a log that it shares with others: its own looks itself."""
    if not ids:
        return
    shared = {stretch.log for stretch in await _everything(tx, record)} - {record.num}
    for entry_id in ids if shared else ():
        if await tx.locate(record.owner, sorted(shared), entry_id):
            raise AlreadyExists(f"the session has an entry {entry_id!r} already")


def _mode(*, after: str | None, before: str | None, around: str | None, last: bool) -> str:
    named = {"after": after, "before": before, "around": around}
    return next((name for name, anchor in named.items() if anchor is not None), "last" if last else "start")


class _Asked(NamedTuple):
    """A page that was asked for: from `start` up to `stop`, and in which way, from which place."""

    start: int
    stop: int
    mode: str
    place: int


async def _affordable(
    tx: Reader, owner: str, stretches: Sequence[Stretch], asked: _Asked, most: int
) -> tuple[int, int]:
    """As much of a page as has at most so many bytes."""
    start, stop, mode, place = asked
    if mode != "around":
        return await _fitting(tx, owner, stretches, start, stop, most, backwards=mode in ("before", "last"))
    _, stop = await _fitting(tx, owner, stretches, place, stop, most // 2, backwards=False)
    if start < place:
        start, _ = await _fitting(tx, owner, stretches, start, place, most // 2, backwards=True)
    return start, stop


async def _fitting(
    tx: Reader, owner: str, stretches: Sequence[Stretch], start: int, stop: int, most: int, *, backwards: bool
) -> tuple[int, int]:
    """As much of `start` to `stop` as has at most so many bytes, or one entry: from its end if `backwards`."""
    few, many = 1, stop - start
    if many < 2 or await _bytes(tx, owner, algebra.slice_of(stretches, start, stop)) <= most:
        return start, stop
    while many - few > 1:
        half = (few + many) // 2
        part = (stop - half, stop) if backwards else (start, start + half)
        if await _bytes(tx, owner, algebra.slice_of(stretches, *part)) <= most:
            few = half
        else:
            many = half
    return (stop - few, stop) if backwards else (start, start + few)


async def _bytes(tx: Reader, owner: str, stretches: Sequence[Stretch]) -> int:
    """How many bytes the entries have, told by the running sums beside them."""
    size = 0
    for each in stretches:
        until, before = (
            await tx.totals(owner, each.log, each.last),
            await tx.totals(owner, each.log, each.first - 1),
        )
        size += until.bytes - before.bytes
    return size


async def _page(
    tx: Reader, record: Record, stretches: Sequence[Stretch], start: int, stop: int, past: int
) -> HistoryPage:
    part = algebra.slice_of(stretches, start, stop)
    raw = await tx.payloads(record.owner, part)
    total = algebra.size(stretches)
    return HistoryPage(
        raw=tuple(raw),
        total=total,
        token_count=record.session.token_count,
        marks=_marks(part),
        previous=decode_entry(raw[0]).id if raw and start > 0 else None,
        next=decode_entry(raw[-1]).id if raw and stop < total else None,
        start=start,
        past=past,
    )


def _marks(part: Sequence[Stretch]) -> tuple[int, ...]:
    marks, passed = [], 0
    for stretch in part:
        if stretch.mark:
            marks.append(passed)
        passed += stretch.size
    return tuple(marks)


async def _everything(tx: Reader, record: Record) -> list[Stretch]:
    """All that the session reaches: its conversation and every checkpoint's."""
    lists = await load_lists(tx, record)
    found = lists.conversation()
    for checkpoint in await tx.checkpoints(record.owner, record.num):
        spans = await tx.spans(record.owner, record.num, checkpoint.id)
        found.extend(algebra.context(spans, record.num, record.head))
    return found


async def find_place(tx: Reader, record: Record, stretches: Sequence[Stretch], entry_id: str) -> Place:
    """Where the entry stands in these stretches; the last place, should a fork have the id twice."""
    if isinstance(entry_id, str):
        logs = sorted({stretch.log for stretch in stretches})
        places = await tx.locate(record.owner, logs, entry_id) if _usable(entry_id) else []
        known = [(at, place) for place in places if (at := algebra.ordinal(stretches, place)) is not None]
        if known:
            return max(known)[1]
    raise EntryNotFound(entry_id)


def _usable(entry_id: str) -> bool:
    try:
        return bool(checked_name(entry_id, "an entry id"))
    except HithertoError:
        return False


async def _ordinal(tx: Reader, record: Record, stretches: Sequence[Stretch], entry_id: str) -> int:
    place = await find_place(tx, record, stretches, entry_id)
    found = algebra.ordinal(stretches, place)
    if found is None:
        raise EntryNotFound(entry_id)
    return found


async def _payload(tx: Reader, owner: str, place: Place) -> bytes:
    return (await tx.payloads(owner, [Stretch(place.log, place.seq, place.seq)]))[0]
