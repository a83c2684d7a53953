"""What can be wrong with a transcript, and what is done about it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hitherto.claude import lines
from hitherto.model import Json, Value

KINDS: Mapping[str, tuple[str, str]] = {
    "torn_lines": ("lines without a whole record", "left out: nothing in them can be read"),
    "spliced_lines": ("lines with more than a record", "each whole record gets a line"),
    "nul_bytes": ("runs of NUL bytes", "left out"),
    "bad_utf8": ("records that are not UTF-8", "bad bytes become U+FFFD"),
    "byte_order_marks": ("byte order marks", "left out"),
    "repeated_records": ("records that are there twice", "one stays; if they differ, both do"),
    "missing_parents": ("records whose parent is missing", "they follow the record before them"),
    "circles": ("records that lead back to themselves", "they follow the record before them"),
    "two_writers": ("conversations that two programs wrote at the same time", "one follows the other"),
    "unanswered_calls": ("tool calls without a result", "they get a result that says so"),
    "lost_calls": ("results whose call is missing, or that are there twice", "they become texts"),
    "oversized_records": (
        "records that are too large to be sent",
        "long texts go to files beside the session",
    ),
    "missing_times": ("records without a time", "they get that of the record before them"),
    "missing_head": ("a rollout that does not begin with its session", "the session is described first"),
}
"""Kind → what is wrong, and what is done about it."""
UNANSWERED = "[interrupted: the result of this call is not in the transcript]"
LOST_CALL = "[result of a call that is not in the transcript]"
OVERSIZED = 8 << 20
"""A larger record is shortened: no request could hold it."""
LONG_TEXT = 1 << 20
"""In such a record, longer texts go elsewhere."""
PREVIEW = 2_000


class Finding(Value, frozen=True):
    """What is wrong with a transcript, how often, and what is done about it."""

    kind: str
    count: int
    wrong: str
    repair: str


class MendedTranscript(NamedTuple):
    """The records of a session without faults, and files that belong beside it, by name."""

    records: list[Json]
    files: dict[str, bytes]


class Findings:
    """Counts what is found, by kind."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def add(self, kind: str, count: int = 1) -> None:
        """So much more of a kind that is known."""
        if kind not in KINDS:
            raise ValueError(f"no kind of damage: {kind}")
        self._counts[kind] += count

    def known(self) -> tuple[Finding, ...]:
        """All that was found, in the order of the table."""
        return tuple(
            Finding(kind=kind, count=self._counts[kind], wrong=wrong, repair=repair)
            for kind, (wrong, repair) in KINDS.items()
            if self._counts[kind]
        )


def whole_records(data: bytes, findings: Findings) -> list[Json]:
    """Every whole record of a file of lines."""
    records, damage = lines.read_records(data)
    findings.add("torn_lines", damage.unreadable + damage.torn_tail)
    findings.add("spliced_lines", damage.spliced)
    findings.add("nul_bytes", damage.nul_runs)
    findings.add("bad_utf8", damage.bad_utf8)
    findings.add("byte_order_marks", damage.byte_order_marks)
    return [record for each in records if (record := lines.decode_object(each))]


def with_texts_moved(value: Any, move: Callable[[str], str]) -> Any:
    """A JSON value with what `move` returns for it in place of each long text."""
    if isinstance(value, str):
        return move(value) if len(value) > LONG_TEXT else value
    if isinstance(value, dict):
        return {key: with_texts_moved(each, move) for key, each in value.items()}
    return [with_texts_moved(each, move) for each in value] if isinstance(value, list) else value
