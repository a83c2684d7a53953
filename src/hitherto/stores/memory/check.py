"""Whether the shelves agree with themselves."""

from __future__ import annotations

from collections.abc import Iterator

from hitherto.ports import CURRENT, Record, Totals
from hitherto.stores.memory.tables import OwnerTables, Tables
from hitherto.values.spans import Spans, context, size

MICROS = 1_000_000
CHECKED = (
    "every span reaches entries that exist",
    "every log ends where its session says",
    "every session's counters equal what its entries say",
    "lists, change feed and search hold every session and entry once",
)


def problems(library: Tables) -> Iterator[str]:
    """What is wrong, in words."""
    for owner, shelf in library.shelves.items():
        for told in _shelf_problems(shelf):
            yield f"owner {owner!r}: {told}"


def _shelf_problems(shelf: OwnerTables) -> Iterator[str]:
    for record in shelf.sessions.values():
        for name, spans in shelf.spans.get(record.num, {}).items():
            if not _whole(shelf, record, spans):
                yield f"session {record.session.id!r}: spans {name or 'now'!r} reach entries that are not there"
        yield from _log_problems(shelf, record)
        yield from _counter_problems(shelf, record)
    yield from _index_problems(shelf)


def _whole(shelf: OwnerTables, record: Record, spans: Spans) -> bool:
    return all(
        stretch.log in shelf.logs
        and all(seq in shelf.logs[stretch.log].entries for seq in range(stretch.first, stretch.last + 1))
        for stretch in context(spans, record.num, record.head)
    )


def _log_problems(shelf: OwnerTables, record: Record) -> Iterator[str]:
    log = shelf.logs[record.num]
    head = max(log.sums, default=0)
    if (head, log.sums.get(head, Totals())) != (record.head, record.totals):
        yield f"session {record.session.id!r}: its log ends at {head}, not at {record.head}, or with other sums"


def _counter_problems(shelf: OwnerTables, record: Record) -> Iterator[str]:
    view = context(shelf.spans.get(record.num, {}).get(CURRENT, ()), record.num, record.head)
    sums = Totals()
    for stretch in view:
        log = shelf.logs.get(stretch.log)
        known = log.sums if log else {}
        upto, before = known.get(stretch.last, Totals()), known.get(stretch.first - 1, Totals())
        sums = sums.plus(upto.minus(before))
    session = record.session
    cost = round((session.cost or 0) * MICROS)
    told = (session.message_count, Totals(session.token_count or 0, session.error_count, cost, session.bytes))
    if told != (size(view), sums):
        yield f"session {session.id!r}: counts {told}, its entries {(size(view), sums)}"


def _index_problems(shelf: OwnerTables) -> Iterator[str]:
    nums = sorted(shelf.sessions)
    if sorted(shelf.ids.values()) != nums or sorted(shelf.order.values()) != nums:
        yield "the list does not hold every session once"
    told = sorted(record.change for record in shelf.sessions.values())
    told += [tombstone.change for tombstone in shelf.tombstones.values()]
    if sorted(told) != sorted(shelf.feed):
        yield "the change feed does not hold every session once"
    documents = [kept.document for log in shelf.logs.values() for kept in log.entries.values()]
    found = [number for number in (*documents, *shelf.titles.values()) if number is not None]
    if sorted(found) != sorted(shelf.documents):
        yield "the search does not hold every entry and title once"
