"""Requests to models, counted from stored messages behind what is written. They can be counted anew at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from hitherto.ports import Reader, Writer
from hitherto.service.notes import COUNTED_TO, FOR_EVER, Note
from hitherto.values.positions import BEGINNING
from hitherto.values.usage import prices
from hitherto.values.usage.requests import CountedEntry, Request, light, request_of, superseded

CHANGES = 200
BATCH = 500


class Work(NamedTuple):
    """What was counted of a log."""

    log: int
    head: int
    requests: list[Request]
    gone: list[int]


_counted = msgspec.json.Decoder(CountedEntry)


async def changed_sessions(tx: Reader, owner: str) -> tuple[str, str, list[str]]:
    """Up to where changes were looked at, up to where this goes, and which sessions are to be looked at."""
    known = await COUNTED_TO.get(tx, owner, "")
    before = known.value if known is not None else BEGINNING
    changes = await tx.changes(owner, before, CHANGES)
    position = changes[-1].position if changes else before
    return before, position, [change.session for change in changes if change.revision is not None]


async def move_on(tx: Writer, owner: str, position: str) -> None:
    """Note up to where changes were looked at."""
    await COUNTED_TO.put(tx, owner, "", Note(position, FOR_EVER))


async def count_logs(tx: Reader, owner: str, ids: Sequence[str]) -> list[Work]:
    """The next requests of the logs of these sessions that were not counted yet; none if all are."""
    heads: dict[int, tuple[int, bool]] = {}
    for session_id in ids:
        record = await tx.session(owner, session_id)
        if record is None:
            continue
        synced = record.session.source is not None
        for span in await tx.spans(owner, record.num):
            if span.last is not None:
                heads[span.log] = (max(span.last, heads.get(span.log, (0, False))[0]), synced)
        heads[record.num] = (record.head, synced)
    known = await tx.counted(owner, list(heads))
    found: list[Work] = []
    for log, (head, synced) in heads.items():
        if known.get(log, 0) < head and sum(len(work.requests) for work in found) < 2 * BATCH:
            found.append(await _count_log(tx, owner, log, known.get(log, 0), head, synced))
    return found


async def _count_log(tx: Reader, owner: str, log: int, after: int, head: int, synced: bool) -> Work:
    rows = await tx.log_after(owner, log, after, BATCH)
    entries = [(seq, light(payload, _counted)) for seq, payload in rows]
    requests = [request for seq, entry in entries if (request := request_in(entry, log, seq, synced=synced))]
    gone = []
    for form in superseded(entry for _, entry in entries):
        gone += [place.seq for place in await tx.locate(owner, [log], form)]
    reached = rows[-1][0] if len(rows) == BATCH else head
    kept = [request for request in requests if request.seq not in gone]
    return Work(log, reached, kept, gone)


async def keep_requests(tx: Writer, owner: str, found: Sequence[Work]) -> None:
    """Store what was counted."""
    for work in found:
        await tx.put_requests(owner, *work)


def request_in(entry: CountedEntry, log: int, seq: int, *, synced: bool) -> Request | None:
    """The request that an entry is the answer to, at the price of its day if nobody says what it cost."""
    return request_of(entry, log, seq, synced=synced, price=prices.estimate)
