"""Compactions made by another agent: an entry of its session is a summary of everything before it.

They become like our own: the context is the summary and what follows it, the conversation has everything.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple

from hitherto.model import Checkpoint, Entry, Value
from hitherto.ports import Reader, Record, Writer
from hitherto.service.records import measure
from hitherto.values import spans as algebra
from hitherto.values.spans import EntryPlace, Span, Spans, Stretch

_CHECKPOINTS = uuid.UUID("0c5d51f0-4f0e-5b57-8a7e-7d1f5b0f3a52")
"""The namespace of their checkpoints: what is taken in again gets the same one."""


class Summarised(Value, frozen=True):
    """The entry `summary` stands for all before it. Of these the context keeps what begins with the first of `kept`
    that is there, up to the entry `until` without that one. If only the end was summarised, it keeps in front of the summary
    what ends with the first of `prefix` that is there."""

    summary: str
    kept: tuple[str, ...] = ()
    until: str | None = None
    prefix: tuple[str, ...] = ()


class Branch(NamedTuple):
    """A branch beside the conversation: the next `size` of the entries that come with it. It leaves the conversation, or a
    branch before it, after the entry `after`; None if it begins anew."""

    after: str | None
    size: int
    compactions: Sequence[Summarised] = ()


class Retired(NamedTuple):
    """The spans that a summary stands for, and the checkpoint that holds them."""

    checkpoint: str
    spans: Spans
    summary: Entry


async def build_spans(
    tx: Reader,
    record: Record,
    behind: Spans,
    entries: Iterable[tuple[Entry, int]],
    compactions: Sequence[Summarised],
) -> tuple[Spans, list[Retired]]:
    """Spans over these entries, after those in `behind`; each summary replaces everything before it."""
    waiting = {each.summary: each for each in compactions}
    spans, retired = list(behind), list[Retired]()
    for entry, seq in entries:
        summarised = waiting.pop(entry.id, None)
        if summarised is None or not spans:
            _grow(spans, record.num, seq)
            continue
        before = tuple(spans)
        name = str(uuid.uuid5(_CHECKPOINTS, repr((record.session.id, entry.id, before))))
        retired.append(Retired(name, before, entry))
        spans = [
            *await _kept_in_front(tx, record, before, summarised),
            Span(record.num, seq, seq, "summary", name),
            *await _kept(tx, record, before, summarised),
        ]
    return tuple(spans), retired


async def put_retired(tx: Writer, record: Record, retired: Iterable[Retired]) -> None:
    """Keep what summaries stand for, as checkpoints; those that are there stay as they are."""
    known = {checkpoint.id for checkpoint in await tx.checkpoints(record.owner, record.num)}
    for each in retired:
        if each.checkpoint in known:
            continue
        stretches = algebra.context(each.spans, record.num, record.head)
        checkpoint = Checkpoint(
            id=each.checkpoint,
            at=each.summary.at,
            reason="compaction",
            message_count=algebra.size(stretches),
            token_count=(await measure(tx, record.owner, stretches)).tokens or None,
        )
        await tx.put_checkpoint(record.owner, record.num, checkpoint, each.spans)


async def forms_of(tx: Reader, record: Record, entry_id: str) -> AsyncIterator[EntryPlace]:
    """Where the entry of this id is, and then each form that it took later: its id gets a number behind it."""
    name, number = entry_id, 1
    while places := await tx.locate(record.owner, [record.num], name):
        yield places[0]
        number += 1
        name = f"{entry_id}~{number}"


def _grow(spans: list[Span], log: int, seq: int) -> None:
    last = spans[-1] if spans else None
    if last is not None and (last.kind, last.log, last.last) == ("plain", log, seq - 1):
        spans[-1] = last._replace(last=seq)
    else:
        spans.append(Span(log, seq, seq))


async def _kept(tx: Reader, record: Record, spans: Spans, summarised: Summarised) -> Spans:
    """What stays of the spans beside the summary; an earlier summary is part of what the new one stands for."""
    stretches = algebra.context(spans, record.num, record.head)
    until = None if summarised.until is None else await _ordinal(tx, record, stretches, summarised.until)
    stop = algebra.size(stretches) if until is None else until
    lowest = 1 if spans[0].kind == "summary" else 0
    for name in summarised.kept:
        start = await _ordinal(tx, record, stretches, name)
        if start is not None and start >= lowest:
            pieces = algebra.slice_of(stretches, start, stop)
            return tuple(Span(piece.log, piece.first, piece.last, "kept") for piece in pieces)
    return ()


async def _kept_in_front(tx: Reader, record: Record, spans: Spans, summarised: Summarised) -> Spans:
    """What stays of the spans in front of the summary, earlier summaries too."""
    stretches = algebra.context(spans, record.num, record.head)
    for name in summarised.prefix:
        if (end := await _ordinal(tx, record, stretches, name)) is not None:
            pieces = algebra.slice_of(stretches, 0, end + 1)
            return tuple(Span(piece.log, piece.first, piece.last, "kept") for piece in pieces)
    return ()


async def _ordinal(tx: Reader, record: Record, stretches: list[Stretch], entry_id: str) -> int | None:
    places = [place async for place in forms_of(tx, record, entry_id)]
    found = (algebra.ordinal(stretches, place) for place in reversed(places))
    return next((place for place in found if place is not None), None)
