"""Stored entries, decoded only as far as needed to build updates from their bytes. Pure.

Texts, and inputs and outputs of tools, stay raw JSON; only fields that decide the form of an update become values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.model import Audio, Image, Plan, Resource, ResourceLink, Unknown
from hitherto.rpc import frames

NOTHING = Raw(b"")


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    text: Raw


class Thought(msgspec.Struct, frozen=True, gc=False, tag="thought"):
    text: Raw


class Call(msgspec.Struct, frozen=True, gc=False, tag="tool_call"):
    id: str
    name: str
    input: Raw = NOTHING
    kind: str | None = None
    title: str | None = None
    locations: Raw = NOTHING


class Result(msgspec.Struct, frozen=True, gc=False, tag="tool_result"):
    id: str
    content: tuple[Piece, ...] = ()
    is_error: bool = False
    output: Raw = NOTHING


Piece = Text | Thought | Call | Result | Image | Audio | Resource | ResourceLink | Plan | Unknown


class Stored(msgspec.Struct, frozen=True, gc=False):
    """An entry."""

    id: Raw
    at: int
    role: str
    parts: tuple[Piece, ...] = ()
    meta: Raw = NOTHING


_stored = msgspec.json.Decoder(Stored)


def read_stored(payload: bytes) -> Stored:
    """The entry in these bytes. Lone surrogates are replaced, because clients need not accept them."""
    try:
        return _stored.decode(payload)
    except msgspec.DecodeError:
        return _stored.decode(frames.encode(frames.scrub(json.loads(payload))))


def read_page(payloads: Sequence[bytes]) -> list[Stored]:
    """The entries of a page."""
    try:
        return list(map(_stored.decode, payloads))
    except msgspec.DecodeError:
        return list(map(read_stored, payloads))


def value_of(raw: Raw) -> Any:
    """The decoded JSON; None if empty."""
    return msgspec.json.decode(raw) if memoryview(raw) else None
