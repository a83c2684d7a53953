"""An export read back: everything in it is checked before anything is written. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.exports.lines import Head, Numbered, Range, at_line, parsed, spans_of
from hitherto.limits import ENTRY_BYTES, RAW_BYTES, checked_size
from hitherto.model import Checkpoint, Entry, Fact, Session, decode_entry, encode
from hitherto.ports import RawCopy, Row, Totals
from hitherto.service.records import totals_of, with_counts
from hitherto.service.validation import (
    checked_checkpoint,
    checked_entry,
    checked_fact,
    checked_required,
    checked_session,
)
from hitherto.values import spans as algebra
from hitherto.values.spans import Spans

LOG = 1
"""The number of the log as long as it is in no store."""


MOST_PIECES = 1_000_000
DEEPEST = 800


class _Size(NamedTuple):
    """A list with all that its summaries stand for: its pieces, how deep they are nested, the entries in them."""

    pieces: int
    deep: int
    entries: int


class KnownAs(NamedTuple):
    """A name by which a session, and its entries one by one, may be known here: that of its file, or of its content."""

    session: str
    entries: tuple[Entry, ...]


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A session ready to be written: checked, with its entries as rows of one log.

    `reached` counts the entries of its conversation, some of which may be the same. `known_as` has the
    entries of the rows under every name that the session has had.
    """

    session: Session
    rows: tuple[Row, ...] = ()
    spans: tuple[Range, ...] = ()
    checkpoints: tuple[tuple[Checkpoint, tuple[Range, ...]], ...] = ()
    facts: tuple[Fact, ...] = ()
    copies: tuple[RawCopy, ...] = ()
    reached: int = 0
    known_as: tuple[KnownAs, ...] = ()

    def conversation(self) -> list[Entry]:
        """All that was said, without the summaries of compactions."""
        lists = {checkpoint.id: spans_of(ranges, LOG) for checkpoint, ranges in self.checkpoints}

        def expand(name: str) -> Spans:
            return lists.get(name, ())

        view = algebra.conversation(spans_of(self.spans, LOG), LOG, len(self.rows), expand)
        return [
            row.entry
            for stretch in view
            if not stretch.mark
            for row in self.rows[stretch.first - 1 : stretch.last]
        ]


def read_parcel(lines: Sequence[bytes], first: int = 1) -> Parcel:
    """The session of these lines, the first of which has this number in its file."""
    head, rest = parsed(lines, first)
    entries = _entries(rest)
    rows = rows_of(entries)
    with at_line(first):
        if len(rows) != head.entries:
            raise InvalidInput(f"the export says {head.entries} entries but has {len(rows)}")
        session = _counted(head, rows)
    sizes: dict[str, _Size] = {}
    checkpoints = _checkpoints(rest, len(rows), sizes)
    with at_line(first):
        size = _sized(head.spans, len(rows), sizes)
    facts, copies = _beside(rest)
    spans = head.spans
    if waiting := _waiting(rest, {entry.id for entry, _ in entries}):
        rows = rows_of([*entries, *waiting])
        spans = (*spans, (len(entries) + 1, len(rows), "plain", None))
        session = with_counts(session, *context_sums(spans, rows))
    return Parcel(
        session=session,
        rows=tuple(rows),
        spans=spans,
        checkpoints=checkpoints,
        facts=facts,
        copies=copies,
        reached=size.entries + len(rows) - len(entries),
        known_as=(KnownAs(session.id, tuple(row.entry for row in rows)),),
    )


def _entries(rest: Iterable[Numbered]) -> list[tuple[Entry, bytes]]:
    """The entries with their bytes, each once."""
    found: list[tuple[Entry, bytes]] = []
    known: set[str] = set()
    for each in rest:
        payload = each.line.payload
        if payload is None:
            continue
        with at_line(each.number):
            checked_size(payload, ENTRY_BYTES, "an entry")
            entry = checked_entry(decode_entry(payload))
            if checked_required(entry.id, "an entry id") in known:
                raise InvalidInput(f"the entry id {entry.id!r} occurs twice in the export")
        known.add(entry.id)
        found.append((entry, payload))
    return found


