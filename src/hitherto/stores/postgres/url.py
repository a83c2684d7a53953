"""What an address says: most of it to libpq, one word to this store."""

from __future__ import annotations

from typing import NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hitherto.errors import InvalidInput

MOST_PARTITIONS = 1_024
PARTITIONS = "partitions"

# A network that falls silent breaks no connection by itself: a statement would wait for a quarter of an hour, an idle
# connection for two. An address may say otherwise. Milliseconds for `tcp_user_timeout`, else seconds and times.
AGAINST_SILENCE = {
    "connect_timeout": 3,
    "tcp_user_timeout": 8_000,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 2,
}


class Address(NamedTuple):
    """Where a database is. `partitions` is None if the address says nothing about them."""

    conninfo: str
    partitions: int | None = None


def parse_address(url: str) -> Address:
    """An address as it is given to the store. Raises `psycopg.ProgrammingError` and `InvalidInput`."""
    place, _, query = url.partition("?")
    words = query.split("&") if query else []
    ours = [word for word in words if word.partition("=")[0] == PARTITIONS]
    rest = "&".join(word for word in words if word not in ours)
    told = conninfo_to_dict(f"{place}?{rest}" if rest else place)
    partitions = _checked_number(ours[-1].partition("=")[2]) if ours else None
    return Address(make_conninfo("", **{**AGAINST_SILENCE, **told}), partitions)


def _checked_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PARTITIONS):
        raise InvalidInput(f"partitions is a whole number from 1 to {MOST_PARTITIONS}, not {text!a:.40}")
    return int(text)
