"""Layout of the charts: the position and the meaning of each mark. Pure; templates draw them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from itertools import accumulate
from math import ceil, floor, log10
from typing import NamedTuple

PITCH = 14
"""The distance between two days of the calendar, gap included."""
LEFT, ABOVE = 30, 18
WIDE, HIGH = 880.0, 180.0
AXIS, BELOW = 46.0, 20.0
SERIES = 5
"""How many names a chart shows; the others are summed up."""
LEVELS = 4
STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


class Day(NamedTuple):
    """A day of the calendar with its value, as one of four levels; 0 for none."""

    x: int
    y: int
    day: str
    value: int
    level: int


class Calendar(NamedTuple):
    """Weeks side by side, Monday on top, and where each month begins."""

    days: tuple[Day, ...]
    months: tuple[tuple[int, str], ...]
    width: int
    height: int


class Piece(NamedTuple):
    """The value of one name on one day; `name` is None for the sum of the others."""

    x: float
    y: float
    width: float
    height: float
    tone: int
    day: str
    name: str | None
    value: float


class Name(NamedTuple):
    """A name of the chart, its tone and its total."""

    name: str | None
    tone: int
    value: float


class Stacks(NamedTuple):
    """A column for each day, the values in `lines` as a scale, and the days in `marks` to read it by."""

    pieces: tuple[Piece, ...]
    names: tuple[Name, ...]
    lines: tuple[tuple[float, float], ...]
    marks: tuple[tuple[float, str], ...]


def calendar(values: Mapping[str, int], since: date, until: date) -> Calendar:
    """The days from the first to the last, both included."""
    start = since - timedelta(days=since.weekday())
    weeks = (until - start).days // 7 + 1
    edges = _quarters(value for value in values.values() if value > 0)
    days = [
        Day(LEFT + week * PITCH, ABOVE + day.weekday() * PITCH, str(day), value, _level(value, edges))
        for day in days_between(since, until)
        for week in [(day - start).days // 7]
        for value in [values.get(str(day), 0)]
    ]
    return Calendar(tuple(days), _months(since, until, start), LEFT + weeks * PITCH, ABOVE + 7 * PITCH)


def stacks(values: Iterable[tuple[str, str, float]], columns: Iterable[date]) -> Stacks:
    """Stacked columns, each of a day or of what begins with it, of the values (`day, name, value`), the name with the largest
    total at the bottom."""
    days = [str(day) for day in columns]
    known = set(days)
    shown = [given for given in values if given[2] > 0 and given[0] in known]
    names = _names(shown)
    tones = {name.name: name.tone for name in names}
    by_day: dict[str, dict[str | None, float]] = {}
    for day, name, value in shown:
        shown_name = name if name in tones else None
        column = by_day.setdefault(day, {})
        column[shown_name] = column.get(shown_name, 0) + value
    top = _top(max((sum(column.values()) for column in by_day.values()), default=0))
    step = (WIDE - AXIS) / len(days)
    pieces = [
        piece
        for at, day in enumerate(days)
        for piece in _column(by_day.get(day, {}), tones, day, AXIS + at * step, step, top)
    ]
    lines = tuple((_y(top * part / 2, top), top * part / 2) for part in (0, 1, 2))
    return Stacks(tuple(pieces), names, lines if shown else (), _readings(days, step))


def _column(
    column: Mapping[str | None, float],
    tones: Mapping[str | None, int],
    day: str,
    x: float,
    step: float,
    top: float,
) -> list[Piece]:
    gap = min(2.0, step / 4)
    parts = sorted(column.items(), key=lambda part: tones[part[0]])
    tops = accumulate(value for _, value in parts)
    return [
        Piece(
            round(x + gap / 2, 2), _y(high, top), round(step - gap, 2), round((HIGH - ABOVE) * value / top, 2),
            tones[name], day, name, value,
        )
        for (name, value), high in zip(parts, tops, strict=True)
    ]  # fmt: skip


def _names(values: Iterable[tuple[str, str, float]]) -> tuple[Name, ...]:
    totals: dict[str, float] = {}
    for _, name, value in values:
        totals[name] = totals.get(name, 0) + value
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    names = [Name(name, tone, value) for tone, (name, value) in enumerate(ordered[:SERIES])]
    if rest := ordered[SERIES:]:
        names.append(Name(None, SERIES, sum(value for _, value in rest)))
    return tuple(names)


def _y(value: float, top: float) -> float:
    return round(HIGH - (HIGH - ABOVE) * value / top, 2)


def _top(most: float) -> float:
    """The next round number that is not smaller."""
    if most <= 0:
        return 1.0
    size = 10.0 ** floor(log10(most))
    return next(step * size for step in STEPS if step * size >= most * (1 - 1e-9))


def _readings(days: list[str], step: float) -> tuple[tuple[float, str], ...]:
    """Some days to read a chart by: at most eight, as far apart as each other."""
    every = max(1, ceil(len(days) / 8))
    return tuple(
        (round(AXIS + (at + 0.5) * step, 2), _short(date.fromisoformat(days[at])))
        for at in range(every // 2, len(days), every)
    )


def _months(since: date, until: date, start: date) -> tuple[tuple[int, str], ...]:
    firsts = [day for day in days_between(since, until) if day.day == 1]
    return tuple((LEFT + (day - start).days // 7 * PITCH, f"{day:%b}") for day in firsts)


def _quarters(values: Iterable[int]) -> list[int]:
    ordered = sorted(values)
    return [ordered[ceil(len(ordered) * part / LEVELS) - 1] for part in range(1, LEVELS)] if ordered else []


def _level(value: int, edges: list[int]) -> int:
    return 0 if value <= 0 else 1 + bisect_left(edges, value)


def days_between(since: date, until: date) -> list[date]:
    """The days from the first to the last, both included."""
    return [since + timedelta(days=n) for n in range((until - since).days + 1)]


def _short(day: date) -> str:
    return f"{day.day} {day:%b}"