def _waiting(rest: Iterable[Numbered], known: set[str]) -> list[tuple[Entry, bytes]]:
    """What waited for a turn that runs elsewhere: here it stands at the end of the conversation."""
    found = []
    for each in rest:
        if (entry := each.line.waiting) is not None:
            with at_line(each.number):
                checked_entry(entry)
                if checked_required(entry.id, "an entry id") in known:
                    raise InvalidInput(f"the entry id {entry.id!r} occurs twice in the export")
                known.add(entry.id)
                found.append((entry, checked_size(encode(entry), ENTRY_BYTES, "an entry")))
    return found


def rows_of(entries: Iterable[tuple[Entry, bytes]]) -> list[Row]:
    """The entries as rows of a log."""
    rows: list[Row] = []
    sums = Totals()
    for entry, payload in entries:
        sums = sums.plus(totals_of(entry, payload))
        rows.append(Row(entry=entry, payload=payload, seq=len(rows) + 1, totals=sums))
    return rows


def _checkpoints(
    rest: Iterable[Numbered], entries: int, sizes: dict[str, _Size]
) -> tuple[tuple[Checkpoint, tuple[Range, ...]], ...]:
    """The checkpoints in their order: a summary stands for one that was made before."""
    found: list[tuple[Checkpoint, tuple[Range, ...]]] = []
    for each in rest:
        if each.line.checkpoint is not None:
            with at_line(each.number):
                checkpoint = checked_checkpoint(each.line.checkpoint, sizes)
                sizes[checkpoint.id] = _sized(each.line.spans, entries, sizes)
                found.append((checkpoint, each.line.spans))
    return tuple(found)


def _beside(rest: Iterable[Numbered]) -> tuple[tuple[Fact, ...], tuple[RawCopy, ...]]:
    """Facts and raw copies."""
    facts: list[Fact] = []
    copies: list[RawCopy] = []
    for each in rest:
        with at_line(each.number):
            if each.line.fact is not None:
                facts.append(checked_fact(each.line.fact))
            if each.line.raw is not None:
                copies.append(_copy(each.line.raw, each.line.data or ""))
    return tuple(facts), tuple(copies)


def _copy(name: str, data: str) -> RawCopy:
    try:
        kept = base64.b64decode(data, validate=True)
    except ValueError:
        raise InvalidInput("the export has a raw copy that is not base64") from None
    return RawCopy(checked_required(name, "a name"), checked_size(kept, RAW_BYTES, "a raw copy"))


def _sized(ranges: Sequence[Range], entries: int, sizes: Mapping[str, _Size]) -> _Size:
    """How large a list becomes with all that its summaries stand for, if it names nothing that is not there."""
    if any(not 1 <= first <= last <= entries for first, last, _, _ in ranges):
        raise InvalidInput("the export's spans refer to entries that it does not have")
    if any(expands is not None and expands not in sizes for _, _, _, expands in ranges):
        raise InvalidInput("the export's summaries refer to checkpoints that it does not have")
    inner = [sizes[expands] for _, _, _, expands in ranges if expands is not None]
    size = _Size(
        pieces=len(ranges) + sum(each.pieces for each in inner),
        deep=1 + max((each.deep for each in inner), default=0),
        entries=sum(last - first + 1 for first, last, _, _ in ranges) + sum(each.entries for each in inner),
    )
    if size.pieces > MOST_PIECES or size.deep > DEEPEST:
        raise InvalidInput("the export's summaries are nested too deeply")
    return size


def _counted(head: Head, rows: Sequence[Row]) -> Session:
    """The session, whose counts must be those of its context; where secrets were replaced, they are counted anew.

    Bytes are always counted anew: the same JSON may have been written by another program meanwhile. So is the cost, which
    earlier versions counted otherwise.
    """
    session = checked_session(head.session)
    recounted = with_counts(session, *context_sums(head.spans, rows))
    if replace(recounted, bytes=session.bytes, cost=session.cost) != session and not head.redacted:
        raise InvalidInput("the export's counts do not match its entries")
    return recounted


def context_sums(spans: Iterable[Range], rows: Sequence[Row]) -> tuple[int, Totals]:
    """How many entries the context of these spans has, and their sums; the cost is that of all that was ever said."""
    sums, count = Totals(), 0
    for first, last, kind, _ in spans:
        if not 1 <= first <= last <= len(rows):
            raise InvalidInput("the export's spans refer to entries that it does not have")
        if kind == "reset":  # a heading, which the context does not have
            continue
        before = rows[first - 2].totals if first > 1 else Totals()
        sums, count = sums.plus(rows[last - 1].totals.minus(before)), count + last - first + 1
    return count, sums._replace(cost=rows[-1].totals.cost if rows else 0)
