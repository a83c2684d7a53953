"""Everything that can go wrong, as one tree. Each class has a stable `code`.

HithertoError
├── InvalidInput            invalid_input        the call itself is wrong; nothing was done
│   ├── InvalidCwd          invalid_cwd          a working directory that is not an absolute path
│   ├── InvalidCursor       invalid_cursor       altered, foreign, or of another filter
│   ├── InvalidLimit        invalid_limit        below 1 or above the published maximum
│   ├── InvalidKey          invalid_key          a session key that does not follow the grammar
│   └── TooLarge            too_large            above a published limit
├── NotFound                not_found            no such thing, or not yours: the two are never told apart
│   ├── SessionNotFound     session_not_found
│   ├── EntryNotFound       entry_not_found
│   └── CheckpointNotFound  checkpoint_not_found
├── AmbiguousId             ambiguous_id         a short id that fits several sessions
├── Conflict                conflict             the state is not what the caller believes
│   ├── AlreadyExists       already_exists
│   ├── RevisionConflict    revision_conflict    the session has changed since it was read
│   └── IdempotencyConflict idempotency_conflict the same key was used with another payload
├── Busy                    busy                 another holder has the session's lease
├── LeaseLost               lease_lost           the caller's lease has expired or passed on
├── ReadOnly                read_only            a session read from another agent; fork it to go on
├── Interrupted             interrupted          this prompt was begun before and never finished; it is not run twice
├── EngineError             engine_error         the model, or what runs the turn, could not go on
│   ├── ModelMissing        model_missing        no model is set, or what it needs is not installed
│   ├── ModelRefused        model_refused        the provider does not accept the key, or knows no such model
│   ├── ModelBusy           model_busy           the provider wants fewer requests; tried again, in vain
│   ├── ModelUnreachable    model_unreachable    no connection, or it broke off
│   └── ContextTooLong      context_too_long     the conversation does not fit the model's window
└── StoreError              store_error          the store could not do it
    ├── StoreUnavailable    store_unavailable    cannot be opened or reached
    ├── StoreFull           store_full           the disk is full, or a store's own limit is reached
    ├── StoreDamaged        store_damaged        the file is not a healthy store
    └── SchemaTooNew        schema_too_new       written by a newer program
"""

from __future__ import annotations


def install_advice(what: str, extra: str) -> str:
    """The message for a missing package: what needs it, and the command that installs it."""
    return f"{what} needs more packages: pip install 'hitherto[{extra}]'"


class HithertoError(Exception):
    """The root of the tree; `code` is stable and documented, the message is for people."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(HithertoError):
    """The call itself is wrong; nothing was done."""

    code = "invalid_input"


class InvalidCwd(InvalidInput):
    """A working directory must be an absolute path."""

    code = "invalid_cwd"


class InvalidCursor(InvalidInput):
    """The cursor was altered, belongs to someone else, or to another filter."""

    code = "invalid_cursor"


class InvalidLimit(InvalidInput):
    """A limit below 1 or above the published maximum."""

    code = "invalid_limit"


class InvalidKey(InvalidInput):
    """A session key that does not follow the grammar."""

    code = "invalid_key"


class TooLarge(InvalidInput):
    """Above a published limit."""

    code = "too_large"


class NotFound(HithertoError):
    """No such thing, or not yours: the two are never told apart."""

    code = "not_found"


class SessionNotFound(NotFound):
    """No session of the caller has this id."""

    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}")


class EntryNotFound(NotFound):
    """The view of the session that was asked for has no such entry."""

    code = "entry_not_found"

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"no entry {entry_id!r} in this session")


class CheckpointNotFound(NotFound):
    """The session has no such checkpoint."""

    code = "checkpoint_not_found"

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(f"no checkpoint {checkpoint_id!r} in this session")


class AmbiguousId(HithertoError):
    """A short id that fits several of the caller's sessions."""

    code = "ambiguous_id"

    def __init__(self, prefix: str, some: list[str]) -> None:
        super().__init__(f"{prefix!r} fits several sessions: {', '.join(some)} …; give more characters")
        self.some = some


class Conflict(HithertoError):
    """The state is not what the caller believes."""

    code = "conflict"


class AlreadyExists(Conflict):
    """Something with this id or key is already there."""

    code = "already_exists"


class RevisionConflict(Conflict):
    """The session has changed since the caller read it."""

    code = "revision_conflict"

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"the session is at revision {actual}, not {expected}; read it again")
        self.expected = expected
        self.actual = actual


class IdempotencyConflict(Conflict):
    """The same idempotency key was used before with another payload."""

    code = "idempotency_conflict"

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used before with another payload")


class Busy(HithertoError):
    """Another holder has the session's lease."""

    code = "busy"

    def __init__(self, holder: str, age_ms: int) -> None:
        super().__init__(f"the session is held by {holder!r} since {age_ms / 1000:.1f} s; wait or try later")
        self.holder = holder
        self.age_ms = age_ms


class LeaseLost(HithertoError):
    """The caller's lease has expired or passed on to another holder; nothing was written."""

    code = "lease_lost"

    def __init__(self) -> None:
        super().__init__("the lease has expired or passed on; nothing was written")


class ReadOnly(HithertoError):
    """A session read from another agent; fork it to go on."""

    code = "read_only"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} was read from another agent and cannot be written; fork it")


class Interrupted(HithertoError):
    """A prompt of this idempotency key was begun before and never finished. It is not run twice."""

    code = "interrupted"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the prompt with idempotency key {key!r} was begun and never finished; send it again with another key"
        )


class EngineError(HithertoError):
    """The model, or whatever runs the turn, could not go on. What was said until then is kept."""

    code = "engine_error"


class ModelMissing(EngineError):
    """No model is set, it is not known, or what it needs is not installed or not set; the message says what to do."""

    code = "model_missing"


class ModelRefused(EngineError):
    """The provider does not accept the key, or knows no such model."""

    code = "model_refused"


class ModelBusy(EngineError):
    """The provider wants fewer requests; they were tried again, in vain."""

    code = "model_busy"


class ModelUnreachable(EngineError):
    """There was no connection to the provider, or it broke off."""

    code = "model_unreachable"


class ContextTooLong(EngineError):
    """The conversation does not fit the model's window."""

    code = "context_too_long"


class StoreError(HithertoError):
    """The store could not do it."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""

    code = "store_unavailable"


class StoreFull(StoreError):
    """The disk is full, or a store's own limit is reached."""

    code = "store_full"


class StoreDamaged(StoreError):
    """The file is not a healthy store."""

    code = "store_damaged"


class SchemaTooNew(StoreError):
    """The store was written by a newer program; update this one."""

    code = "schema_too_new"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the store has schema {found}, this program knows schemas up to {known}: install a newer Hitherto"
        )
