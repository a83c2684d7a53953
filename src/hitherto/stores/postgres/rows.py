"""A session's row and its record, both ways; and the form of texts that PostgreSQL would refuse."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import msgspec

from hitherto.errors import StoreDamaged
from hitherto.model import Identity, Lease, Session, decode_json, encode
from hitherto.ports import Record, Totals
from hitherto.values.checksums import checksum, is_lease_whole, is_read_whole, lease_checksum, read_checksum
from hitherto.values.positions import MOST_LANES

Row = tuple[Any, ...]

FIELDS = Session.__struct_fields__
"""One column for each field of a session, of the same name."""

OWN = (
    "num", "owner", "order_at", "head", "total_tokens", "total_errors", "total_cost", "total_bytes",
    "lease_holder", "lease_fence", "lease_acquired_at", "lease_expires_at", "change", "crc", "lease_crc", "read_crc",
    "heard_at", "heard_revision",
)  # fmt: skip
"""The columns that are the program's own."""

COLUMNS = ", ".join((*OWN, *FIELDS))
NUM, OWNER, ORDER_AT, CHANGE, HEARD_AT = (
    OWN.index(name) for name in ("num", "owner", "order_at", "change", "heard_at")
)
ID = len(OWN) + FIELDS.index("id")
"""Where in a row of `COLUMNS` is what lists go by."""

LISTED = 1_024
"""So many rows of lists are remembered."""

LANES = MOST_LANES
"""In so many lanes are an owner's changes numbered."""

_SUMMED = tuple(
    name
    for name in (*OWN, *FIELDS)
    if name not in ("change", "crc", "read_at", "read_crc") and not name.startswith(("lease_", "heard_"))
)
_AT = {name: at for at, name in enumerate((*OWN, *FIELDS))}
_CRC, _LEASE_CRC, _READ_CRC, _LEASE_HOLDER = (
    _AT[name] for name in ("crc", "lease_crc", "read_crc", "lease_holder")
)
_summed = itemgetter(*(_AT[name] for name in _SUMMED))
_summed_values = itemgetter(*_SUMMED)
_fields = attrgetter(*FIELDS)
_COST, _REVISION = _SUMMED.index("cost"), _SUMMED.index("revision")
REVISION_BITS = 16
CHANGE_BITS = 15

# Kept as JSON text; a column is NULL where the field has its default.
_FROM_JSON: Mapping[str, Callable[[Any], Any]] = {
    "additional_directories": tuple,
    "earlier_cwds": tuple,
    "earlier_titles": tuple,
    "tags": tuple,
    "identity": lambda found: msgspec.convert(found, Identity),
    "meta": dict,
}
_DEFAULTS: Mapping[str, Any] = {
    "additional_directories": (),
    "earlier_cwds": (),
    "earlier_titles": (),
    "tags": (),
    "identity": None,
    "meta": {},
}

_json_texts = itemgetter(*_FROM_JSON)
_JSON_AT = tuple((FIELDS.index(name), default) for name, default in _DEFAULTS.items())
_READ_AT = FIELDS.index("read_at")

_REFUSED = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def escaped(text: str) -> str:
    """The text in a form that PostgreSQL takes."""
    return _REFUSED.sub(lambda found: f"\x1a{ord(found[0]):04x}", text)


def restored(text: str) -> str:
    """The text that `escaped` was given."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "\x1a" in text else text


@lru_cache(maxsize=1_024)
def lane_of(session_id: str) -> int:
    """The lane of a session: the same whatever else there is, and if it is deleted and made again."""
    return hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).digest()[0] & (LANES - 1)


def record_of(row: Row) -> Record:
    """The record in a row of `COLUMNS`. `StoreDamaged` if it is not what was written."""
    try:
        record = _record_of(row)
    except (ValueError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise StoreDamaged(f"the session {row[ID]!r:.60} cannot be read; run `hitherto doctor`") from error
    if not (is_session_whole(row) and _is_rest_whole(record, row)):
        raise StoreDamaged(f"the session {row[ID]!r:.60} was altered; run `hitherto doctor`")
    return record


def _is_rest_whole(record: Record, row: Row) -> bool:
    """Whether its lease and its last reading are what was written."""
    place = record.owner, record.num
    if not is_lease_whole(*place, record.lease, row[_LEASE_CRC]):
        return False
    return is_read_whole(*place, record.session.read_at, row[_READ_CRC])


def whole_records(rows: Iterable[Row]) -> list[Record]:
    """The records of these rows for a list; a damaged one is left out and reported only to callers who ask for it."""
    records = list[Record]()
    for row in rows:
        with suppress(StoreDamaged):
            records.append(record_of(row))
    return records


class ListedRows:
    """The rows that were listed last, with their records: one that comes again, the same in every column, was checked and
    decoded before. Rows have texts as the server keeps them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[Row, Record]] = {}

    def records(self, rows: Iterable[Row]) -> list[Record]:
        """As `whole_records`."""
        records = list[Record]()
        for row in rows:
            known = self._known.get((row[OWNER], row[NUM]))
            if known is not None and known[0] == row:
                records.append(known[1])
                continue
            with suppress(StoreDamaged):
                records.append(self._decoded(row))
        return records

    def _decoded(self, row: Row) -> Record:
        record = _record_as_sent(row)
        if not record.session.meta:  # which whoever gets it might change
            self._known[row[OWNER], row[NUM]] = (row, record)
            if len(self._known) > LISTED:
                self._known.pop(next(iter(self._known)))
        return record


