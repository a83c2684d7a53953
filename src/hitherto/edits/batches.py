"""Edits as they are kept: records without any text, and marks by which they are found. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from hitherto.edits.calls import edits_of, is_told_by_result
from hitherto.edits.edit import Edit
from hitherto.edits.lines import MARKED_LINES, added_marks, call_mark, name_mark
from hitherto.model import Entry, ToolCall, ToolResult


class EditRecord(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of an edit. `seq` is the place of the call in its log, `part` which of the entry's edits it is, `result`
    the place of the result (0: not known); `marks` is where its marks begin among those of the batch."""

    seq: int
    part: int
    result: int
    at: int
    path: str
    to: str | None
    kind: str
    added: int
    removed: int
    failed: bool
    marks: int


class EditBatch(NamedTuple):
    """Edits of a stretch of a log, as they are kept: `data` are the records, `marks` those of all of them."""

    log: int
    first: int
    data: bytes
    marks: bytes

    def records(self) -> list[EditRecord]:
        """The edits in it, in order."""
        return _records.decode(self.data)

    def marked(self, wanted: frozenset[int]) -> Iterator[tuple[EditRecord, set[int]]]:
        """Those of the edits that have any of these marks, with these."""
        marks, records = numbers(self.marks), self.records()
        ends = [*(record.marks for record in records), len(marks)]
        for record, (start, end) in zip(records, pairwise(ends), strict=True):
            if found := wanted.intersection(marks[start:end]):
                yield record, set(found)


_records = msgspec.json.Decoder(list[EditRecord])
Placed = tuple[int, Entry]
"""An entry, and its place in its log."""


def numbers(marks: bytes) -> array[int]:
    """Marks as numbers."""
    found = array("I")
    found.frombytes(marks)
    return found


def has_any(marks: bytes, wanted: frozenset[int]) -> bool:
    """Whether a batch has any of these marks."""
    return not wanted.isdisjoint(numbers(marks))


def batch_of(key: bytes, log: int, first: int, entries: Sequence[Placed]) -> EditBatch | None:
    """The edits of these entries, as the batch that begins at `first`; None if there are none."""
    records: list[EditRecord] = []
    marks = array("I")
    results = results_in(entries)
    for seq, entry in entries:
        part = 0
        for call in calls_in(entry):
            at, result = results.get(call.id, (0, None))
            for edit in edits_of(call, result):
                failed = result is not None and result.is_error
                records.append(
                    EditRecord(
                        seq,
                        part,
                        at,
                        entry.at,
                        edit.path,
                        edit.to,
                        edit.kind,
                        edit.added,
                        edit.removed,
                        failed,
                        len(marks),
                    )
                )
                marks.extend(_marks(key, call.id, edit, failed=failed))
                part += 1
    if not records:
        return None
    return EditBatch(log, first, msgspec.json.encode(records), marks.tobytes())


def calls_in(entry: Entry) -> list[ToolCall]:
    """The tool calls of an entry."""
    return [part for part in entry.parts if isinstance(part, ToolCall)]


def results_in(entries: Iterable[Placed]) -> dict[str, tuple[int, ToolResult]]:
    """The results in these entries by their call, with their places."""
    return {
        part.id: (seq, part) for seq, entry in entries for part in entry.parts if isinstance(part, ToolResult)
    }


def late_results(entries: Sequence[Placed]) -> list[str]:
    """Calls before these entries of which their results tell more than the calls do: that they failed, or what they changed."""
    known = {call.id for _, entry in entries for call in calls_in(entry)}
    return [
        call
        for call, (_, result) in results_in(entries).items()
        if call not in known and (result.is_error or is_told_by_result(result))
    ]


def _marks(key: bytes, call: str, edit: Edit, *, failed: bool) -> list[int]:
    """The marks of an edit; of one that failed, only those of its file and its call."""
    found = [call_mark(key, call), *{name_mark(key, path) for path in (edit.path, edit.to) if path}]
    notebook = edit.path.endswith(".ipynb")
    for hunk in () if failed else edit.hunks:
        found += added_marks(key, hunk.added[:MARKED_LINES], notebook=notebook)
    return list(dict.fromkeys(found))
