"""Where a document that was found stands: the sessions that pass, with the hit as it is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from hitherto.model import Entry, Filter, Hit, Session, decode_entry, search_text
from hitherto.ports import Match, Reader, Record
from hitherto.service.catalog.deletion import recording_of
from hitherto.service.history.branches import load_branches
from hitherto.service.records import load_lists
from hitherto.service.search.conditions import Conditions
from hitherto.values import words
from hitherto.values.filters import passes, title_text
from hitherto.values.query.moments import Period
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.words import Term

READ_BYTES = 64 * 1024 * 1024
"""So much of what was said is read for one page."""
NOWHERE = ""
"""No branch, and not the conversation either."""


class Standing:
    """What one search asks of the sessions, inside one transaction; each session is looked up once."""

    def __init__(
        self,
        tx: Reader,
        owner: str,
        conditions: Conditions,
        wanted: Filter,
        during: Period | None = None,
        shown: Sequence[str] = (),
    ) -> None:
        """`shown` are the sessions, as `short` names them, that earlier pages have shown."""
        self.tx = tx
        self.owner = owner
        self.shown = set(shown)
        self._conditions = conditions
        self._wanted = wanted
        self._during = during
        self._sessions: dict[int, _Viewed | None] = {}
        self._holders: dict[int, list[int]] = {}
        self._read_bytes = 0

    @property
    def is_narrow(self) -> bool:
        """Whether only some sessions are asked for."""
        everything = Filter(archived=self._wanted.archived, subagents=self._wanted.subagents)
        return self._wanted != everything or self._conditions.of_files

    @property
    def reads_all(self) -> bool:
        """Whether a message must be read to know if it is wanted."""
        return self._during is not None or self._conditions.of_messages

    async def read(self, place: EntryPlace) -> Entry:
        """The entry at a place."""
        stretch = Stretch(place.log, place.seq, place.seq)
        (payload,) = await self.tx.payloads(self.owner, [stretch])
        self._read_bytes += len(payload)
        return decode_entry(payload)

    @property
    def is_spent(self) -> bool:
        """Whether so much was read that the rest is for the next page."""
        return self._read_bytes + self._conditions.read_bytes > READ_BYTES

    async def is_wanted(self, entry: Entry | None, place: EntryPlace | None, at: int) -> bool:
        """Whether the query wants this message, or title, which was said then."""
        if self._during is not None and not self._during.after <= at < self._during.before:
            return False
        return await self._conditions.hold(entry, place)

    def hit(
        self, session: Session, entry: Entry | None, at: int, branch: str | None, terms: Sequence[Term]
    ) -> Hit:
        """An entry, or a title, as it is shown."""
        text = title_text(session) if entry is None else search_text(entry)
        snippet = words.snippet(text, terms)
        return Hit(
            session=session,
            entry=None if entry is None else entry.id,
            role=None if entry is None else entry.role,
            at=at,
            snippet=snippet,
            marks=tuple(words.marks(snippet, terms)),
            branch=branch,
        )

    async def standing_in(self, match: Match) -> list[tuple[Session, str | None]]:
        """The sessions that pass and whose conversation (or titles) the matching document belongs to, or which branch of
        theirs it does."""
        place = match.place
        if place is None:
            known = await self._session(match.num)
            return [] if known is None else [(known.session, None)]
        if place.log not in self._holders:
            self._holders[place.log] = sorted(await self.tx.reaching(self.owner, place.log))
        found: list[tuple[Session, str | None]] = []
        for num in self._holders[place.log]:
            known = self._sessions[num] if num in self._sessions else await self._session(num)
            if known and (branch := known.branch_of(place)) is not NOWHERE:
                found.append((known.session, branch))
        return found

    async def _session(self, num: int) -> _Viewed | None:
        if num not in self._sessions:
            record = await self.tx.by_num(self.owner, num)
            passed = record is not None and self._passes(record) and await self._in_day(record)
            self._sessions[num] = await self._viewed(record) if record and passed else None
        return self._sessions[num]

    async def _viewed(self, record: Record) -> _Viewed | None:
        conversation = (await load_lists(self.tx, record)).conversation()
        said: dict[str | None, list[Stretch]] = {None: conversation}
        for each in await load_branches(self.tx, record):
            said[each.checkpoint.id] = each.lists.conversation()
        every = (stretch for stretches in said.values() for stretch in stretches)
        return (
            _Viewed(record.session, said)
            if await self._conditions.files_hold(record.session, every)
            else None
        )

    async def _in_day(self, record: Record) -> bool:
        day = self._wanted.day
        return day is None or bool(await self.tx.spoken(self.owner, day, [record.num]))

    def _passes(self, record: Record) -> bool:
        fresh = short(record.session.id) not in self.shown
        return (
            fresh
            and (recording_of(record.session) is None or self._wanted.archived == "only")
            and passes(record.session, self._wanted)
        )


class _Viewed(NamedTuple):
    """A session, and all that is said in it: by branch, its conversation first."""

    session: Session
    said: dict[str | None, list[Stretch]]

    def branch_of(self, place: EntryPlace) -> str | None:
        """The branch in which this place stands, None for the conversation, or `NOWHERE`."""
        log, seq = place
        for name, said in self.said.items():
            for stretch in said:
                if stretch.log == log and stretch.first <= seq <= stretch.last:
                    return name
        return NOWHERE


def short(session_id: str) -> str:
    """A short name of a session, for cursors."""
    return hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
