"""A session's inbox: what is said while a turn runs is stored there at once, and becomes entries when the turn lets it in.

What came together is one row. Rows become entries in their order, and are gone from the inbox in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import cast, get_args

from msgspec.structs import replace

from hitherto.errors import AlreadyExists, EntryNotFound, InboxFull, InvalidInput, InvalidKey
from hitherto.limits import INBOX_BYTES, INBOX_ROWS, LOG_ENTRIES
from hitherto.model import Entry, Pending, Principal, QueueMode, Session
from hitherto.ports import Reader, Record, Writer
from hitherto.service.core import Room, clean_afterwards
from hitherto.service.history.append import append_entries, encode_entry, title_from_prompt, unarchive
from hitherto.service.notes import RUNS, Note, Run
from hitherto.service.records import active_lease, require_session
from hitherto.updates import Outcome
from hitherto.values.keys import Kind, parse_key

ABANDONED_MS = 60_000
"""When a session has been free for so long and nobody has run the turn of a row, nobody will: it is placed without one."""


class Inbox(Room):
    """What waits for a running turn."""

    async def waiting(self, who: Principal, session_id: str) -> tuple[Pending, ...]:
        """What waits in the session, in order."""

        async def work(tx: Reader) -> tuple[Pending, ...]:
            record = await require_session(tx, who, session_id)
            return tuple(await tx.inbox(record.owner, record.num))

        return await self._store.read(work)

    async def cancel(self, who: Principal, session_id: str, message_id: str) -> bool:
        """Take a message that waits out of the inbox for good, with what was sent together with it; its turn ends as
        cancelled. False if no such message waits (any more)."""

        async def work(tx: Writer) -> bool:
            record = await require_session(tx, who, session_id)
            return await withdraw(tx, record, message_id, self._now()) is not None

        gone = await self._store.write(work, session_id)
        if gone:
            await clean_afterwards(self._store.clean())
        return gone

    async def move(self, who: Principal, session_id: str, message_id: str, place: int) -> int:
        """Give a message that waits another place, from 1 on; beyond the end is the end. Returns the place that it has now.
        Raises `EntryNotFound` if no such message waits (any more)."""

        async def work(tx: Writer) -> int:
            record = await require_session(tx, who, session_id)
            if place < 1:
                raise InvalidInput(f"places count from 1, not {place}")
            rows = await tx.inbox(record.owner, record.num)
            moved = row_of(rows, message_id)
            if moved is None:
                raise EntryNotFound(message_id)
            rows.remove(moved)
            rows.insert(place - 1, moved)
            await tx.drop_pending(record, [row.id for row in rows])
            for row in rows:
                await tx.add_pending(record, row)
            return rows.index(moved) + 1

        return await self._store.write(work, session_id)

    async def everywhere(self) -> list[tuple[str, str]]:
        """Owner and id of every session in whose inbox something waits."""
        return await self._store.read(lambda tx: tx.inboxes())

    async def settle(self, who: Principal, session_id: str) -> tuple[Pending, ...]:
        """Place what needs no turn, if none runs; returns the rows that wait for one all the same."""
        now = self._now()

        async def work(tx: Writer) -> tuple[Pending, ...]:
            record = await require_session(tx, who, session_id)
            if await is_held(tx, record):
                return ()
            await place_unanswered(tx, record, now, self._store.secret)
            return tuple(await tx.inbox(record.owner, record.num))

        return await self._store.write(work, session_id)


def row_of(rows: Sequence[Pending], message_id: str) -> Pending | None:
    """The row that has this message."""
    return next((row for row in rows if any(entry.id == message_id for entry in row.entries)), None)


async def is_held(tx: Reader, record: Record) -> bool:
    """Whether a turn runs in the session."""
    return record.lease is not None and active_lease(record.lease, await tx.now()) is not None


async def must_wait(tx: Writer, record: Record, now: int, key: bytes) -> tuple[Record, bool]:
    """Whether what is said now has to wait in the inbox: behind a running turn, or behind what waits already.

    What waits for nothing any more is placed first; the session after that comes back.
    """
    if record.lease is None:  # no turn ever ran
        return record, False
    if await is_held(tx, record):
        return record, True
    if not (await tx.inbox_size(record.owner, record.num)).rows:
        return record, False
    record = await place_unanswered(tx, record, now, key)
    return record, bool((await tx.inbox_size(record.owner, record.num)).rows)


async def put_pending(tx: Writer, record: Record, pending: Pending, named: Sequence[str] = ()) -> int:
    """Put a row at the end of the session's inbox; returns its place. Raises `InboxFull`, and `AlreadyExists` if one of
    the ids that its sender has `named` waits already."""
    size = await tx.inbox_size(record.owner, record.num)
    payloads = [encode_entry(entry).payload for entry in pending.entries]
    if size.rows >= INBOX_ROWS or size.bytes + sum(map(len, payloads)) > INBOX_BYTES:
        raise InboxFull
    rows = await tx.inbox(record.owner, record.num) if size.rows and named else ()
    for name in named:
        if row_of(rows, name) is not None:
            raise AlreadyExists(f"the session already has an entry {name!r}")
    await tx.add_pending(record, pending)
    return size.rows + 1


async def place(tx: Writer, record: Record, rows: Sequence[Pending], now: int, key: bytes) -> Record:
    """Make entries of these rows, at the head of the session, and take them out of the inbox."""
    if not rows:
        return record
    await tx.drop_pending(record, [row.id for row in rows])
    entries = [entry for row in rows for entry in row.entries]
    record = await append_entries(tx, record, entries, now, key)
    record = await unarchive(tx, record)
    return await title_from_prompt(tx, record, entries)


async def place_unanswered(tx: Writer, record: Record, now: int, key: bytes) -> Record:
    """Place the rows at the front that no turn has to answer, or whose turn nobody will run; called while none runs."""
    at = await tx.now()
    rows = unanswered_rows(record, await tx.inbox(record.owner, record.num), at)
    if record.head + sum(len(row.entries) for row in rows) > LOG_ENTRIES:
        return record
    abandoned = [row for row in rows if row.mode is not None]
    for row in abandoned:
        await RUNS.put(tx, record.owner, row.id, Note(Run(fence=0), now))
    if abandoned and record.lease is not None:
        # Whoever waits behind them can run a turn only from now on.
        free = replace(record.lease, expires_at=at)
        await tx.put_lease(record, free)
        record = replace(record, lease=free)
    return await place(tx, record, rows, now, key)


def unanswered_rows(record: Record, rows: Sequence[Pending], at: int) -> list[Pending]:
    """The rows at the front that wait for no turn, or for one that nobody runs. Pure.

    Of these, only those of one runner: another could not run its own as long as they stood before it.
    """
    absent = next((row.by for row in rows if row.mode is not None), None)
    return list(
        takewhile(
            lambda row: row.mode is None or (row.by == absent and is_abandoned(record, row, at)),
            rows,
        )
    )


def is_abandoned(record: Record, row: Pending, at: int) -> bool:
    """Whether the session has been free for long, and nobody has run the row's turn."""
    free_since = 0 if record.lease is None else record.lease.expires_at
    return max(free_since, row.at) + ABANDONED_MS < at