def _record_as_sent(row: Row) -> Record:
    # The checksum is that of the texts themselves: where it is right, none of them had to be escaped.
    if row[_CRC] == session_checksum(row) and "\x1a" not in (row[_LEASE_HOLDER] or ""):
        record = _record_of(row)
        if _is_rest_whole(record, row):
            return record
    return record_of(tuple(restored(value) if isinstance(value, str) else value for value in row))


def is_session_whole(row: Row) -> bool:
    """Whether a row of `COLUMNS` is what was written, its lease apart. What a program has written since that knows of no
    checksums, with another revision and another change, is believed."""
    known = row[_CRC]
    if known is None:
        return True
    expected = session_checksum(row)
    if known == expected:
        return True
    stamp, known_stamp = expected >> 32, known >> 32
    mask = (1 << REVISION_BITS) - 1
    is_of_older_program = (stamp & mask) != (
        known_stamp & mask
    ) and stamp >> REVISION_BITS != known_stamp >> REVISION_BITS
    return bool(is_of_older_program)


def session_checksum(row: Row) -> int:
    """The checksum that a row of `COLUMNS` should have: with bits of its revision and, as statements add them that number a
    change, of its newest change."""
    change = row[CHANGE] & ((1 << CHANGE_BITS) - 1)
    return int(change << (32 + REVISION_BITS) | _session_checksum(_summed(row)))


def _session_checksum(values: Row) -> int:
    cost = values[_COST]
    if cost is not None and not isinstance(cost, float):
        values = (*values[:_COST], float(cost), *values[_COST + 1 :])
    whole = checksum(*values)
    return (int(values[_REVISION]) & ((1 << REVISION_BITS) - 1)) << 32 | whole


def record_checksum(record: Record) -> int:
    """What `values_of` has for `crc`, without everything else."""
    fields = list(_fields(record.session))
    for at, default in _JSON_AT:
        fields[at] = None if fields[at] == default else encode(fields[at]).decode()
    del fields[_READ_AT]
    return _session_checksum(
        (record.num, record.owner, record.order_at, record.head, *record.totals, *fields)
    )


def _record_of(row: Row) -> Record:
    (num, owner, order_at, head, tokens, errors, cost, size, holder, fence, acquired, expires, change, *_) = (
        row[: len(OWN)]
    )
    session, heard_at, heard_revision = _session_of(row[len(OWN) :]), row[HEARD_AT], row[HEARD_AT + 1]
    lease = None
    if holder is not None:
        lease = Lease(holder=holder, fence=fence, acquired_at=acquired, expires_at=expires)
    return Record(
        num=num,
        owner=owner,
        session=session,
        order_at=order_at,
        head=head,
        totals=Totals(tokens, errors, cost, size),
        lease=lease,
        change=change,
        heard_at=heard_at if heard_revision == session.revision else None,
    )


def _session_of(values: Row) -> Session:
    fields = dict(zip(FIELDS, values, strict=True))
    texts = _json_texts(fields)
    fields.update(_DEFAULTS)
    if any(texts):
        for (name, convert), text in zip(_FROM_JSON.items(), texts, strict=True):
            if text is not None:
                fields[name] = convert(decode_json(text.encode()))
    return Session(**fields)


def values_of(record: Record) -> dict[str, Any]:
    """The values of all columns, by name."""
    session, lease = record.session, record.lease
    values = dict(zip(FIELDS, _fields(session), strict=True))
    for name, default in _DEFAULTS.items():
        values[name] = None if values[name] == default else encode(values[name]).decode()
    tokens, errors, cost, size = record.totals
    values |= {
        "num": record.num,
        "lane": lane_of(session.id),
        "owner": record.owner,
        "order_at": record.order_at,
        "head": record.head,
        "total_tokens": tokens,
        "total_errors": errors,
        "total_cost": cost,
        "total_bytes": size,
        "lease_holder": lease and lease.holder,
        "lease_fence": lease and lease.fence,
        "lease_acquired_at": lease and lease.acquired_at,
        "lease_expires_at": lease and lease.expires_at,
        "lease_crc": lease and lease_checksum(record.owner, record.num, lease),
        "read_crc": read_checksum(record.owner, record.num, session.read_at),
        "heard_at": record.silent_since,
        "heard_revision": None if record.heard_at is None else session.revision,
    }
    return values | {"crc": _session_checksum(_summed_values(values))}
