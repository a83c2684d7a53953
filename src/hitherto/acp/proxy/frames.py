"""Forwarded messages: their members stay raw bytes, so that unknown content is not changed. Pure."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.model import decode_json
from hitherto.rpc import frames

Members = dict[str, Raw]

_members = msgspec.json.Decoder(Members)
_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def members_of(data: bytes | Raw) -> Members | None:
    """The members of a JSON object; None if it is not one. Lone surrogates stay unchanged."""
    try:
        return _members.decode(data)
    except msgspec.ValidationError:
        return None
    except _UNREADABLE:
        return _members_by_json(bytes(data))


def _members_by_json(data: bytes) -> Members | None:
    try:
        value = json.loads(data, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return {name: Raw(json.dumps(item, separators=(",", ":")).encode()) for name, item in value.items()}


def _refused(name: str) -> Any:
    raise ValueError(name)


def value_of(raw: Raw | None) -> Any:
    """The value of a member; None if it is absent or unreadable."""
    if raw is None:
        return None
    try:
        return decode_json(bytes(raw))
    except _UNREADABLE:
        return None


def text_of(members: Members, name: str) -> str | None:
    """The text of a member; None if it is not a string."""
    value = value_of(members.get(name))
    return value if isinstance(value, str) else None


def object_of(members: Members, name: str) -> Members:
    """The members of a member; empty if it is not an object."""
    raw = members.get(name)
    return {} if raw is None else members_of(raw) or {}


def raw_json(value: Any) -> Raw:
    """A value as JSON."""
    return Raw(frames.encode(value))


def join_members(members: Members) -> bytes:
    """The object that has these members."""
    try:
        return msgspec.json.encode(members)
    except UnicodeEncodeError:  # a name with a lone surrogate
        pairs = ((json.dumps(name).encode(), bytes(raw)) for name, raw in members.items())
        return b"{%b}" % b",".join(b"%b:%b" % pair for pair in pairs)


def line(members: Members) -> bytes:
    """The line of a message."""
    return join_members(members) + b"\n"


def with_session(members: Members, session_id: Raw) -> Members:
    """The message, about another session."""
    params = members_of(members["params"]) or {}
    return {**members, "params": Raw(join_members({**params, "sessionId": session_id}))}
