"""What was said on which day, and what sessions have in common: counted anew whenever it is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from hitherto.model import Facets, agent_of, decode_entry
from hitherto.ports import Activity, Record
from hitherto.stores.memory.tables import OwnerTables
from hitherto.values.days import DayModel, Tally, day_number, tallies
from hitherto.values.facets import COUNT, facets, marks, traits_of


def list_facets(own: OwnerTables) -> Facets:
    """See `ports.Reader.facets`."""
    records = own.sessions.values()
    counts = Counter(mark for record in records for mark in marks(traits_of(record.session)))
    falling = sorted(counts.items(), key=lambda item: (item[0].kind == COUNT, -item[1], item[0].value))
    return facets((mark.kind, mark.value, number) for mark, number in falling)


def active_sessions(own: OwnerTables, day: str, nums: Sequence[int]) -> set[int]:
    """See `ports.Reader.spoken`."""
    known = [num for num in nums if num in own.sessions]
    return {num for num in known if day_number(day) in {said.day for said in _said(own, num)}}


def activity(own: OwnerTables, first: int, last: int, most: int) -> Activity:
    """See `ports.Reader.activity`."""
    found = list(_tallies_between(own, first, last))
    days: defaultdict[int, Tally] = defaultdict(Tally)
    shares: defaultdict[tuple[int, str, str], Tally] = defaultdict(Tally)
    projects: defaultdict[str, Tally] = defaultdict(Tally)
    lengths: Counter[int] = Counter()
    for record, said, tally in found:
        name, project = agent_of(record.session) or "", record.session.project
        days[said.day] = days[said.day].plus(tally)
        shares[said.day, name, said.model] = shares[said.day, name, said.model].plus(tally)
        if project is not None:
            projects[project] = projects[project].plus(tally)
        lengths[record.num] += tally.messages
    busiest = sorted(projects, key=lambda name: (-projects[name].messages, name))[:most]
    longest = sorted(lengths, key=lambda num: (-lengths[num], num))[:most]
    return Activity(
        days=[(day, len({r.num for r, s, _ in found if s.day == day}), days[day]) for day in sorted(days)],
        shares=[(*key, shares[key]) for key in sorted(shares)],
        projects=[
            (name, len({r.num for r, _, _ in found if r.session.project == name}), projects[name])
            for name in busiest
        ],
        longest=[own.sessions[num] for num in longest],
    )


def list_projects(own: OwnerTables) -> list[str]:
    """See `ports.Reader.projects`."""
    found = (record.session.project for record in own.sessions.values())
    return sorted({project for project in found if project is not None})


def folders_without_project(own: OwnerTables, limit: int) -> list[str]:
    """See `ports.Reader.placeless`."""
    found = (record.session for record in own.sessions.values() if record.session.project is None)
    return sorted({session.cwd for session in found if session.cwd is not None})[:limit]


def roots_of_project(own: OwnerTables, project: str) -> list[str]:
    """See `ports.Reader.roots`."""
    return sorted(root for root, name in own.roots.items() if name == project)


def _tallies_between(own: OwnerTables, first: int, last: int) -> Iterator[tuple[Record, DayModel, Tally]]:
    for record in own.sessions.values():
        for said, tally in _said(own, record.num).items():
            if first <= said.day <= last:
                yield record, said, tally


def _said(own: OwnerTables, num: int) -> dict[DayModel, Tally]:
    """What was said in a session's own log."""
    entries = (decode_entry(kept.payload) for _, kept in sorted(own.logs[num].entries.items()))
    return {said: tally for said, tally in tallies(entries, {}).items() if tally.messages > 0}
