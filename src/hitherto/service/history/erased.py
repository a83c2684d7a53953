"""What was erased, remembered without its words: whatever is read again is left out if it is that.

A message is known by its session and the id that its source gave it. Where records have no ids and are numbered, a keyed
digest of the whole record takes that place: the same number may be another record later. Copies of a session under
another id are known by a keyed digest of the record with its id. An equal message elsewhere is none of these.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from hitherto.model import Entry, encode
from hitherto.ports import Reader, Record, Writer
from hitherto.service.catalog.quarantined import source_id
from hitherto.service.history.append import EncodedEntry
from hitherto.service.records import blank_entry, is_erased

NUMBERED = re.compile(r"line-[0-9]+")
"""The beginning of the id of a record that is only numbered."""
KEYLESS = "id:"
"""The beginning of a mark that is not made with a store's secret."""
AT_ONCE = 500


async def note_erased(tx: Writer, key: bytes, record: Record, old: Entry) -> None:
    """Remember that this was erased in a session."""
    forms = [old]
    if record.session.source is not None:
        forms.append(replace(old, id=source_id(old.id)))
    marks = {_mark(key, form) for form in forms} | {_copy_mark(key, old)}
    await tx.put_erasures(record.owner, record.session.id, sorted(marks), await tx.now())


class Erased:
    """What was erased of one session."""

    def __init__(self, key: bytes, marks: frozenset[str]) -> None:
        self._key, self._marks = key, marks

    def __bool__(self) -> bool:
        return bool(self._marks)

    def holds(self, entry: Entry) -> bool:
        """Whether this was erased."""
        return bool(self._marks) and _mark(self._key, entry) in self._marks

    def without(self, entries: Sequence[EncodedEntry], also: Iterable[str] = ()) -> list[EncodedEntry]:
        """The entries; of those that were erased, and of those of these ids, only their places."""
        ids = frozenset(also)
        return [blanked(each) if self.holds(each.entry) or each.entry.id in ids else each for each in entries]


async def load_erased(tx: Reader, key: bytes, owner: str, session_id: str) -> Erased:
    """What was erased of a session, be it there or not."""
    return Erased(key, await tx.erasures(owner, session_id))


async def adopt_erased(tx: Writer, key: bytes, owner: str, session_id: str, entries: Sequence[Entry]) -> None:
    """Remember for a session that is to come what was erased of its entries elsewhere: in forks, and under another id."""
    for start in range(0, len(entries), AT_ONCE):
        known = {_copy_mark(key, entry): _mark(key, entry) for entry in entries[start : start + AT_ONCE]}
        found = await tx.erased_among(owner, list(known))
        await tx.put_erasures(owner, session_id, sorted(known[mark] for mark in found), await tx.now())


async def note_lost_titles(tx: Writer, key: bytes, record: Record, titles: Iterable[str]) -> None:
    """Remember that these titles were made from what was erased."""
    marks = sorted(_title_mark(key, title) for title in titles)
    await tx.put_erasures(record.owner, record.session.id, marks, await tx.now())


async def lost_titles(tx: Writer, key: bytes, owner: str, titles: Iterable[str]) -> set[str]:
    """Those of these titles that were made from what was erased, in whichever session."""
    marks = {_title_mark(key, title): title for title in titles}
    return {marks[mark] for mark in await tx.erased_among(owner, list(marks))} if marks else set()


def blanked(given: EncodedEntry) -> EncodedEntry:
    """What is left of an entry that was erased."""
    if is_erased(given.entry):
        return given
    blank = blank_entry(given.entry, len(given.payload))
    return EncodedEntry(blank, encode(blank))


def _mark(key: bytes, entry: Entry) -> str:
    """What the entry is known by within its session."""
    return f"record:{_digest(key, entry, '')}" if NUMBERED.match(entry.id) else f"{KEYLESS}{entry.id}"


def _copy_mark(key: bytes, entry: Entry) -> str:
    """What the entry is known by in any session."""
    return f"copy:{_digest(key, entry, entry.id)}"


def _title_mark(key: bytes, title: str) -> str:
    return f"title:{hmac.new(key, title.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


def _digest(key: bytes, entry: Entry, name: str) -> str:
    said = encode(replace(entry, id=name, model=None, usage=None, tokens=None, meta={}))
    return hmac.new(key, said, hashlib.sha256).hexdigest()