async def withdraw(tx: Writer, record: Record, message_id: str, now: int) -> Pending | None:
    """Take the row that has a message out of the inbox; None if there is none."""
    row = row_of(await tx.inbox(record.owner, record.num), message_id)
    if row is not None:
        await tx.drop_pending(record, [row.id])
        if row.mode is not None:
            ended = Outcome(stop_reason="cancelled", prompt=row.id)
            await RUNS.put(tx, record.owner, row.id, Note(Run(fence=0, outcome=ended), now))
    return row


QUEUE_MODE = "queue_mode"
"""The key of a session's meta under which its own mode stands, if it was given one."""
USUAL_MODES: Mapping[Kind, QueueMode] = {Kind.DIRECT_MESSAGE: "steer", Kind.GROUP: "collect"}
"""The mode of each kind of chat. What is none has `followup`."""


def queue_mode_of(session: Session) -> QueueMode:
    """What becomes of a prompt that arrives in the session while a turn runs, unless its sender says otherwise."""
    own = session.meta.get(QUEUE_MODE)
    if own in get_args(QueueMode):
        return cast("QueueMode", own)
    with suppress(InvalidKey):
        return USUAL_MODES.get(parse_key(session.key or "").kind, "followup")
    return "followup"


def next_rows(rows: Sequence[Pending], by: str) -> tuple[Pending, ...]:
    """The rows that the next turn answers, if this runner may run it. Pure.

    An interruption takes all that waited before it; else those at the front that are to be collected become one turn, and
    any other has its own.
    """
    if not rows or rows[0].mode is None or rows[0].by != by:
        return ()
    mine = list(takewhile(lambda row: row.mode is None or row.by == by, rows))
    last = max((at for at, row in enumerate(mine) if row.mode == "interrupt"), default=None)
    if last is not None:
        return tuple(mine[: last + 1])
    if rows[0].mode != "collect":
        return (rows[0],)
    run = list(takewhile(lambda row: row.mode in (None, "collect"), mine))
    while run[-1].mode is None:
        run.pop()
    return tuple(run)


def steering_rows(rows: Sequence[Pending], by: str) -> tuple[Pending, ...]:
    """The rows that the running turn takes in at its next step: those at the front that were said to it. Pure."""
    return tuple(takewhile(lambda row: row.mode == "steer" and row.by == by, rows))


def pending_of(entries: Sequence[Entry], now: int) -> Pending:
    """Entries that wait for no turn of their own."""
    return Pending(id=entries[-1].id, at=now, entries=tuple(entries))
