"""The one table of what can go wrong at the gateway: stable codes, their numbers on the wire, and what `data` holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from hitherto.errors import AmbiguousId, Busy, HithertoError, IndexBehind, RevisionConflict
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


PLACE: Mapping[str, str] = {"path": "the invalid parameter, if known"}
BEYOND: Mapping[str, re.Pattern[str]] = {
    "invalid_limit": re.compile(r"\$\.limit: Expected `int` [<>]= \d+"),
    "too_large": re.compile(r".*: Expected `\w+` of length <= \d+"),
}
"""What the decoder says, and where, of a parameter that is beyond a limit; by the code for that."""

MEANINGS: Mapping[str, Meaning] = {
    "error": Meaning("internal error; the server's log has the details"),
    "method_not_found": Meaning("unknown method", {"method": "the requested name"}),
    "unauthenticated": Meaning("the token is missing, unknown or revoked"),
    "out_of_reach": Meaning("the token is restricted, and this is not among what it is for"),
    "forbidden": Meaning("the token lacks a scope", {"scope": "the required scope"}),
    "rate_limited": Meaning("too many requests", {"retry_after_ms": "how long to wait before a retry"}),
    "ending": Meaning("the server is shutting down: retry, or use another server"),
    "invalid_input": Meaning("invalid parameters; nothing was done", PLACE),
    "invalid_cwd": Meaning("the working directory is not an absolute path"),
    "invalid_cursor": Meaning("the cursor was altered, or belongs to another query"),
    "invalid_limit": Meaning("the limit is below 1 or above the published maximum", PLACE),
    "invalid_key": Meaning("the session key does not follow the grammar"),
    "invalid_query": Meaning("a search has a field that does not exist, or a value that it does not take"),
    "too_large": Meaning("a value exceeds a published limit", PLACE),
    "not_found": Meaning("not found, or not yours"),
    "session_not_found": Meaning("no such session, or not yours", {"session_key": "the requested key or id"}),
    "entry_not_found": Meaning("the session has no such message"),
    "branch_not_found": Meaning("the session has no such branch"),
    "checkpoint_not_found": Meaning("the session has no such checkpoint"),
    "ambiguous_id": Meaning("several ids start with this prefix", {"some": "some of them"}),
    "search_too_broad": Meaning("the search would take too long: narrow it"),
    "index_behind": Meaning(
        "the search index does not have all messages yet: try again",
        {"indexed": "how many messages and titles it has", "total": "how many there are"},
    ),
    "conflict": Meaning("the current state does not allow this"),
    "session_deleted": Meaning("the session was deleted here: import it with `include_deleted`"),
    "already_exists": Meaning("the id or key is already in use"),
    "revision_conflict": Meaning(
        "the session has changed since it was read",
        {"expected": "the caller's revision", "actual": "the session's revision"},
    ),
    "idempotency_conflict": Meaning("the idempotency key was already used with other parameters"),
    "busy": Meaning(
        "a turn is running in the session",
        {"age_ms": "how long it has been running"},
    ),
    "inbox_full": Meaning("too many messages wait in the session: nothing was stored"),
    "lease_lost": Meaning("the turn lost its lease and did not finish"),
    "read_only": Meaning("the session is read from another agent: fork it to continue"),
    "interrupted": Meaning(
        "a prompt with this idempotency key started but never finished; it is not run again"
    ),
    "engine_error": Meaning("the model, or the engine that runs the turn, failed; messages so far are kept"),
    "model_missing": Meaning("no model is set, or a package or key that it needs is missing"),
    "model_refused": Meaning("the provider rejected the server's key"),
    "model_busy": Meaning("the provider's rate limit was exceeded, also after retries"),
    "model_unreachable": Meaning("cannot connect to the provider, or the connection was lost"),
    "context_too_long": Meaning("the conversation does not fit the model's window"),
    "store_error": Meaning("the store failed"),
    "store_not_found": Meaning("there is no store at this address"),
    "store_unavailable": Meaning("the store cannot be reached"),
    "store_full": Meaning("the disk is full"),
    "store_damaged": Meaning("the store is damaged"),
    "schema_too_new": Meaning(
        "a newer version of Hitherto has changed the store; this one may not write to it"
    ),
}


def number_of(code: str) -> int:
    """The number that stands for a code on the wire."""
    return OWN[code] if code in OWN else CODES[code]


def failure(code: str, message: str, **data: Any) -> Failure:
    """An answer of this code; what it quotes of the request is cut."""
    return Failure(number_of(code), message[:MESSAGE_CHARS], {"code": code, **data})


def failure_of(error: HithertoError, **data: Any) -> Failure:
    """The answer for an error of the service. Further data that is None is left out."""
    known = {name: value for name, value in data.items() if value is not None}
    return failure(error.code, error.message, **known, **_details(error))


def invalid(message: str, path: str | None = None) -> Failure:
    """Parameters that are not those of the method; of one beyond a published limit, the code says so."""
    details = {} if path is None else {"path": path[:300]}
    beyond = (code for code, limit in BEYOND.items() if limit.fullmatch(f"{path}: {message}"))
    code = next(beyond, "invalid_input")
    return Failure(INVALID_PARAMS, f"Invalid params: {message:.300}", {"code": code, **details})


def internal() -> Failure:
    """A fault of ours: what it was is for the log."""
    return Failure(INTERNAL_ERROR, "Internal error", {"code": "error"})


def _details(error: HithertoError) -> dict[str, Any]:
    match error:
        case Busy():
            return {"age_ms": error.age_ms}
        case RevisionConflict():
            return {"expected": error.expected, "actual": error.actual}
        case AmbiguousId():
            return {"some": error.some}
        case IndexBehind():
            return {"indexed": error.indexed, "total": error.total}
    return {}
