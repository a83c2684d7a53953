"""The lossless form of a session, as JSON lines: what each line holds, and how lines are read back. Pure.

The first line is the session with its spans, then come checkpoints, facts, raw copies, what waits in the inbox, and the
entries in their stored bytes. Entries are numbered from 1 in the order in which the span lists first reach them, so a fork's export is whole
by itself and no number of the store is in it. A redacted export says so in its first line, and in its last what was
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from hitherto.errors import HithertoError, InvalidInput
from hitherto.model import Checkpoint, Entry, Fact, Session, Value, decode_json
from hitherto.values import spans as algebra
from hitherto.values.spans import Kind, Span, Spans, Stretch

FORMAT = "hitherto-session"
FORMATS = (FORMAT, "recollect-session")
"""What exports say they are, under this name and under the first one."""
VERSION = 1
# Entries stand in their own bytes: they are cut out of the line, never decoded and encoded again.
ENTRY_OPEN = b'{"entry":'
ENTRY_CLOSE = b"}"

Range = tuple[int, int, Kind, str | None]


class Head(Value, frozen=True):
    """The first line."""

    format: str
    version: int
    session: Session
    entries: int
    spans: tuple[Range, ...] = ()
    redacted: bool = False


class Replaced(Value, frozen=True):
    """So many secrets of one kind were replaced in one place: an entry, or another part of the session."""

    kind: str
    count: int
    entry: str | None = None
    where: str | None = None


class Line(Value, frozen=True):
    """Any line but the first: exactly one of these."""

    checkpoint: Checkpoint | None = None
    spans: tuple[Range, ...] = ()
    fact: Fact | None = None
    raw: str | None = None
    data: str | None = None
    payload: bytes | None = None
    waiting: Entry | None = None
    redacted: tuple[Replaced, ...] | None = None


class Numbered(msgspec.Struct, frozen=True):
    """A line with its number in the file."""

    number: int
    line: Line


def entry_line(payload: bytes) -> bytes:
    """The line of an entry."""
    return ENTRY_OPEN + payload + ENTRY_CLOSE


def parsed(lines: Sequence[bytes], first: int = 1) -> tuple[Head, list[Numbered]]:
    """The lines of one session, whose first has this number in its file. Empty lines mean nothing."""
    if not lines:
        raise InvalidInput("there is nothing to import")
    with at_line(first):
        head = head_of(lines[0])
    rest: list[Numbered] = []
    for number, line in enumerate(lines[1:], first + 1):
        with at_line(number):
            if bare := line.strip():
                rest.append(Numbered(number, _line(bare)))
    return head, rest


def head_of(line: bytes) -> Head:
    """The first line, if this program knows the form of those that follow."""
    head: Head = _shaped(line, Head)
    if head.format not in FORMATS or head.version > VERSION:
        raise InvalidInput(
            f"this program reads {FORMAT} up to version {VERSION}, not {head.format} {head.version}"
        )
    return head


@contextmanager
def at_line(number: int) -> Iterator[None]:
    """Whatever is wrong in here is wrong with that line."""
    try:
        yield
    except HithertoError as error:
        raise type(error)(f"line {number}: {error.message}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(f"line {number}: this is not an export of a session: {error}") from None


def _line(line: bytes) -> Line:
    if line.startswith(ENTRY_OPEN) and line.endswith(ENTRY_CLOSE):
        return Line(payload=line[len(ENTRY_OPEN) : -len(ENTRY_CLOSE)].strip())
    found: Line = _shaped(line, Line)
    return found


def _shaped(line: bytes, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(line, type=shape)
    except msgspec.DecodeError:
        return msgspec.convert(decode_json(line), shape)


# The numbers of entries


def order_of(lists: Iterable[Spans]) -> list[Stretch]:
    """Every entry that any list reaches, once, in the order of first reach."""
    out: list[Stretch] = []
    for span in (span for spans in lists for span in spans):
        out.extend(algebra.without(Stretch(span.log, span.first, span.last or 0), out))
    return out


def ranges_of(spans: Spans, order: Sequence[Stretch]) -> tuple[Range, ...]:
    """Spans in the numbers of the export; neighbours are joined, so that the same history has one spelling."""
    out: list[Range] = []
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


def spans_of(ranges: Iterable[Range], log: int) -> Spans:
    """The same as spans over the log that the entries come to stand in."""
    return tuple(Span(log, first, last, kind, expands) for first, last, kind, expands in ranges)
