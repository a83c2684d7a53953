"""The edits that sessions reach: which of those in their logs are part of their conversations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from hitherto.edits.batches import EditBatch, EditRecord
from hitherto.edits.changes import EditCounts
from hitherto.limits import LARGEST_NUMBER
from hitherto.values.spans import CURRENT, Span, Spans, conversation

GENERATIONS = 8
"""Subagents of subagents are followed so far."""


class ReachedEdits(NamedTuple):
    """What sessions reach, with their edits: `spans` by the id of a session, the number of it or of a subagent of it, and their
    name; `batches` of all logs that these are of, without marks."""

    spans: dict[str, dict[int, dict[str, Spans]]]
    batches: list[EditBatch]

    def records(self) -> Iterator[tuple[str, list[EditRecord]]]:
        """The edits of each session and its subagents."""
        kept: dict[int, list[EditRecord]] = {}
        for batch in self.batches:
            kept.setdefault(batch.log, []).extend(batch.records())
        for session, held in self.spans.items():
            yield session, list(chain.from_iterable(_within(num, named, kept) for num, named in held.items()))

    def counts(self) -> dict[str, EditCounts]:
        """How much each session changed, in edits that did not fail."""
        return {
            session: _counted(records, len(self.spans[session]) - 1) for session, records in self.records()
        }


def _counted(records: Iterable[EditRecord], agents: int) -> EditCounts:
    done = [each for each in records if not each.failed]
    return EditCounts(
        added=sum(each.added for each in done),
        removed=sum(each.removed for each in done),
        files=len({each.path for each in done}),
        agents=agents,
    )


def reached_edits(rows: Iterable[tuple[Any, ...]]) -> ReachedEdits:
    """What a store found: rows of spans (session, number, name, place, and the span) and of edits (log, first entry, data)."""
    spans: dict[str, dict[int, dict[str, list[tuple[int, Span]]]]] = {}
    batches: list[EditBatch] = []
    for session, num, name, place, *span, data in rows:
        if session is None:
            batches.append(EditBatch(span[0], span[1], data, b""))
        else:
            named = spans.setdefault(session, {}).setdefault(num, {})
            named.setdefault(name, []).append((place, Span(*span)))
    ordered = {
        session: {
            num: {name: tuple(span for _, span in sorted(own)) for name, own in named.items()}
            for num, named in held.items()
        }
        for session, held in spans.items()
    }
    return ReachedEdits(ordered, sorted(batches))


def _within(num: int, named: Mapping[str, Spans], kept: Mapping[int, list[EditRecord]]) -> list[EditRecord]:
    present = named.get(CURRENT, ())
    if any(span.last is None and span.log != num for spans in named.values() for span in spans):
        return []  # it is damaged, which `doctor` tells
    if not any(span.log in kept for spans in named.values() for span in spans):
        return []
    found: list[EditRecord] = []
    for stretch in conversation(present, num, LARGEST_NUMBER, lambda name: named.get(name, ())):
        records = kept.get(stretch.log, [])
        # Most sessions reach all of their log; the edits of a log are in order.
        if records and stretch.first <= records[0].seq and records[-1].seq <= stretch.last:
            found += records
        else:
            found += [each for each in records if stretch.first <= each.seq <= stretch.last]
    return found
