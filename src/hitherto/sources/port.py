"""The port of sources: an agent's own files, in which its sessions lie. The docstrings are the contract.

A source finds sessions for about one `stat` each and reads one when it has changed. It never changes a file, follows no
links, and does not write beside what it reads. What it cannot understand it keeps raw and counts; damage costs the
damaged records only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from hitherto.model import Entry, Session
from hitherto.ports import RawCopy
from hitherto.service import Imported
from hitherto.service.compaction.imported import Summarised

T = TypeVar("T")
WITHIN = "#"
"""Stands in a key between a database and a session in it."""
SHELL = ("sh", "-c")
"""How a command begins that is more than one: a line for a shell is behind it."""
Stamp = tuple[int | None, ...]
"""Numbers that change when a session does: of a file its device, inode, size and time; of a row when it was changed. None
stands for one that cannot be told just now: it is taken to be what it was."""


class Found(msgspec.Struct, frozen=True, gc=False):
    """A session that was found: by `key` it is known again, and while `stamp` is the same it has not changed. It was
    changed last at `at`, in ms. `where` is the source's own: see `where_as`. Reading all of it takes about `size` bytes. Copies of one
    session have the same `identity`; what has none is like no other.

    A database or a folder that cannot be read is found as a whole, without a stamp: its sessions are not gone, and reading
    it tells why it cannot be."""

    source: Source
    key: str
    stamp: Stamp
    at: int
    where: object
    size: int = 0
    identity: str = ""

    def where_as(self, kind: type[T]) -> T:
        """`where`, to the source that knows what it has put there. `TypeError` if it is nothing of this kind."""
        if not isinstance(self.where, kind):
            raise TypeError(f"{self.key} is a {type(self.where).__name__}, not a {kind.__name__}")
        return self.where

    def holds(self, key: str) -> bool:
        """Whether something of this key lies in this folder or database."""
        return key.startswith((f"{self.key}/", f"{self.key}{WITHIN}"))


def found_unreadable(source: Source, unreadable: Iterable[Unreadable]) -> Iterator[Found]:
    """Folders of a source that could not be read, as they are found."""
    return (Found(source, each.where, (), 0, each) for each in unreadable)


class Known(NamedTuple):
    """A session as it was when it was last read, and what the source wanted to know again."""

    stamp: tuple[int, ...]
    state: bytes


class Reading(NamedTuple):
    """What was read of a session, as `Transfer.sync` takes it.

    `total` is how many entries the session has; one without any is not taken in. `state` comes back with the next
    reading. `size` is how many bytes were parsed; `damaged` and `unknown` count records. `waits_for` is the identity of a
    session without which this one is not whole: when that is found, this one is read again.
    """

    imported: Imported
    entries: Sequence[Entry]
    total: int
    state: bytes = b""
    extends: bool = False
    amended: Entry | None = None
    compactions: Sequence[Summarised] = ()
    raw: Sequence[RawCopy] = ()
    size: int = 0
    damaged: int = 0
    unknown: Mapping[str, int] = {}
    waits_for: str = ""


class Source(Protocol):
    """An agent's sessions on this machine. Its name is what `Session.source` says, and how their ids begin."""

    @property
    def name(self) -> str:
        """A word in small letters."""

    def folders(self) -> Sequence[Path]:
        """Where they lie, whether that is there or not; what is watched for changes."""

    def beside(self) -> Sequence[Path]:
        """Files elsewhere in which something is told of them, those that are there now; they are watched too."""

    def find(self) -> Iterator[Found]:
        """All of them."""

    def read(self, found: Found, known: Known | None) -> Reading:
        """One of them. With `known`, what is new may be enough. Raises `OSError` or `ValueError` if it cannot be read."""

    def resume(self, session: Session) -> Sequence[str] | None:
        """The command with which the agent goes on with a session in its folder; None if it cannot."""

    def restorable_path(self, session: Session) -> Path | None:
        """The file that a session was read from, if it is one that may be written back where it was."""


class Unreadable(msgspec.Struct, frozen=True):
    """A folder that could not be read, or not to its end, and why."""

    where: str
    reason: str
