"""All errors, as one tree. Each class has a stable `code`.

HithertoError
├── InvalidInput            invalid_input        the request is invalid; nothing was changed
│   ├── InvalidCwd          invalid_cwd          a working directory that is not an absolute path
│   ├── InvalidCursor       invalid_cursor       altered, from another owner, or for another filter
│   ├── InvalidLimit        invalid_limit        below 1 or above the documented maximum
│   ├── InvalidKey          invalid_key          a session key with invalid syntax
│   ├── InvalidQuery        invalid_query        a search with a field that does not exist, or a value it does not take
│   └── TooLarge            too_large            above a documented limit
├── NotFound                not_found            it does not exist or is not yours; the error does not reveal which
│   ├── SessionNotFound     session_not_found
│   ├── EntryNotFound       entry_not_found
│   ├── CheckpointNotFound  checkpoint_not_found
│   └── StoreNotFound       store_not_found      there is no store at this address, and the request would not make one
├── OutOfReach              out_of_reach         the token is restricted, and this is not among what it is for
├── AmbiguousId             ambiguous_id         a short id that matches several sessions
├── SearchTooBroad          search_too_broad     a search that would take too long
├── IndexBehind             index_behind         the search index does not have all messages yet
├── Conflict                conflict             the state is not what the caller expected
│   ├── AlreadyExists       already_exists
│   ├── RevisionConflict    revision_conflict    the session changed after it was read
│   └── IdempotencyConflict idempotency_conflict the same key was used with another request
├── Busy                    busy                 a turn is running in the session
├── InboxFull               inbox_full           too many messages wait for the running turn
├── LeaseLost               lease_lost           the lease has expired, or another process has it
├── ReadOnly                read_only            a synced session; fork it to continue
├── Interrupted             interrupted          this prompt was started before and did not finish; it is not run again
├── EngineError             engine_error         the model or agent failed
│   ├── ModelMissing        model_missing        no model is set, or its packages are not installed
│   ├── ModelRefused        model_refused        the provider rejected the key or does not know the model
│   ├── ModelBusy           model_busy           the provider limits requests; retries failed
│   ├── ModelUnreachable    model_unreachable    no connection to the provider, or it was lost
│   └── ContextTooLong      context_too_long     the conversation does not fit the context window
└── StoreError              store_error          the store failed
    ├── StoreUnavailable    store_unavailable    the store cannot be opened or reached
    ├── StoreFull           store_full           the disk is full, or a limit of the store is reached
    ├── StoreDamaged        store_damaged        the file is damaged or not a store
    └── SchemaTooNew        schema_too_new       changed by a newer version of Hitherto
"""

from __future__ import annotations

from collections.abc import Iterator


def install_advice(what: str, extra: str) -> str:
    """The message for a missing package: what needs it, and the command that installs it."""
    return f"{what} needs more packages: pip install 'hitherto[{extra}]'"


