"""The walk through a list of sessions, page by page."""

from __future__ import annotations

import msgspec

from hitherto.limits import ROWS_EXAMINED
from hitherto.model import Filter
from hitherto.ports import ListKey, Reader, Record, Scan
from hitherto.values.filters import passes, text_terms

FEW_TITLES = 100


class ListWalk(msgspec.Struct, array_like=True):
    """Where a walk through a list has come to: down by (order_at, id), then up over what changed since it began."""

    since: int
    order_at: int | None = None
    id: str = ""
    upward: int | None = None


async def next_page(
    tx: Reader, owner: str, given: Filter, walk: ListWalk | None, limit: int
) -> tuple[list[Record], ListWalk | None]:
    """The next page of a walk, and where it has come to; None when it has seen everything."""
    walk = walk or ListWalk(since=await tx.newest(owner))
    records: list[Record] = []
    if walk.upward is None:
        below = None if walk.order_at is None else ListKey(walk.order_at, walk.id)
        down = await _scan(tx, owner, given, below, limit)
        records = down.records
        if not down.ended and down.last is not None:
            return records, ListWalk(since=walk.since, order_at=down.last.order_at, id=down.last.id)
        if below is None or await tx.newest(owner) == walk.since:
            return records, None
        walk = ListWalk(since=walk.since, upward=walk.since)
        if len(records) == limit:
            return records, walk
    up = await tx.changed(owner, given, walk.upward or 0, limit - len(records), ROWS_EXAMINED)
    records += up.records
    if up.ended or up.last is None:
        return records, None
    return records, ListWalk(since=walk.since, upward=up.last.order_at)


async def _scan(tx: Reader, owner: str, given: Filter, below: ListKey | None, limit: int) -> Scan:
    """A scan, by way of the title index when the words asked for are rare."""
    terms = text_terms(given)
    few = await tx.titled(owner, terms, FEW_TITLES) if terms else None
    if few is None:
        return await tx.scan(owner, given, below, limit, ROWS_EXAMINED)
    few = [record for record in few if passes(record.session, given)]
    if given.day is not None:
        there = await tx.spoken(owner, given.day, [record.num for record in few])
        few = [record for record in few if record.num in there]
    keyed = sorted(((ListKey(r.order_at, r.session.id), r) for r in few), reverse=True)
    rest = [(key, record) for key, record in keyed if below is None or key < below]
    page = rest[:limit]
    return Scan([record for _, record in page], page[-1][0] if page else None, len(rest) <= limit)
