"""What was said on which day, and what sessions have in common: counted anew whenever it is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from hitherto.model import Facets, agent_of, decode_entry
from hitherto.ports import Activity, Record
from hitherto.stores.memory.tables import OwnerTables, Tables
from hitherto.values.days import DayModel, Tally, day_number, tallies
from hitherto.values.facets import COUNT, facets, marks, traits_of


class CountingReader:
    """See `ports.Reader`."""

    _library: Tables

    async def facets(self, owner: str) -> Facets:
        counts = Counter(mark for record in self._records(owner) for mark in marks(traits_of(record.session)))
        falling = sorted(counts.items(), key=lambda item: (item[0].kind == COUNT, -item[1], item[0].value))
        return facets((mark.kind, mark.value, number) for mark, number in falling)

    async def spoken(self, owner: str, day: str, nums: Sequence[int]) -> set[int]:
        shelf = self._kept(owner)
        known = [num for num in nums if num in shelf.sessions]
        return {num for num in known if day_number(day) in {said.day for said in _said(shelf, num)}}

    async def activity(self, owner: str, first: int, last: int, most: int) -> Activity:
        told = list(self._told(owner, first, last))
        days: defaultdict[int, Tally] = defaultdict(Tally)
        shares: defaultdict[tuple[int, str, str], Tally] = defaultdict(Tally)
        projects: defaultdict[str, Tally] = defaultdict(Tally)
        lengths: Counter[int] = Counter()
        for record, said, tally in told:
            name, project = agent_of(record.session) or "", record.session.project
            days[said.day] = days[said.day].plus(tally)
            shares[said.day, name, said.model] = shares[said.day, name, said.model].plus(tally)
            if project is not None:
                projects[project] = projects[project].plus(tally)
            lengths[record.num] += tally.messages
        busiest = sorted(projects, key=lambda name: (-projects[name].messages, name))[:most]
        longest = sorted(lengths, key=lambda num: (-lengths[num], num))[:most]
        sessions = self._kept(owner).sessions
        return Activity(
            days=[(day, len({r.num for r, s, _ in told if s.day == day}), days[day]) for day in sorted(days)],
            shares=[(*key, shares[key]) for key in sorted(shares)],
            projects=[
                (name, len({r.num for r, _, _ in told if r.session.project == name}), projects[name])
                for name in busiest
            ],
            longest=[sessions[num] for num in longest],
        )

    async def projects(self, owner: str) -> list[str]:
        found = (record.session.project for record in self._records(owner))
        return sorted({project for project in found if project is not None})

    async def placeless(self, owner: str, limit: int) -> list[str]:
        found = (record.session for record in self._records(owner) if record.session.project is None)
        return sorted({session.cwd for session in found if session.cwd is not None})[:limit]

    async def rooted(self, owner: str, root: str) -> str | None:
        return self._kept(owner).roots.get(root)

    async def roots(self, owner: str, project: str) -> list[str]:
        return sorted(root for root, name in self._kept(owner).roots.items() if name == project)

    def _told(self, owner: str, first: int, last: int) -> Iterator[tuple[Record, DayModel, Tally]]:
        shelf = self._kept(owner)
        for record in shelf.sessions.values():
            for said, tally in _said(shelf, record.num).items():
                if first <= said.day <= last:
                    yield record, said, tally

    def _records(self, owner: str) -> Iterator[Record]:
        return iter(self._kept(owner).sessions.values())

    def _kept(self, owner: str) -> OwnerTables:
        return self._library.shelves.get(owner) or OwnerTables()


def _said(shelf: OwnerTables, num: int) -> dict[DayModel, Tally]:
    """What was said in a session's own log."""
    entries = (decode_entry(kept.payload) for _, kept in sorted(shelf.logs[num].entries.items()))
    return {said: tally for said, tally in tallies(entries, {}).items() if tally.messages > 0}
