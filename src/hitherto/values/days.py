"""What was said on which day, by which model: days of UTC as numbers, and how entries are added up. Pure.

A source may amend a message: its newer form is kept behind the earlier one, under its id with `~2`, `~3` behind it. Only
the newest form counts, so each takes away what the one before it has added.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

from hitherto.errors import InvalidInput
from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import Entry, is_mirror_record

DAY_MS = 86_400_000
MICROS = 1_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_AMENDED = re.compile(r"(.+)~([2-9]|[1-9][0-9]+)", re.DOTALL)


class Tally(NamedTuple):
    """What was said, added up. Cost is in millionths of a dollar."""

    messages: int = 0
    tokens: int = 0
    cost: int = 0

    def plus(self, other: Tally) -> Tally:
        """Their sum."""
        return Tally(self.messages + other.messages, self.tokens + other.tokens, self.cost + other.cost)


class DayModel(NamedTuple):
    """A day and a model; the model is empty where it is not known, as with what people say."""

    day: int
    model: str


def day_number(text: str) -> int:
    """The number of the day that is written like `2026-11-15`."""
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except (TypeError, ValueError):
        raise InvalidInput(f"a day is written like 2026-11-15, not {text!r:.40}") from None


def day_text(number: int) -> str:
    """The day of this number, as it is written."""
    return date.fromordinal(number + _EPOCH).isoformat()


def day_of(at: int) -> int:
    """The number of the day of a moment."""
    return at // DAY_MS


def today(now: int) -> date:
    """The day of this moment, in UTC."""
    return datetime.fromtimestamp(now / 1_000, UTC).date()


def earlier_form(entry_id: str) -> str | None:
    """The id of the form that an amended entry had before; None if it was not amended."""
    found = _AMENDED.fullmatch(entry_id)
    if found is None:
        return None
    number = int(found[2])
    return found[1] if number == 2 else f"{found[1]}~{number - 1}"


def missing_forms(entries: Iterable[Entry]) -> list[str]:
    """The ids of earlier forms that are not among these entries: `tallies` needs them."""
    given = list(entries)
    known = {entry.id for entry in given}
    forms = (earlier_form(entry.id) for entry in given if "~" in entry.id)
    return [form for form in forms if form is not None and form not in known]


def tallies(entries: Iterable[Entry], earlier: Mapping[str, Entry]) -> dict[DayModel, Tally]:
    """What these entries add to the days; `earlier` has the forms before them that are not among them."""
    sums: defaultdict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    known = dict(earlier)
    for entry in entries:
        if is_mirror_record(entry):
            continue
        _count(sums, entry, 1)
        form = earlier_form(entry.id) if "~" in entry.id else None
        before = None if form is None else known.get(form)
        if before is not None:
            _count(sums, before, -1)
        known[entry.id] = entry
    return {DayModel(*said): Tally(*sum_) for said, sum_ in sums.items()}


def _count(sums: defaultdict[tuple[int, str], list[int]], entry: Entry, sign: int) -> None:
    """Add an entry to the sums, which are those of a `Tally`, or take it away."""
    tally = sums[day_of(entry.at), _model(entry.model) if entry.model else ""]
    tally[0] += sign
    tally[1] += sign * (entry.tokens or 0)
    if entry.usage and entry.usage.cost:
        tally[2] += sign * round(entry.usage.cost * MICROS)


@lru_cache(maxsize=256)
def _model(name: str) -> str:
    return name[:NAME_CHARS] if is_storable(name) else ""
