"""Arguments and results of the service's calls on the wire, without loss. Pure.

Most of them are plain JSON. Messages may contain more than every JSON reader accepts (lone surrogates, numbers beyond 64
bits), so they are sent as the bytes of their exact JSON. Lines of a file are joined and sent the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT

from hitherto.errors import (
    AmbiguousId,
    Busy,
    HithertoError,
    IndexBehind,
    InvalidInput,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
    error_from,
)
from hitherto.model import Filter, encode
from hitherto.remote.calls import CALLS, NOT_SENT
from hitherto.rpc.errors import Refused

PLAIN = (Filter, str, int, float, bool, type(None))
"""What is sent as it is; lists and dicts of it too."""
LINES = Sequence[bytes]


class Field(NamedTuple):
    """A parameter of a call."""

    type: Any
    default: Any
    exact: bool


@cache
def fields_of(name: str) -> Mapping[str, Field]:
    """The parameters of a call, without the caller and the session."""
    call = CALLS[name]
    function = call.function
    hints = get_type_hints(function)
    left_out = {
        "self",
        "who",
        *NOT_SENT,
        *call.omits,
        *(["session_id"] if call.about == "session" else []),
    }
    return {
        each.name: Field(
            hints[each.name],
            NODEFAULT if each.default is Parameter.empty else each.default,
            not _is_plain(hints[each.name]),
        )
        for each in signature(function).parameters.values()
        if each.name not in left_out
    }


@cache
def result_of(name: str) -> Any:
    """The return type of a call."""
    return get_type_hints(CALLS[name].function)["return"]


def to_bytes(value: Any, kind: Any) -> bytes:
    """The bytes of a value of this type."""
    return b"\n".join(value) if kind == LINES else encode(value)


def from_bytes(data: bytes, kind: Any) -> Any:
    """The value that `to_bytes` made these bytes from. Raises `InvalidInput`."""
    if kind == LINES:
        return data.split(b"\n")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _from_odd_json(data, kind)


def _from_odd_json(data: bytes, kind: Any) -> Any:
    """The same for JSON that only the standard library reads."""
    try:
        return msgspec.convert(json.loads(data), kind)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise InvalidInput(f"cannot read a value: {error!s:.200}") from None


def _is_plain(kind: Any) -> bool:
    parts = get_args(kind)
    if parts:
        return all(map(_is_plain, parts)) if not all(isinstance(part, str) for part in parts) else True
    return kind in PLAIN


DETAILS = {
    Busy: ("age_ms",),
    RevisionConflict: ("expected", "actual"),
    AmbiguousId: ("some",),
    IndexBehind: ("indexed", "total"),
}
"""The fields of these errors beyond the message."""
UNKNOWN = "does not accept this token: it is unknown or revoked"
REFUSED: dict[str, tuple[type[HithertoError], str]] = {
    "unauthenticated": (StoreUnavailable, UNKNOWN),
    "forbidden": (StoreError, "refused the request"),
    "rate_limited": (StoreUnavailable, "received too many requests; try again later"),
    "method_not_found": (StoreError, "is too old: it does not support this request"),
}
"""Errors that only a server returns → the error to raise, and its text."""


def error_of(refused: Refused, server: str) -> HithertoError:
    """The error, in the server's words."""
    data = refused.data if isinstance(refused.data, dict) else {}
    code = data.get("code")
    if code in REFUSED:
        kind, words = REFUSED[code]
        return kind(f"{server} {words}{_scope(data)}")
    error = error_from(code, refused.message) if isinstance(code, str) else None
    if error is None:
        return StoreError(f"{server}: {refused.message}")
    for name in DETAILS.get(type(error), ()):
        setattr(error, name, data.get(name))
    return error


def _scope(data: dict[str, Any]) -> str:
    return f": this needs a token with the scope {data['scope']}" if "scope" in data else ""
