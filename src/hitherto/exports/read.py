"""What may be imported, as lines: an export in lines is that already, one in a document holds them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.exports.messages import Message
from hitherto.model import decode_json, encode

_LINE_BREAK = b"\n"
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
# What a surrogate is written with, and what stands in for it while a document is taken apart: we never write capitals.
_SURROGATE, _STAND_IN = rb"\ud", rb"\uE"


class Foreign(msgspec.Struct, frozen=True):
    """A chat of another program: messages, and when it began, if that is known."""

    messages: tuple[Message, ...]
    title: str | None = None
    created_at: int | None = None


class _Metadata(msgspec.Struct, frozen=True):
    created_at: int | None = None
    title: str | None = None


class _Lossless(msgspec.Struct, frozen=True):
    lines: tuple[msgspec.Raw, ...]


class _Document(msgspec.Struct, frozen=True):
    messages: tuple[msgspec.Raw, ...]
    metadata: _Metadata | None = None
    hitherto: _Lossless | None = None
    recollect: _Lossless | None = None

    @property
    def lossless(self) -> _Lossless | None:
        """The lines, under this name or under the first one."""
        return self.hitherto or self.recollect


class _Peek(msgspec.Struct, frozen=True):
    format: Any = None
    messages: msgspec.Raw | None = None


def begins_session(line: bytes) -> bool:
    """Whether a session begins with this line: the head of one, or all of one."""
    return (peek := _peeked(line)) is not None and (peek.format is not None or peek.messages is not None)


def unfolded(lines: Sequence[bytes], first: int = 1) -> Sequence[bytes] | Foreign:
    """The lossless lines of a session, or the messages of a document that has none.

    Another program may have read the document and written it again, in one line or many; the lines are as we write them.
    """
    if not lines or _is_in_lines(lines[0]):
        return lines
    text = _LINE_BREAK.join(lines)
    try:
        found = _document(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"line {first + error.lineno - 1}: this is not an export of a session: {error}"
        ) from None
    except _UNREADABLE as error:
        raise InvalidInput(f"line {first}: this is not an export of a session: {error}") from None
    if found.lossless is None:
        return _foreign(found, first)
    try:
        return [encode(decode_json(bytes(line))) for line in found.lossless.lines]
    except _UNREADABLE as error:  # they were taken as they stand until now
        raise InvalidInput(f"line {first}: this is not an export of a session: {error}") from None


def _is_in_lines(line: bytes) -> bool:
    peek = _peeked(line)
    return peek is not None and peek.messages is None


def _peeked(line: bytes) -> _Peek | None:
    try:
        return msgspec.json.decode(line, type=_Peek)
    except _UNREADABLE:
        pass
    try:
        value = decode_json(line)
    except _UNREADABLE:
        return None
    if not isinstance(value, dict):
        return None
    return _Peek(value.get("format"), msgspec.Raw(b"") if "messages" in value else None)


def _document(text: bytes) -> _Document:
    try:
        return msgspec.json.decode(text, type=_Document)
    except msgspec.DecodeError:
        # Either no JSON, whose line this reader knows, or JSON with lone surrogates, which the other refuses.
        value = json.loads(text)
    if _STAND_IN in text:
        text = json.dumps(value, separators=(",", ":")).encode("ascii")
    found = msgspec.json.decode(text.replace(_SURROGATE, _STAND_IN), type=_Document)
    lines = tuple(map(_restored, found.lossless.lines)) if found.lossless else ()
    return replace(
        found,
        messages=tuple(map(_restored, found.messages)),
        hitherto=_Lossless(lines) if found.lossless else None,
    )


def _restored(part: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(bytes(part).replace(_STAND_IN, _SURROGATE))


def _foreign(document: _Document, first: int) -> Foreign:
    messages = []
    for number, raw in enumerate(document.messages, 1):
        try:
            messages.append(msgspec.convert(decode_json(bytes(raw)), Message))
        except _UNREADABLE as error:
            raise InvalidInput(f"line {first}: message {number} is none: {error}") from None
    about = document.metadata or _Metadata()
    return Foreign(tuple(messages), about.title, about.created_at)