class HithertoError(Exception):
    """The root of the tree. `code` is stable and documented; the message is for people."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(HithertoError):
    """The request is invalid; nothing was changed."""

    code = "invalid_input"


class InvalidCwd(InvalidInput):
    """A working directory must be an absolute path."""

    code = "invalid_cwd"


class InvalidCursor(InvalidInput):
    """The cursor was altered, or belongs to another owner or filter."""

    code = "invalid_cursor"


class InvalidLimit(InvalidInput):
    """A limit below 1 or above the documented maximum."""

    code = "invalid_limit"


class InvalidKey(InvalidInput):
    """A session key with invalid syntax."""

    code = "invalid_key"


class InvalidQuery(InvalidInput):
    """A search with a field that does not exist, or a value that a field does not take."""

    code = "invalid_query"


class TooLarge(InvalidInput):
    """Above a documented limit."""

    code = "too_large"


class NotFound(HithertoError):
    """It does not exist or is not yours; the error does not reveal which."""

    code = "not_found"


class SessionNotFound(NotFound):
    """The caller has no session with this id."""

    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}")


class EntryNotFound(NotFound):
    """The requested view of the session has no such entry."""

    code = "entry_not_found"

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"no entry {entry_id!r} in this session")


class CheckpointNotFound(NotFound):
    """The session has no such checkpoint."""

    code = "checkpoint_not_found"

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(f"no checkpoint {checkpoint_id!r} in this session")


class BranchNotFound(NotFound):
    """The session has no such branch, or several that begin like this."""

    code = "branch_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no branch {name!r} in this session")


class StoreNotFound(NotFound):
    """There is no store at this address, and the request would not make one."""

    code = "store_not_found"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"there is no store at {place}: check the name; `hitherto sync` and `hitherto new` make a store"
        )


class OutOfReach(HithertoError):
    """The token is restricted, and this is not among what it is for. Whether it is there is not said."""

    code = "out_of_reach"


class AmbiguousId(HithertoError):
    """A short id that matches several sessions of the caller."""

    code = "ambiguous_id"

    def __init__(self, prefix: str, some: list[str]) -> None:
        super().__init__(
            f"{prefix!r} matches several sessions: {', '.join(some)} …; type more characters of the id"
        )
        self.some = some


class SearchTooBroad(HithertoError):
    """A search that would take too long."""

    code = "search_too_broad"

    def __init__(self) -> None:
        super().__init__(
            "too many messages have words like these: write more of each word before *, add a word, or search within a"
            " session"
        )


class IndexBehind(HithertoError):
    """The search index does not have all messages yet, so a search would miss some."""

    code = "index_behind"

    def __init__(self, indexed: int, total: int) -> None:
        super().__init__(
            f"the search index has {indexed} of {total} messages and titles: try again in a moment"
        )
        self.indexed, self.total = indexed, total


class Conflict(HithertoError):
    """The state is not what the caller expected."""

    code = "conflict"


class AlreadyExists(Conflict):
    """Something with this id or key already exists."""

    code = "already_exists"


class SessionDeleted(Conflict):
    """The session was deleted here, so it is not imported by accident."""

    code = "session_deleted"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r:.200} was deleted here: to import it again, use --include-deleted"
        )


class RevisionConflict(Conflict):
    """The session changed after the caller read it."""

    code = "revision_conflict"

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"the session changed: it is at revision {actual}, not {expected}; read it again")
        self.expected = expected
        self.actual = actual


class IdempotencyConflict(Conflict):
    """The idempotency key was used before with another request."""

    code = "idempotency_conflict"

    def __init__(self, key: str) -> None:
        super().__init__(f"the idempotency key {key!r} was used before with another request; use a new key")


class Busy(HithertoError):
    """A turn is running in the session. `holder` is for the log: no caller is shown whose process it is."""

    code = "busy"
    holder = ""

    def __init__(self, holder: str, age_ms: int) -> None:
        super().__init__(
            f"the session is busy: a turn has been running for {age_ms / 1000:.1f} s; try again later"
        )
        self.holder = holder
        self.age_ms = age_ms


class InboxFull(HithertoError):
    """Too many messages already wait in the session for its running turn; nothing was stored."""

    code = "inbox_full"

    def __init__(self) -> None:
        super().__init__(
            "too many messages wait in this session: try again when the running turn has ended, or cancel some"
        )


class LeaseLost(HithertoError):
    """The lease of the caller has expired, or another process has it; nothing was written."""

    code = "lease_lost"

    def __init__(self) -> None:
        super().__init__("the lease has expired or another process has it; nothing was written")


class ReadOnly(HithertoError):
    """A synced session is read-only; fork it to continue."""

    code = "read_only"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r} is read-only (synced from another agent); fork it to continue"
        )


class Interrupted(HithertoError):
    """A prompt with this idempotency key was started before and did not finish. It is not run again."""

    code = "interrupted"

    def __init__(self, key: str | None) -> None:
        named = "" if key is None else f" with idempotency key {key!r}"
        again = "" if key is None else " with another key"
        super().__init__(f"the prompt{named} was started and did not finish; send it again{again}")


class EngineError(HithertoError):
    """The model or agent failed. What was said so far is kept."""

    code = "engine_error"


class ModelMissing(EngineError):
    """No model is set, it is unknown, or its packages or key are missing; the message says what to do."""

    code = "model_missing"


class SignInRequired(ModelMissing):
    """No model is set, or it has no key: what the user gets by signing in. Its code is that of `ModelMissing`."""


class ModelRefused(EngineError):
    """The provider rejected the key or does not know the model."""

    code = "model_refused"


class ModelBusy(EngineError):
    """The provider limits requests; retries failed."""

    code = "model_busy"


class ModelUnreachable(EngineError):
    """There was no connection to the provider, or it was lost."""

    code = "model_unreachable"


class ContextTooLong(EngineError):
    """The conversation does not fit the context window of the model."""

    code = "context_too_long"


class StoreError(HithertoError):
    """The store failed."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""

    code = "store_unavailable"


class StoreFull(StoreError):
    """The disk is full, or a limit of the store is reached."""

    code = "store_full"


class StoreDamaged(StoreError):
    """The file is damaged or not a store."""

    code = "store_damaged"


class SchemaTooNew(StoreError):
    """A newer version of Hitherto has changed the store so that this one may not write to it any more; install that."""

    code = "schema_too_new"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the store has schema {found}, which this version must not write to: it supports only up to {known}; install a"
            " newer Hitherto"
        )


def error_from(code: str, message: str) -> HithertoError | None:
    """The error of a code, with a message that it had elsewhere; None if the code is unknown."""
    kind = next((each for each in _tree(HithertoError) if each.code == code), None)
    if kind is None:
        return None
    error = kind.__new__(kind)
    HithertoError.__init__(error, message)
    return error


def _tree(kind: type[HithertoError]) -> Iterator[type[HithertoError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)
