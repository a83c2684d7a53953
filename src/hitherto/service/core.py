"""What every room of the service uses: the store, a clock, new ids, and the rules of where sessions are kept."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar, cast

import msgspec
from msgspec.structs import replace

from hitherto.errors import InvalidInput, StoreError
from hitherto.model import Principal, Session
from hitherto.ports import Ahead, Reader, Record, Store, Writer
from hitherto.summariser import CompactionPolicy
from hitherto.values.keys import is_ephemeral

T = TypeVar("T")
log = logging.getLogger(__name__)
Operation = Literal["forked", "restarted", "searched", "added to memory", "synced"]
"""What some sessions, the ephemeral ones, do not allow."""


async def clean_afterwards(cleaning: Awaitable[object]) -> None:
    """Clean up behind what was deleted or erased. That is done: what fails here is left to the next cleaning."""
    try:
        await cleaning
    except StoreError as error:
        log.warning(
            "it is gone, but its bytes may stay in the files until the next cleaning: %s", error.message
        )


class Home(Protocol):
    """Where sessions are kept, and what that permits."""

    @property
    def remembers(self) -> bool:
        """Whether facts are drawn from what is said here."""

    def keeps(self, name: str) -> bool:
        """Whether a session of this key or id would be kept here."""

    def id_for(self, key: str | None) -> str | None:
        """The id of a new session with this key, if it must have a certain one."""

    def check_session(self, session: Session) -> None:
        """Raise unless a session of this id and key may be kept here."""

    def check_space(self, record: Record) -> None:
        """Raise `StoreFull` if no more may be said in the session."""

    def check_allowed(self, operation: Operation) -> None:
        """Raise `InvalidInput` if this cannot be done with the sessions here."""

    async def created(self, core: Core, who: Principal) -> None:
        """A session was made; `core` is what it was made over."""

    async def appended(self, core: Core, who: Principal, size: int) -> None:
        """So many bytes were appended, over `core`."""


class StoredHome:
    """Stored sessions: everything is allowed, without a limit of their number."""

    remembers = True

    def keeps(self, name: str) -> bool:
        return not is_ephemeral(name)

    def id_for(self, key: str | None) -> str | None:  # noqa: ARG002
        return None

    def check_session(self, session: Session) -> None:
        if is_ephemeral(session.id) or is_ephemeral(session.key):
            raise InvalidInput(f"{session.key or session.id!r} is ephemeral and is never stored")

    def check_space(self, record: Record) -> None: ...

    def check_allowed(self, operation: Operation) -> None: ...

    async def created(self, core: Core, who: Principal) -> None: ...

    async def appended(self, core: Core, who: Principal, size: int) -> None: ...


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """What a room is given. `compaction` is the default compaction policy.

    `store` may be a single transaction; `aside` is always the store itself, for what is written apart from it.
    """

    store: Store
    aside: Store
    now: Callable[[], int]
    new_id: Callable[[], str]
    home: Home
    compaction: CompactionPolicy

    def over(self, store: Store) -> Core:
        """The same over another store."""
        return replace(self, store=store)

    def within(self, tx: Writer) -> Core:
        """The same, all of whose calls are part of this transaction."""
        return self.over(cast("Store", _Transaction(tx, self.store.secret)))


class _Transaction:
    """A store that is one transaction."""

    def __init__(self, tx: Writer, secret: bytes) -> None:
        self._tx, self.secret = tx, secret

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:  # noqa: ARG002
        return await work(self._tx)

    async def write(
        self,
        work: Callable[[Writer], Awaitable[T]],
        about: str | None = None,  # noqa: ARG002 - it is being written already
    ) -> T:
        return await work(self._tx)


def whole(tx: Writer) -> Writer:
    """The transaction itself, where somebody is shown only a part: for what has to be done everywhere."""
    return cast("Writer", getattr(tx, "whole", tx))


class Room:
    """Calls that belong together. Every call of the service is one of a room."""

    def __init__(self, core: Core) -> None:
        self._core, self._store, self._now, self._new_id = core, core.store, core.now, core.new_id
