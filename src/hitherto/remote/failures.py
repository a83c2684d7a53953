"""What a server answers in place of a result becomes the error that the store itself would have raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hitherto.errors import AmbiguousId, Busy, HithertoError, RevisionConflict, StoreError, StoreUnavailable
from hitherto.rpc.failures import Refused

DETAILS = {Busy: ("holder", "age_ms"), RevisionConflict: ("expected", "actual"), AmbiguousId: ("some",)}
"""What such an error holds besides its message."""
UNKNOWN = "does not take this token: it is unknown there, or revoked"
REFUSED: dict[str, tuple[type[HithertoError], str]] = {
    "unauthenticated": (StoreUnavailable, UNKNOWN),
    "forbidden": (StoreError, "refuses it"),
    "rate_limited": (StoreUnavailable, "has had too many requests, try again later"),
    "method_not_found": (StoreError, "is too old for this"),
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
