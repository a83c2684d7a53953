"""Session rows that are held back to the end of a transaction.

A session's row is written once, however often it changed in the transaction, together with the number of its change.
Changes are numbered in lanes. Taking a number is the last lock of a transaction: so numbers of a lane become visible in
their order, and writers in different lanes never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitherto.model import Session
from hitherto.ports import Record
from hitherto.stores.postgres import search
from hitherto.stores.postgres.rows import (
    CHANGE_BITS,
    FIELDS,
    OWN,
    REVISION_BITS,
    lane_of,
    values_of,
)
from hitherto.stores.postgres.statistics import count
from hitherto.stores.postgres.transactions import Statements
from hitherto.values import words
from hitherto.values.facets import traits_of
from hitherto.values.filters import title_text

# The next number of the lane.
_NUMBERED = """
WITH numbered AS (
    INSERT INTO lane AS l (owner, lane, change) VALUES (%(owner)s, %(lane)s, 1)
    ON CONFLICT (owner, lane) DO UPDATE SET change = l.change + 1 RETURNING l.change AS number
)"""
_INSERTED = tuple(name for name in (*OWN, *FIELDS) if name not in ("change", "crc"))
_LEASE = ("lease_holder", "lease_fence", "lease_acquired_at", "lease_expires_at", "lease_crc")
# As `rows.with_change` has it: the number is known here only.
_STAMP = f"((number & {(1 << CHANGE_BITS) - 1}) << {32 + REVISION_BITS})"
_UPDATED = tuple(name for name in _INSERTED if name not in ("owner", "num", *_LEASE))
INSERT = f"""{_NUMBERED}
INSERT INTO session ({", ".join(_INSERTED)}, lane, kind_of_change, change, crc)
SELECT {", ".join(f"%({name})s" for name in _INSERTED)}, %(lane)s, %(kind)s, number, %(crc)s::bigint | {_STAMP} FROM numbered
"""
UPDATE = f"""{_NUMBERED}
UPDATE session SET {", ".join(f"{name} = %({name})s" for name in _UPDATED)}, kind_of_change = %(kind)s, change = number,
    crc = %(crc)s::bigint | {_STAMP}
FROM numbered WHERE owner = %(owner)s AND num = %(num)s
"""
INSERT_VALUES = (*_INSERTED, "lane", "kind", "crc")
UPDATE_VALUES = (*_UPDATED, "owner", "num", "lane", "kind", "crc")
TOUCH = f"""{_NUMBERED}
UPDATE session SET kind_of_change = %(kind)s, change = number,
    crc = crc & {(1 << 32 + REVISION_BITS) - 1} | {_STAMP}
FROM numbered WHERE owner = %(owner)s AND num = %(num)s
"""
PUT_TOMBSTONE = f"""{_NUMBERED}
INSERT INTO tombstone (owner, id, lane, num, at, key, change)
SELECT %(owner)s, %(id)s, %(lane)s, %(num)s, %(at)s, %(key)s, number FROM numbered
ON CONFLICT (owner, id) DO UPDATE SET num = excluded.num, at = excluded.at, key = excluded.key, change = excluded.change
"""
DROP_TOMBSTONE = "DELETE FROM tombstone WHERE owner = %s AND id = %s"

DROP_TAGS = "DELETE FROM tag WHERE owner = %s AND id = %s AND tag <> ALL(%s)"
PUT_TAG = """
INSERT INTO tag (owner, id, tag, archived, order_at) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (owner, id, tag) DO UPDATE SET archived = excluded.archived, order_at = excluded.order_at
"""
DROP_TITLE = "DELETE FROM title WHERE owner = %s AND num = %s"
# A new number only for a new text.
PUT_TITLE = """
INSERT INTO title AS t (owner, num, number, text, words, said)
SELECT %(owner)s, %(num)s, n, %(text)s,
    document_words(n, %(mark)s, %(words)s) || moment_marks(bounded_moment(%(created_at)s), %(mark)s),
    bounded_moment(%(created_at)s)
FROM nextval('document_number') n
ON CONFLICT (owner, num) DO UPDATE SET number = excluded.number, text = excluded.text, words = excluded.words, said = excluded.said
WHERE t.text <> excluded.text
"""


class Stored(NamedTuple):
    """A session's row is to be written."""

    record: Record
    kind: str
    is_new: bool


class Touched(NamedTuple):
    """Only the change itself is to be noted."""

    record: Record
    kind: str


class Buried(NamedTuple):
    """A tombstone is to be left; the row is gone already."""

    record: Record
    at: int


Held = Stored | Touched | Buried
Key = tuple[str, int]
Name = tuple[str, str]
"""An owner, and the id of a session."""


