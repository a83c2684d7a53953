"""What was said: appending it, reading it, erasing it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial

from hitherto.errors import EntryNotFound, StoreError
from hitherto.limits import HISTORY_BYTES
from hitherto.model import Appended, Draft, Entry, HistoryPage, Principal, View, decode_entry
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room, clean_afterwards, whole
from hitherto.service.history.append import (
    append_entries,
    complete_draft,
    expect_new,
    title_from_prompt,
    unarchive,
)
from hitherto.service.history.erased import note_erased
from hitherto.service.history.erasure import erase_entry
from hitherto.service.history.inbox import must_wait, pending_of, put_pending, withdraw
from hitherto.service.history.pages import PageWanted, load_page
from hitherto.service.history.places import find_place, load_everything, payload_at
from hitherto.service.idempotency import Request, at_most_once, expect_revision
from hitherto.service.notes import APPENDED
from hitherto.service.records import load_lists, require_session, require_writable
from hitherto.service.validation import checked_drafts, checked_owner

READ_NOTED_EVERY = 3_600_000
NOTING_SECONDS = 0.1


class Entries(Room):
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

        While a turn runs they wait in the inbox, and the answer has their place there. `expected_revision` refuses if the session has changed since it was read; `fence` is the number of the
        caller's lease; with either, nothing waits: `Busy` while somebody else's turn runs. The same idempotency key
        appends once.
        """
        given = (drafts,) if isinstance(drafts, Draft) else tuple(drafts)
        now, home, added = self._now(), self._core.home, 0
        id_at = cache(lambda _: self._new_id())  # the same if the work is run again

        async def work(tx: Writer) -> Appended:
            nonlocal added
            record, waits = await require_session(tx, who, session_id), False
            if fence is None and expected_revision is None and record.session.source is None:
                record, waits = await must_wait(tx, record, now, self._store.secret)
            else:
                await require_writable(tx, record, fence)
            expect_revision(record, expected_revision)
            home.check_space(record)
            entries = [
                complete_draft(draft, now, partial(id_at, at))
                for at, draft in enumerate(checked_drafts(given))
            ]
            named = [draft.id for draft in given if draft.id is not None]
            await expect_new(tx, record, named)
            if waits:
                place = await put_pending(tx, record, pending_of(entries, now), named)
                return _appended(record, entries, place)
            before = record.session.bytes
            record = await append_entries(tx, record, entries, now, self._store.secret)
            added = record.session.bytes - before
            record = await unarchive(tx, record)
            await title_from_prompt(tx, record, entries)
            return _appended(record, entries)

        request = Request.of(APPENDED, checked_owner(who), idempotency_key, [session_id, given], now)

        async def once(tx: Writer) -> Appended:
            if request is not None:
                # A deleted session answers nothing, whatever is remembered.
                await require_session(tx, who, session_id)
            return await at_most_once(tx, request, work)

        done = await self._store.write(once, session_id)
        await home.appended(self._core, who, added)
        return done

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
        max_bytes: int = HISTORY_BYTES,
        seen: bool = False,
    ) -> HistoryPage:
        """A page of one view of a session, in the order in which it was said; as a checkpoint has it, if one is named.

        From the start, or with `last` up to the end; `after`, `before` and `around` name an entry of the view. A page
        of more than `max_bytes` is cut at the end that is farther from where it was asked for, at both ends around an
        entry; one entry it always has. `seen` says that somebody reads it with their own eyes: what was said until now
        is not new to them any more.
        """
        wanted = PageWanted(
            view, checkpoint, after, before, around, last, limit, min(max_bytes, HISTORY_BYTES)
        )

        async def work(tx: Reader) -> tuple[Record, HistoryPage]:
            record = await require_session(tx, who, session_id)
            wanted.check()
            return record, await load_page(tx, record, wanted)

        record, page = await self._store.read(work, wanted.ahead(who.owner, session_id))
        await self._note_reading(record, seen=seen)
        return page

    async def entry(self, who: Principal, session_id: str, entry_id: str) -> Entry:
        """One entry of the conversation, or of what only a checkpoint still has."""

        async def work(tx: Reader) -> Entry:
            record = await require_session(tx, who, session_id)
            try:
                place = await find_place(tx, record, (await load_lists(tx, record)).conversation(), entry_id)
            except EntryNotFound:
                place = await find_place(tx, record, await load_everything(tx, record), entry_id)
            return decode_entry(await payload_at(tx, record.owner, place))

        return await self._store.read(work)

    async def erase(self, who: Principal, session_id: str, entry_id: str) -> None:
        """Blank the content of one entry for good, in this session and in every fork that shares it.

        Its place in the history stays; its words, its facts, raw copies that hold it and a title made from it go. So
        do the summaries of compactions that were made of it: what they stood for is the context again. It never comes
        back, whatever is read again. One that still waits in the inbox leaves it, with what was sent together with it.
        """
        key, now = self._store.secret, self._now()

        async def work(tx: Writer) -> None:
            record = await require_session(tx, who, session_id)
            if (row := await withdraw(tx, record, entry_id, now)) is None:
                await erase_entry(whole(tx), key, record, entry_id)
                return
            for entry in row.entries:
                await note_erased(tx, key, record, entry)

        await self._store.write(work, session_id)
        await clean_afterwards(self._store.clean())

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


def _appended(record: Record, entries: Sequence[Entry], place: int | None = None) -> Appended:
    return Appended(
        entries=tuple(entry.id for entry in entries),
        revision=record.session.revision,
        message_count=record.session.message_count,
        place=place,
    )
