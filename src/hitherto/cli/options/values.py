"""Values as people type them: `90d`, `2GB`, `2025-06-01`, a folder."""

from __future__ import annotations

import os
import re
from datetime import datetime
from zoneinfo import available_timezones

import click

from hitherto.errors import InvalidInput
from hitherto.ids import now_ms
from hitherto.values.days import DAY_MS, day_number, day_text

no_pager_option = click.option("--no-pager", is_flag=True, help="Print everything at once on a terminal too.")

_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}
_DURATION = re.compile(r"([0-9]{1,9})\s*([smhdw])", re.IGNORECASE)
_SIZE = re.compile(r"([0-9]{1,15})(\.[0-9]{1,6})?\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_duration(text: str) -> int | None:
    """The milliseconds of `30s`, `15m`, `2h`, `90d` or `4w`; None if the text is not a duration."""
    found = _DURATION.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def parse_size(text: str) -> int | None:
    """The bytes of `500MB`, `1.5GiB` or `4096`; None if the text is not a size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    base = 1024 if found[4] else 1000
    return int(float(found[1] + (found[2] or "")) * base ** _POWERS[found[3].lower()])


def parse_moment(text: str, now: int) -> int | None:
    """The time of a duration ago, or of a date (in local time unless it has a zone); None if the text is neither."""
    ago = parse_duration(text)
    if ago is not None:
        return now - ago
    try:
        return round(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None


def duration(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Callback of an option that takes a duration."""
    return _valid_or_error(text, None if text is None else parse_duration(text), "30m, 2h, 90d or 4w")


def size(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Callback of an option that takes a number of bytes."""
    return _valid_or_error(text, None if text is None else parse_size(text), "500MB, 2GB or 1GiB")


def moment(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """Callback of an option that takes a time."""
    found = None if text is None else parse_moment(text, now_ms())
    return _valid_or_error(text, found, "7d, 2h, 2025-06-01 or 2025-06-01T12:00")


def day(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """Callback of an option that takes a day."""
    try:
        return None if text is None else day_text(day_number(text))
    except InvalidInput:
        raise click.BadParameter(f"{text!r} is not a day; use the form 2026-11-15.") from None


def local_zone() -> str:
    """The time zone of this machine, by its name if it has one: `Europe/Berlin`; else by what it is apart from UTC now."""
    named = (
        os.environ.get("TZ", "").lstrip(":") or os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    )
    if named in available_timezones():
        return named
    return f"{datetime.now().astimezone():%z}"


def folder(path: str) -> str:
    """The absolute path of a folder. An empty path stays empty, so that it is reported as invalid."""
    return os.path.abspath(path) if path else path


def _valid_or_error(text: str | None, value: int | None, forms: str) -> int | None:
    if text is not None and value is None:
        raise click.BadParameter(f"{text!r} is not valid; use a value such as {forms}.")
    return value
