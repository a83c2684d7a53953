"""Export and import as JSON lines that round-trip exactly: the export of an import is the same bytes.

The first line is the session with its spans, then come checkpoints, facts, raw copies, and the entries in their stored
bytes. Entries are numbered from 1 in the order in which the span lists first reach them, so a fork's export is whole
by itself and no number of the store is in it.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Container, Iterable, Sequence
from functools import partial
from sys import intern
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect import spans as algebra
from recollect.errors import AlreadyExists, InvalidInput, SessionNotFound, TooLarge
from recollect.limits import ENTRY_BYTES, HISTORY_PAGE
from recollect.model import (
    Checkpoint,
    Entry,
    Fact,
    Principal,
    Session,
    Value,
    decode_entry,
    decode_json,
    encode,
)
from recollect.ports import CURRENT, RawCopy, Reader, Record, Row, Totals, Writer
from recollect.service.catalogue import Catalogue, add_session
from recollect.service.checks import (
    checked_checkpoint,
    checked_entry,
    checked_fact,
    checked_session,
)
from recollect.service.core import checked_owner, checked_required, counted, measure, required, totals_of
from recollect.spans import Kind, Span, Spans, Stretch

FORMAT = "recollect-session"
VERSION = 1
# Entries stand in their own bytes: they are cut out of the line, never decoded and encoded again.
ENTRY_OPEN = b'{"entry":'
ENTRY_CLOSE = b"}"

_Range = tuple[int, int, Kind, str | None]


class _Head(Value, frozen=True):
    format: str
    version: int
    session: Session
    entries: int
    spans: tuple[_Range, ...] = ()


class _Line(Value, frozen=True):
    """Any line but the first: exactly one of these."""

    checkpoint: Checkpoint | None = None
    spans: tuple[_Range, ...] = ()
    fact: Fact | None = None
    raw: str | None = None
    data: str | None = None
    payload: bytes | None = None


class Exporting(Catalogue):
    """Taking sessions along."""

    async def export(self, who: Principal, session_id: str) -> AsyncIterator[bytes]:
        """The lines of one session, each without its newline; entries are read in pages."""
        record, head, lines, order = await self._store.read(lambda tx: _outline(tx, who, session_id))
        yield encode(head)
        for line in lines:
            yield encode(line)
        total = algebra.size(order)
        for start in range(0, total, HISTORY_PAGE):
            part = algebra.slice_of(order, start, start + HISTORY_PAGE)
            for payload in await self._store.read(partial(_payloads, record, part)):
                yield ENTRY_OPEN + payload + ENTRY_CLOSE

    async def import_session(
        self, who: Principal, lines: Sequence[bytes], *, new_id: bool = False
    ) -> Session:
        """A session from the lines of its export, under its own id (`AlreadyExists` if it is there) or a new one."""
        owner = checked_owner(who)
        head, rest = _parsed(lines)
        rows = _rows(rest)
        if len(rows) != head.entries:
            raise InvalidInput(f"the export says {head.entries} entries but has {len(rows)}")
        session = checked_session(head.session)
        session = replace(session, id=self._new_id(), key=None) if new_id else session

        async def work(tx: Writer) -> Session:
            if not new_id and await tx.session(owner, session.id) is not None:
                raise AlreadyExists(
                    f"there is a session {session.id!r} already: import it under a new id (--new-id)"
                )
            now = self._now()
            # The title comes last, as in an append: it is the newest document of the session.
            bare = replace(session, title=None, title_by=None, earlier_titles=())
            record = await add_session(tx, owner, bare, order_at=min(session.updated_at, now))
            if rows:
                record = replace(record, head=len(rows), totals=rows[-1].totals)
                record = await tx.extend(record, rows)
            record = await tx.rewrite(replace(record, session=session), "import")
            await self._put_lists(tx, record, head, rest)
            await self._put_facts(tx, record, rest, new_id=new_id)
            return record.session

        return await self._store.write(work)

    async def _put_lists(self, tx: Writer, record: Record, head: _Head, rest: Sequence[_Line]) -> None:
        num = record.num
        known: set[str] = set()
        for line in rest:
            if line.checkpoint is not None:
                inner = _spans(line.spans, num, record.head, known)
                await tx.put_checkpoint(record.owner, num, checked_checkpoint(line.checkpoint, known), inner)
                known.add(line.checkpoint.id)
            elif line.raw is not None:
                copy = RawCopy(checked_required(line.raw, "a name"), _unpacked(line.data or ""))
                await tx.put_raw_copy(record.owner, num, copy)
        spans = _spans(head.spans, num, record.head, known)
        await tx.put_spans(record.owner, num, algebra.opened(spans, num, record.head))
        stretches = algebra.context(spans, num, record.head)
        sums = await measure(tx, record.owner, stretches)
        if counted(record.session, algebra.size(stretches), sums) != record.session:
            raise InvalidInput("the export's counts are not those of its entries")

    async def _put_facts(self, tx: Writer, record: Record, rest: Sequence[_Line], *, new_id: bool) -> None:
        facts = [replace(line.fact, session=record.session.id) for line in rest if line.fact is not None]
        if new_id:  # the original keeps its own
            facts = [replace(fact, id=self._new_id()) for fact in facts]
        await tx.put_facts(record.owner, [checked_fact(fact) for fact in facts])


async def _outline(
    tx: Reader, who: Principal, session_id: str
) -> tuple[Record, _Head, list[_Line], list[Stretch]]:
    """Everything of an export but the entries, and the order in which those come."""
    record = await required(tx, who, session_id)
    checkpoints = await tx.checkpoints(record.owner, record.num)
    lists = {known.id: await tx.spans(record.owner, record.num, known.id) for known in checkpoints}
    lists[CURRENT] = algebra.closed(await tx.spans(record.owner, record.num), record.num, record.head)
    order = _order(lists.values())
    # A default is left out of the JSON only if it is the very same object, which an interned text is.
    session = replace(record.session, read_at=None, status=intern(record.session.status))
    head = _Head(
        format=FORMAT,
        version=VERSION,
        session=session,
        entries=algebra.size(order),
        spans=_ranges(lists[CURRENT], order),
    )
    lines = [_Line(checkpoint=known, spans=_ranges(lists[known.id], order)) for known in checkpoints]
    facts = await tx.facts(record.owner, record.session.id)
    lines += [_Line(fact=replace(fact, session=None, kind=intern(fact.kind))) for fact in reversed(facts)]
    for copy in await tx.raw_copies(record.owner, record.num):
        lines.append(_Line(raw=copy.name, data=base64.b64encode(copy.data).decode()))
    return record, head, lines, order


async def _payloads(record: Record, part: Sequence[Stretch], tx: Reader) -> list[bytes]:
    if await tx.by_num(record.owner, record.num) is None:
        raise SessionNotFound(record.session.id)  # deleted while it was exported
    return await tx.payloads(record.owner, part)


def _order(lists: Iterable[Spans]) -> list[Stretch]:
    """Every entry that any list reaches, once, in the order of first reach."""
    out: list[Stretch] = []
    for span in (span for spans in lists for span in spans):
        out.extend(algebra.without(Stretch(span.log, span.first, span.last or 0), out))
    return out


def _ranges(spans: Spans, order: Sequence[Stretch]) -> tuple[_Range, ...]:
    """Spans in the numbers of the export; neighbours are joined, so that the same history has one spelling."""
    out: list[_Range] = []
    for span in spans:
        for first, last in _numbers(span, order):
            before = out[-1] if out else None
            if before and before[1] == first - 1 and before[2:] == (span.kind, None) and span.expands is None:
                out[-1] = (before[0], last, span.kind, None)
            else:
                out.append((first, last, span.kind, span.expands))
    return tuple(out)


def _numbers(span: Span, order: Sequence[Stretch]) -> list[tuple[int, int]]:
    """The numbers of a span's entries, in the span's order."""
    found, passed = [], 0
    for stretch in order:
        first, last = max(span.first, stretch.first), min(span.last or 0, stretch.last)
        if span.log == stretch.log and first <= last:
            offset = passed + 1 - stretch.first
            found.append((first, first + offset, last + offset))
        passed += stretch.size
    return [(first, last) for _, first, last in sorted(found)]


def _parsed(lines: Sequence[bytes]) -> tuple[_Head, list[_Line]]:
    if not lines:
        raise InvalidInput("there is nothing to import")
    try:
        head = _shaped(lines[0], _Head)
        rest = [_line(line.strip()) for line in lines[1:]]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this is not an export of a session: {error}") from None
    if head.format != FORMAT or head.version > VERSION:
        raise InvalidInput(
            f"this program reads {FORMAT} up to version {VERSION}, not {head.format} {head.version}"
        )
    return head, rest


def _line(line: bytes) -> _Line:
    if line.startswith(ENTRY_OPEN) and line.endswith(ENTRY_CLOSE):
        return _Line(payload=line[len(ENTRY_OPEN) : -len(ENTRY_CLOSE)].strip())
    found: _Line = _shaped(line, _Line)
    return found


def _shaped(line: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(line, type=shape)
    except msgspec.DecodeError:
        return msgspec.convert(decode_json(line), shape)


def _rows(lines: Sequence[_Line]) -> list[Row]:
    rows: list[Row] = []
    sums = Totals()
    known: set[str] = set()
    for line in lines:
        payload = line.payload
        if payload is None:
            continue
        if len(payload) > ENTRY_BYTES:
            raise TooLarge(f"an entry may have at most {ENTRY_BYTES} bytes, this one has {len(payload)}")
        entry = _entry(payload)
        sums = sums.plus(totals_of(entry, payload))
        if entry.id in known:
            raise InvalidInput(f"the export has two entries {entry.id!r}")
        known.add(entry.id)
        rows.append(Row(entry=entry, payload=payload, seq=len(rows) + 1, totals=sums))
    return rows


def _entry(payload: bytes) -> Entry:
    try:
        entry = decode_entry(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the export has a line that is no entry: {error}") from None
    checked_required(entry.id, "an entry id")
    return checked_entry(entry)


def _unpacked(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        raise InvalidInput("the export has a raw copy that is not base64") from None


def _spans(ranges: Sequence[_Range], num: int, head: int, known: Container[str]) -> Spans:
    """Spans over the session's log; a summary stands for a checkpoint that was made before."""
    if any(not 1 <= first <= last <= head for first, last, _, _ in ranges):
        raise InvalidInput("the export's spans name entries that it does not have")
    if any(expands is not None and expands not in known for _, _, _, expands in ranges):
        raise InvalidInput("the export's summaries stand for checkpoints that it does not have")
    return tuple(Span(num, first, last, kind, expands) for first, last, kind, expands in ranges)
