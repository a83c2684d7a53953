"""A session's row and its record, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hitherto.model import Identity, Lease, Session, decode_json, encode
from hitherto.ports import Record, Totals

Row = tuple[Any, ...]

FIELDS = Session.__struct_fields__
"""One column for each field of a session, of the same name."""

OWN = (
    "num", "owner", "order_at", "head", "total_tokens", "total_errors", "total_cost", "total_bytes",
    "lease_holder", "lease_fence", "lease_acquired_at", "lease_expires_at", "change",
)  # fmt: skip
"""The columns that are the program's own."""

COLUMNS = ", ".join((*OWN, *FIELDS))

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


def record_of(row: Row) -> Record:
    """The record in a row of `COLUMNS`."""
    num, owner, order_at, head, tokens, errors, cost, size, holder, fence, acquired, expires, change = row[
        : len(OWN)
    ]
    lease = None
    if holder is not None:
        lease = Lease(holder=holder, fence=fence, acquired_at=acquired, expires_at=expires)
    return Record(
        num=num,
        owner=owner,
        session=_session_of(row[len(OWN) :]),
        order_at=order_at,
        head=head,
        totals=Totals(tokens, errors, cost, size),
        lease=lease,
        change=change,
    )


def _session_of(values: Row) -> Session:
    fields = dict(zip(FIELDS, values, strict=True))
    for name, convert in _FROM_JSON.items():
        text = fields[name]
        fields[name] = _DEFAULTS[name] if text is None else convert(decode_json(text.encode()))
    return Session(**fields)


def values_of(record: Record) -> dict[str, Any]:
    """The values of all columns, by name."""
    session, lease = record.session, record.lease
    values = {name: getattr(session, name) for name in FIELDS}
    for name, default in _DEFAULTS.items():
        values[name] = None if values[name] == default else encode(values[name]).decode()
    tokens, errors, cost, size = record.totals
    return values | {
        "num": record.num,
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
    }