class PendingRows:
    """What one transaction has held back."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._held: dict[Key, Held] = {}
        self._stored: dict[Key, Session] = {}
        self.owners: set[str] = set()
        self.latest: dict[Name, Record | None] = {}
        """The sessions that were locked, as this transaction leaves them; None if that is not known, or they are gone."""

    def seen(self, stored: Record) -> Record:
        """A session's row, just read and locked, as this transaction has left it."""
        held = self.held(stored.owner, stored.num)
        if held is not None:
            return self._note(replace(held, lease=stored.lease))
        self._stored[_key(stored)] = stored.session
        return self._note(stored)

    def held(self, owner: str, num: int) -> Record | None:
        """The session as this transaction has left it, if it is held back."""
        found = self._held.get((owner, num))
        return found.record if isinstance(found, Stored) else None

    def only(self) -> Stored | None:
        """The session whose row is held back, if nothing else is."""
        if len(self._held) != 1:
            return None
        (held,) = self._held.values()
        return held if isinstance(held, Stored) else None

    def newly(self, owner: str, session_id: str) -> Record | None:
        """A session that this transaction has made and not written yet."""
        new = (held.record for held in self._held.values() if isinstance(held, Stored) and held.is_new)
        return next((made for made in new if (made.owner, made.session.id) == (owner, session_id)), None)

    def store(self, record: Record, kind: str, *, is_new: bool = False) -> Record:
        """Hold back a session's row."""
        before = self._held.pop(_key(record), None)
        is_new = is_new or (isinstance(before, Stored) and before.is_new)
        self._held[_key(record)] = Stored(record, kind, is_new)
        return self._note(record)

    def touch(self, record: Record, kind: str) -> None:
        """Hold back a change that leaves the session as it is."""
        held = self._held.pop(_key(record), None)
        stored = held._replace(kind=kind) if isinstance(held, Stored) else Touched(record, kind)
        self._held[_key(record)] = stored

    def amend(self, record: Record, change: Callable[[Record], Record]) -> None:
        """Change what is held back of a session, if anything is."""
        held, known = self._held.get(_key(record)), self.latest.get(_name(record))
        self.latest[_name(record)] = None if known is None else change(known)
        if isinstance(held, Stored):
            self._held[_key(record)] = held._replace(record=change(held.record))

    def bury(self, record: Record, at: int) -> None:
        """Hold back a tombstone."""
        self._held.pop(_key(record), None)
        self._held[_key(record)] = Buried(record, at)
        self.latest[_name(record)] = None

    async def write(self) -> None:
        """Write everything that is held back, each change with the next number of its lane.

        The lanes are always locked in the same order: so no two transactions wait for each other.
        """
        held, self._held = self._held, {}
        for change in sorted(held.values(), key=lambda each: _place(each.record)):
            self.owners.add(change.record.owner)
            await self._write(change)

    def _note(self, record: Record) -> Record:
        self.latest[_name(record)] = record
        return record

    async def _write(self, change: Held) -> None:
        match change:
            case Stored():
                await self._write_session(change)
            case Touched(record, kind):
                owner, lane = _place(record)
                values = {"owner": owner, "lane": lane, "num": record.num, "kind": kind}
                await self._statements.queue(TOUCH, values)
            case Buried(record, at):
                session = record.session
                owner, lane = _place(record)
                values = {"id": session.id, "key": session.key, "num": record.num, "at": at}
                await self._statements.queue(PUT_TOMBSTONE, {"owner": owner, "lane": lane, **values})
                await self._count(record, self._stored.pop(_key(record), None), None)

    async def _write_session(self, change: Stored) -> None:
        record = change.record
        if change.is_new:
            await self._statements.queue(DROP_TOMBSTONE, (record.owner, record.session.id))
        values = values_of(record) | {"kind": change.kind}
        # Not one value too many: psycopg reads a statement anew each time that it is given more than fifty.
        statement, names = (INSERT, INSERT_VALUES) if change.is_new else (UPDATE, UPDATE_VALUES)
        await self._statements.queue(statement, {name: values[name] for name in names})
        await self._write_tags(record)
        await self._write_title(record)
        await self._count(record, self._stored.get(_key(record)), record.session)
        self._stored[_key(record)] = record.session

    async def _count(self, record: Record, old: Session | None, new: Session | None) -> None:
        was, is_now = (None if session is None else traits_of(session) for session in (old, new))
        await count(self._statements, *_place(record), was, is_now)

    async def _write_tags(self, record: Record) -> None:
        session, old = record.session, self._stored.get(_key(record))
        if old is None or set(old.tags) - set(session.tags):
            await self._statements.queue(DROP_TAGS, (record.owner, session.id, list(session.tags)))
        await self._statements.queue_many(PUT_TAG, tag_values(record))

    async def _write_title(self, record: Record) -> None:
        text, old = title_text(record.session), self._stored.get(_key(record))
        if old is not None and title_text(old) == text:
            return
        if text:
            await self._statements.queue(PUT_TITLE, title_values(record))
        else:
            await self._statements.queue(DROP_TITLE, (record.owner, record.num))


def tag_values(record: Record) -> list[tuple[Any, ...]]:
    """The rows under which a session is listed by its tags."""
    session = record.session
    return [(record.owner, session.id, tag, session.archived, record.order_at) for tag in session.tags]


def title_values(record: Record) -> dict[str, Any]:
    """The document of a session's titles."""
    text = title_text(record.session)
    return {
        "owner": record.owner,
        "num": record.num,
        "text": text,
        "created_at": record.session.created_at,
        "mark": search.mark(record.owner),
        "words": search.vector(record.owner, "title", words.searchable(text)),
    }


def _key(record: Record) -> Key:
    return record.owner, record.num


def _name(record: Record) -> Name:
    return record.owner, record.session.id


def _place(record: Record) -> tuple[str, int]:
    """The owner, and the lane."""
    return record.owner, lane_of(record.session.id)
