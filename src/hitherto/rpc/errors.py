"""What goes wrong on the wire: codes of JSON-RPC, and the one table from this program's errors to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitherto.errors import AmbiguousId, Busy, HithertoError, RevisionConflict

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
NOT_FOUND = -32002
OVERLOADED = -32050

CODES: dict[str, int] = {
    "error": INTERNAL_ERROR,
    "invalid_input": INVALID_PARAMS,
    "invalid_cwd": INVALID_PARAMS,
    "invalid_cursor": INVALID_PARAMS,
    "invalid_limit": INVALID_PARAMS,
    "invalid_key": INVALID_PARAMS,
    "invalid_query": INVALID_PARAMS,
    "too_large": INVALID_PARAMS,
    "not_found": NOT_FOUND,
    "session_not_found": NOT_FOUND,
    "entry_not_found": NOT_FOUND,
    "branch_not_found": NOT_FOUND,
    "checkpoint_not_found": NOT_FOUND,
    "out_of_reach": -32004,
    "ambiguous_id": INVALID_PARAMS,
    "search_too_broad": INVALID_PARAMS,
    "conflict": -32010,
    "session_deleted": -32010,
    "already_exists": -32010,
    "revision_conflict": -32010,
    "idempotency_conflict": -32010,
    "busy": -32011,
    "inbox_full": -32015,
    "lease_lost": -32012,
    "read_only": -32013,
    "interrupted": -32014,
    "engine_error": -32030,
    "model_missing": -32031,
    "model_refused": -32032,
    "model_busy": -32033,
    "model_unreachable": -32034,
    "context_too_long": -32035,
    "store_error": -32040,
    "store_unavailable": -32041,
    "store_full": -32042,
    "store_damaged": -32043,
    "schema_too_new": -32044,
    "store_not_found": -32045,
    "index_behind": -32046,
}
"""The number for each stable code of `errors`. Nothing here is -32000 (authenticate first) or -32001 (which some clients
take for a missing session)."""


class Failure(Exception):
    """An answer that is an error: `code` for programs, `message` for people, `data` for both."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Refused(Exception):
    """The peer has answered a request of ours with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Gone(Exception):
    """The peer has left, or was made to leave: pending requests are never answered."""


def failure_of(error: HithertoError, codes: Mapping[str, int] = CODES) -> Failure:
    """The answer that an error of this program becomes. `data.code` is its stable code."""
    return Failure(codes[error.code], error.message, {"code": error.code, **_details(error)})


def _details(error: HithertoError) -> dict[str, Any]:
    match error:
        case Busy():
            return {"ageMs": error.age_ms}
        case RevisionConflict():
            return {"expected": error.expected, "actual": error.actual}
        case AmbiguousId():
            return {"some": error.some}
    return {}
