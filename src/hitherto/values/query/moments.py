"""Times as people write them: `2026-11`, `yesterday`, `last week`, `in March`, `7d`. In UTC. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from hitherto.values.days import DAY_MS

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
UNITS = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
"""What `3d` counts in: minutes, hours, days, weeks."""

_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = r"today|yesterday|(?:last|this|past)[ -](?:week|month|year)"
_MONTH = rf"({'|'.join(MONTHS)})(?:[ -]([0-9]{{4}}))?"
# Not what is part of a longer word, of a field, or left out by a sign before it.
_SAID = re.compile(
    rf"(?<![\w:/.*-])(?:({_NAMED})|(in|during|since|of) {_MONTH})(?![\w:/*-])", re.IGNORECASE | re.ASCII
)
_NAMED_VALUE = re.compile(_NAMED, re.ASCII)
_MONTH_VALUE = re.compile(_MONTH, re.ASCII)
_PLAIN = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?", re.ASCII)
_AGO = re.compile(r"([0-9]{1,4})([mhdw])", re.ASCII)
_QUOTED = re.compile(r'"[^"]*"?')


class Period(NamedTuple):
    """From `after`, included, to `before`, not included, in ms since 1970."""

    after: int
    before: int


def period_of(text: str, now: int) -> Period | None:
    """The time that a value means: a year, month, day or moment, a name such as `yesterday`, or `7d`, from then on; None if
    it means none."""
    text = text.lower()
    if _NAMED_VALUE.fullmatch(text):
        return _named(text, now)
    if found := _MONTH_VALUE.fullmatch(text):
        return _named_month(found[1], found[2], now)
    if found := _AGO.fullmatch(text):
        return Period(now - int(found[1]) * UNITS[found[2]], now + 1)
    try:
        return _dated(text)
    except ValueError:
        return None


def said_in(text: str, now: int) -> tuple[Period | None, str]:
    """The time that a text is about, such as `last week`, and the text without it. What stands in quotes says nothing."""
    found = _SAID.search(_QUOTED.sub(lambda quoted: '"' * len(quoted[0]), text))
    if found is None:
        return None, text
    name, link, month, year = found.groups()
    period = _named(name.lower(), now) if name else _named_month(month.lower(), year, now)
    if link and link.lower() == "since":
        period = Period(period.after, max(period.before, now + 1))
    return period, f"{text[: found.start()]} {text[found.end() :]}"


def _dated(text: str) -> Period:
    """Raises `ValueError` if the text is no date."""
    if short := _PLAIN.fullmatch(text):
        year, month = int(short[1]), int(short[2] or 1)
        begin = _ms(datetime(year, month, 1, tzinfo=UTC))
        months = (month,) if short[2] else range(1, 13)
        return Period(begin, begin + sum(monthrange(year, each)[1] for each in months) * DAY_MS)
    moment = datetime.fromisoformat(text.upper())
    begin = _ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return Period(begin, begin + (MINUTE_MS if "t" in text or " " in text else DAY_MS))


def _named(name: str, now: int) -> Period:
    today = (_EPOCH + timedelta(milliseconds=now)).replace(hour=0, minute=0, second=0, microsecond=0)
    monday, first, year = today - today.weekday() * _DAY, today.replace(day=1), today.replace(month=1, day=1)
    after, before = {
        "today": (today, today + _DAY),
        "yesterday": (today - _DAY, today),
        "this week": (monday, monday + 7 * _DAY),
        "last week": (monday - 7 * _DAY, monday),
        "past week": (today - 7 * _DAY, today + _DAY),
        "this month": (first, today + _DAY),
        "last month": ((first - _DAY).replace(day=1), first),
        "past month": (today - 30 * _DAY, today + _DAY),
        "this year": (year, today + _DAY),
        "last year": (year.replace(year=year.year - 1), year),
        "past year": (today - 365 * _DAY, today + _DAY),
    }[name.replace("-", " ")]
    return Period(_ms(after), _ms(before))


def _named_month(name: str, year: str | None, now: int) -> Period:
    """Without a year, the last such month that has begun."""
    month, today = MONTHS.index(name) + 1, _EPOCH + timedelta(milliseconds=now)
    number = max(int(year), 1970) if year else today.year - (month > today.month)
    return _dated(f"{number:04}-{month:02}")


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
