"""Whether the tables agree with each other."""

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


def problems(tables: Tables) -> Iterator[str]:
    """What is wrong, in words."""
    for owner, own in tables.owners.items():
        for problem in _owner_problems(own):
            yield f"owner {owner!r}: {problem}"


def _owner_problems(own: OwnerTables) -> Iterator[str]:
    for record in own.sessions.values():
        for name, spans in own.spans.get(record.num, {}).items():
            if not _whole(own, record, spans):
                yield f"session {record.session.id!r}: spans {name or 'now'!r} reach entries that are not there"
        yield from _log_problems(own, record)
        yield from _counter_problems(own, record)
    yield from _index_problems(own)


def _whole(own: OwnerTables, record: Record, spans: Spans) -> bool:
    return all(
        stretch.log in own.logs
        and all(seq in own.logs[stretch.log].entries for seq in range(stretch.first, stretch.last + 1))
        for stretch in context(spans, record.num, record.head)
    )


def _log_problems(own: OwnerTables, record: Record) -> Iterator[str]:
    log = own.logs[record.num]
    head = max(log.sums, default=0)
    if (head, log.sums.get(head, Totals())) != (record.head, record.totals):
        yield f"session {record.session.id!r}: its log ends at {head}, not at {record.head}, or with other sums"


def _counter_problems(own: OwnerTables, record: Record) -> Iterator[str]:
    view = context(own.spans.get(record.num, {}).get(CURRENT, ()), record.num, record.head)
    sums = Totals()
    for stretch in view:
        log = own.logs.get(stretch.log)
        known = log.sums if log else {}
        upto, before = known.get(stretch.last, Totals()), known.get(stretch.first - 1, Totals())
        sums = sums.plus(upto.minus(before))
    session = record.session
    cost = round((session.cost or 0) * MICROS)
    if own.checkpoints.get(record.num) and cost > sums.cost:
        cost = sums.cost  # the cost of what left the context stays, and a checkpoint holds that
    counted = (
        session.message_count,
        Totals(session.token_count or 0, session.error_count, cost, session.bytes),
    )
    if counted != (size(view), sums):
        yield f"session {session.id!r}: counts {counted}, its entries {(size(view), sums)}"


def _index_problems(own: OwnerTables) -> Iterator[str]:
    nums = sorted(own.sessions)
    if sorted(own.ids.values()) != nums or sorted(own.order.values()) != nums:
        yield "the list does not hold every session once"
    numbers = sorted(record.change for record in own.sessions.values())
    numbers += [tombstone.change for tombstone in own.tombstones.values()]
    if sorted(numbers) != sorted(own.feed):
        yield "the change feed does not hold every session once"
    documents = [kept.document for log in own.logs.values() for kept in log.entries.values()]
    found = [key for key in (*documents, *own.titles.values()) if key is not None]
    if sorted(found) != sorted(own.documents):
        yield "the search does not hold every entry and title once"
