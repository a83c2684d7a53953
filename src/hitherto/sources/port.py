"""The port of sources: reading the sessions in an agent's own files. The docstrings are the contract.

A source finds sessions with about one `stat` each, and reads a session when it has changed. It never changes a file,
follows no links, and writes nothing beside what it reads. It keeps unknown records raw and counts them. Damage costs
only the damaged records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from hitherto.model import Entry, Session
from hitherto.ports import RawCopy
from hitherto.service import Imported
from hitherto.service.compaction.imported import Branch, Summarised

T = TypeVar("T")
WITHIN = "#"
"""Separates a database from a session in it, in a key."""
SHELL = ("sh", "-c")
"""The beginning of a command that needs a shell; a line for the shell follows."""
Stamp = tuple[int | None, ...]
"""Numbers that change with a session: a file's device, inode, size and time; a row's time of change. None stands for a
number that cannot be read at the moment: it counts as unchanged."""


class FoundSession(msgspec.Struct, frozen=True, gc=False):
    """A session that was found. `key` identifies it, and while `stamp` is the same it has not changed. It last changed at
    `at`, in ms. `where` belongs to the source: see `where_as`. Reading all of it takes about `size` bytes. Copies of a
    session have the same `identity`; a session without one has no copies.

    A database or folder that cannot be read is found as a whole, without a stamp: its sessions do not count as gone, and
    reading it reports the reason."""

    source: Source
    key: str
    stamp: Stamp
    at: int
    where: object
    size: int = 0
    identity: str = ""

    def where_as(self, kind: type[T]) -> T:
        """`where`, with the type that the source gave it. `TypeError` if it has another type."""
        if not isinstance(self.where, kind):
            raise TypeError(f"{self.key} is a {type(self.where).__name__}, not a {kind.__name__}")
        return self.where

    def contains(self, key: str) -> bool:
        """Whether this folder or database contains the session of this key."""
        return key.startswith((f"{self.key}/", f"{self.key}{WITHIN}"))


def found_unreadable(source: Source, unreadable: Iterable[Unreadable]) -> Iterator[FoundSession]:
    """Folders of a source that could not be read, as found sessions without a stamp."""
    return (FoundSession(source, each.where, (), 0, each) for each in unreadable)


class Known(NamedTuple):
    """What is known of a session from its last reading: its stamp then, and the state that the source returned."""

    stamp: tuple[int, ...]
    state: bytes


class Census(NamedTuple):
    """What became of the records of a session: how many are shown, as messages or parts of them, and how many of each kind are
    read and deliberately not shown. Every intact record is one or the other; one of an unknown kind is shown as it is."""

    shown: int = 0
    left_out: Mapping[str, int] = {}


class Reading(NamedTuple):
    """What was read of a session, for `Transfer.sync`.

    `entries` are those of the conversation, then those of the `branches` beside it. `total` is how many entries the
    session has; an empty session is not imported. The next reading gets `state` back.
    `size` is how many bytes were parsed; `damaged`, `unknown` and `census` count records. `waits_for` is the identity of a session
    that this one needs to be complete: when that is found, this one is read again.
    """

    imported: Imported
    entries: Sequence[Entry]
    total: int
    state: bytes = b""
    extends: bool = False
    amended: Entry | None = None
    compactions: Sequence[Summarised] = ()
    branches: Sequence[Branch] = ()
    raw: Sequence[RawCopy] = ()
    size: int = 0
    damaged: int = 0
    unknown: Mapping[str, int] = {}
    census: Census = Census()
    waits_for: str = ""


class Source(Protocol):
    """An agent's sessions on this machine. `Session.source` is its name, and their ids begin with it."""

    @property
    def name(self) -> str:
        """One lower-case word."""

    @property
    def version(self) -> int:
        """Raised when the same files give other sessions than before: all of them are then read once more."""

    def folders(self) -> Sequence[Path]:
        """The folders with the sessions, existing or not; sync watches them for changes."""

    def beside(self) -> Sequence[Path]:
        """Existing files elsewhere that describe sessions; sync watches them too."""

    def find(self) -> Iterator[FoundSession]:
        """Find all sessions."""

    def read(self, found: FoundSession, known: Known | None) -> Reading:
        """Read a session, or with `known` only what is new in it. Raises `OSError` or `ValueError` if it cannot be read."""

    def resume(self, session: Session) -> Sequence[str] | None:
        """The command that resumes a session, run in its folder; None if the agent cannot."""

    def restorable_path(self, session: Session) -> Path | None:
        """The file that a session was read from, if it can be restored."""


class Unreadable(msgspec.Struct, frozen=True):
    """A folder that could not be read completely, and why."""

    where: str
    reason: str
