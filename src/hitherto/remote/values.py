"""What the service's calls take and give, as it goes over the wire without loss. Pure.

Most of it is plain JSON. What was said may hold more than JSON's readers take (halves of surrogate pairs, numbers beyond
64 bits) and is sent as bytes: those of its own exact JSON. So are lines of a file, joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import NODEFAULT

from hitherto.errors import (
    AmbiguousId,
    Busy,
    HithertoError,
    InvalidInput,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
)
from hitherto.model import Filter, encode
from hitherto.remote.calls import CALLS, NOWHERE
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
    """The parameters that are given with a call, apart from who calls and the session that it is about."""
    offered = CALLS[name]
    call = offered.function
    hints = get_type_hints(call)
    left_out = {
        "self",
        "who",
        *NOWHERE,
        *offered.omits,
        *(["session_id"] if offered.about == "session" else []),
    }
    return {
        each.name: Field(
            hints[each.name],
            NODEFAULT if each.default is Parameter.empty else each.default,
            not _is_plain(hints[each.name]),
        )
        for each in signature(call).parameters.values()
        if each.name not in left_out
    }


@cache
def result_of(name: str) -> Any:
    """What a call gives."""
    return get_type_hints(CALLS[name].function)["return"]


def exactly(value: Any, kind: Any) -> bytes:
    """The bytes of a value of this type."""
    return b"\n".join(value) if kind == LINES else encode(value)


def out_of(data: bytes, kind: Any) -> Any:
    """The value that `exactly` made these bytes from. Raises `InvalidInput`."""
    if kind == LINES:
        return data.split(b"\n")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _out_of_odd(data, kind)


def _out_of_odd(data: bytes, kind: Any) -> Any:
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


DETAILS = {Busy: ("holder", "age_ms"), RevisionConflict: ("expected", "actual"), AmbiguousId: ("some",)}
"""What such an error holds besides its message."""
UNKNOWN = "does not accept this token: it is unknown or revoked"
REFUSED: dict[str, tuple[type[HithertoError], str]] = {
    "unauthenticated": (StoreUnavailable, UNKNOWN),
    "forbidden": (StoreError, "refused the request"),
    "rate_limited": (StoreUnavailable, "received too many requests; try again later"),
    "method_not_found": (StoreError, "is too old: it does not support this request"),
}
"""What only a server says, as an error of the program and in words."""


def error_of(refused: Refused, server: str) -> HithertoError:
    """The error, in the server's words."""
    data = refused.data if isinstance(refused.data, dict) else {}
    code = data.get("code")
    if code in REFUSED:
        kind, words = REFUSED[code]
        return kind(f"{server} {words}{_scope(data)}")
    known = _CODES.get(code) if isinstance(code, str) else None
    if known is None:
        return StoreError(f"{server}: {refused.message}")
    error = known.__new__(known)
    HithertoError.__init__(error, refused.message)
    for name in DETAILS.get(known, ()):
        setattr(error, name, data.get(name))
    return error


def _scope(data: dict[str, Any]) -> str:
    return f": this needs a token with the scope {data['scope']}" if "scope" in data else ""


def _tree(error: type[HithertoError]) -> Iterator[type[HithertoError]]:
    yield error
    for child in error.__subclasses__():
        yield from _tree(child)


_CODES = {error.code: error for error in _tree(HithertoError)}
