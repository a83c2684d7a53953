"""The one table of what can go wrong at the gateway: stable codes, their numbers on the wire, and what `data` holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hitherto.errors import AmbiguousId, Busy, HithertoError, RevisionConflict
from hitherto.rpc.errors import CODES, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, OVERLOADED, Failure

UNAUTHENTICATED = -32000
FORBIDDEN = -32003
RATE_LIMITED = -32029
MESSAGE_CHARS = 1_000

OWN: Mapping[str, int] = {
    "method_not_found": METHOD_NOT_FOUND,
    "unauthenticated": UNAUTHENTICATED,
    "forbidden": FORBIDDEN,
    "rate_limited": RATE_LIMITED,
    "ending": OVERLOADED,
}
"""Codes that only this door gives; the others are those of the whole program."""


class Meaning(NamedTuple):
    """What a code says, and what `data` has beside `code`."""

    text: str
    data: Mapping[str, str] = {}


PLACE: Mapping[str, str] = {"path": "where, if it can be told"}
BEYOND: Mapping[str, re.Pattern[str]] = {
    "invalid_limit": re.compile(r"\$\.limit: Expected `int` [<>]= \d+"),
    "too_large": re.compile(r".*: Expected `\w+` of length <= \d+"),
}
"""What the decoder says, and where, of a parameter that is beyond a limit; by the code for that."""

MEANINGS: Mapping[str, Meaning] = {
    "error": Meaning("an error of the server itself; it is in the server's log"),
    "method_not_found": Meaning("there is no such method", {"method": "the name that was asked for"}),
    "unauthenticated": Meaning("no token, or one that is unknown or revoked"),
    "forbidden": Meaning("the token is good for other things", {"scope": "the scope that is needed"}),
    "rate_limited": Meaning("too many requests", {"retry_after_ms": "when to try again"}),
    "ending": Meaning("the server is shutting down: ask another, or try again"),
    "invalid_input": Meaning("the parameters are wrong; nothing was done", PLACE),
    "invalid_cwd": Meaning("a working directory that is not an absolute path"),
    "invalid_cursor": Meaning("a cursor that was altered, or belongs to another question"),
    "invalid_limit": Meaning("a limit below 1 or above the published maximum", PLACE),
    "invalid_key": Meaning("a session key that does not follow the grammar"),
    "too_large": Meaning("above a published limit", PLACE),
    "not_found": Meaning("no such thing, or not yours"),
    "session_not_found": Meaning(
        "no such session, or not yours", {"session_key": "the key or id that was asked for"}
    ),
    "entry_not_found": Meaning("the session has no such message"),
    "checkpoint_not_found": Meaning("the session has no such checkpoint"),
    "ambiguous_id": Meaning("the beginning of several ids", {"some": "some of them"}),
    "conflict": Meaning("the state is not what the caller believes"),
    "already_exists": Meaning("something with this id or key is already there"),
    "revision_conflict": Meaning(
        "the session has changed since it was read",
        {"expected": "the caller's revision", "actual": "its own"},
    ),
    "idempotency_conflict": Meaning("the idempotency key was used before with other parameters"),
    "busy": Meaning(
        "a turn of the session is running", {"holder": "who runs it", "age_ms": "for how long already"}
    ),
    "lease_lost": Meaning("the turn lost its right to write, and was not finished"),
    "read_only": Meaning("a session read from another agent: fork it and go on there"),
    "interrupted": Meaning(
        "a prompt of this idempotency key was begun and never finished; it is not run twice"
    ),
    "engine_error": Meaning("the model, or what runs the turn, could not go on; what was said is kept"),
    "model_missing": Meaning("no model is set, or what it needs is missing"),
    "model_refused": Meaning("the provider does not accept the server's key"),
    "model_busy": Meaning("the provider wants fewer requests; tried again, in vain"),
    "model_unreachable": Meaning("no connection to the provider, or it broke off"),
    "context_too_long": Meaning("the conversation does not fit the model's window"),
    "store_error": Meaning("the store could not do it"),
    "store_unavailable": Meaning("the store cannot be reached"),
    "store_full": Meaning("the disk is full"),
    "store_damaged": Meaning("the store is damaged"),
    "schema_too_new": Meaning("the store was written by a newer program"),
}


def number_of(code: str) -> int:
    """The number by which a code goes on the wire."""
    return OWN[code] if code in OWN else CODES[code]


def failure(code: str, message: str, **data: Any) -> Failure:
    """An answer of this code; what it quotes of the request is cut."""
    return Failure(number_of(code), message[:MESSAGE_CHARS], {"code": code, **data})


def failure_of(error: HithertoError, **data: Any) -> Failure:
    """The answer that an error of the service becomes; of the further data, what is known is told."""
    known = {name: value for name, value in data.items() if value is not None}
    return failure(error.code, error.message, **known, **_details(error))


def invalid(message: str, path: str | None = None) -> Failure:
    """Parameters that are not those of the method; of one beyond a published limit, the code says so."""
    told = {} if path is None else {"path": path[:300]}
    beyond = (code for code, limit in BEYOND.items() if limit.fullmatch(f"{path}: {message}"))
    code = next(beyond, "invalid_input")
    return Failure(INVALID_PARAMS, f"Invalid params: {message:.300}", {"code": code, **told})


def internal() -> Failure:
    """A fault of ours: what it was is for the log."""
    return Failure(INTERNAL_ERROR, "Internal error", {"code": "error"})


def _details(error: HithertoError) -> dict[str, Any]:
    match error:
        case Busy():
            return {"holder": error.holder, "age_ms": error.age_ms}
        case RevisionConflict():
            return {"expected": error.expected, "actual": error.actual}
        case AmbiguousId():
            return {"some": error.some}
    return {}
