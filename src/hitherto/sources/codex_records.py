"""Lines of Codex's rollouts: what each is, decoded only as far as somebody wants to know. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from hitherto.claude.lines import decode_object, encode
from hitherto.model import Json
from hitherto.sources.pi import moment

NO_KIND = "?"


class Record(NamedTuple):
    """A line: what kind it is, when it was written, its number in the thread if it has one, and what it says.

    `size` is how many bytes the line has."""

    kind: str
    at: int | None
    ordinal: int | None
    said: bytes
    size: int

    @property
    def type(self) -> str:
        """The kind of what it says; found without reading the rest."""
        try:
            return _head.decode(self.said).type
        except (ValueError, RecursionError):
            return text(decode_object(self.said), "type") or NO_KIND

    def payload(self) -> Json:
        """What it says."""
        return decode_object(self.said)


class _Line(msgspec.Struct):
    type: str
    payload: Raw
    timestamp: str | None = None
    ordinal: int | None = None


class _Head(msgspec.Struct):
    type: str = NO_KIND


_line = msgspec.json.Decoder(_Line)
_head = msgspec.json.Decoder(_Head)


def read(line: bytes) -> Record:
    """The record in a line that is a JSON object."""
    try:
        told = _line.decode(line)
    except (ValueError, RecursionError):
        return _leniently(line)
    return Record(told.type, moment(told.timestamp), told.ordinal, bytes(told.payload), len(line))


def _leniently(line: bytes) -> Record:
    """A line with something of another type than it should be, or as the first versions wrote it: the bare item."""
    value = decode_object(line)
    ordinal = value.get("ordinal")
    number = ordinal if isinstance(ordinal, int) and not isinstance(ordinal, bool) else None
    at, kind = moment(value.get("timestamp")), text(value, "type")
    if "payload" in value:
        said = value["payload"] if isinstance(value["payload"], dict) else {}
        return Record(kind or NO_KIND, at, number, encode(said), len(line))
    if kind is not None:
        return Record("response_item", at, number, line, len(line))
    first = "session_meta" if text(value, "id") and at is not None else NO_KIND
    return Record("bookkeeping" if "record_type" in value else first, at, number, line, len(line))


def text(value: Any, *names: str) -> str | None:
    """The first of these fields that is a text with something in it."""
    if isinstance(value, dict):
        for name in names:
            said = value.get(name)
            if isinstance(said, str) and said:
                return said
    return None


def fields(value: Any, name: str) -> Json:
    """A field that is an object; empty if it is none."""
    said = value.get(name) if isinstance(value, dict) else None
    return said if isinstance(said, dict) else {}


def items(value: Any, name: str) -> list[Any]:
    """A field that is a list; empty if it is none."""
    said = value.get(name) if isinstance(value, dict) else None
    return said if isinstance(said, list) else []


def whole(value: Any, name: str) -> int | None:
    """A field that is a whole number."""
    said = value.get(name) if isinstance(value, dict) else None
    return said if isinstance(said, int) and not isinstance(said, bool) else None
