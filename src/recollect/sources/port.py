"""The port of sources: an agent's own files, in which its sessions lie. The docstrings are the contract.

A source finds sessions for about one `stat` each and reads one when it has changed. It never changes a file, follows no
links, and does not write beside what it reads. What it cannot understand it keeps raw and counts; damage costs the
damaged records only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from recollect.model import Entry, Session
from recollect.ports import RawCopy
from recollect.service import Imported
from recollect.service.boundaries import Summarised

WITHIN = "#"
"""Stands in a key between a database and a session in it."""
Stamp = tuple[int, ...]
"""Numbers that change when a session does: of a file its device, inode, size and time; of a row when it was changed."""


class Found(msgspec.Struct, frozen=True, gc=False):
    """A session that was found, of which there may be very many: by `key` it is known again, and while `stamp` is the same it has not changed. It was
    changed last at `at`, in ms. `where` is the source's own. Reading all of it takes about `size` bytes.

    A database that cannot be read is found as a whole, without a stamp: its sessions are not gone, and reading it tells
    why it cannot be."""

    source: Source
    key: str
    stamp: Stamp
    at: int
    where: Any
    size: int = 0


class Known(NamedTuple):
    """A session as it was when it was last read, and what the source wanted to know again."""

    stamp: Stamp
    state: bytes


class Reading(NamedTuple):
    """What was read of a session, as `Sessions.take_in` takes it.

    `total` is how many entries the session has; one without any is not taken in. `state` comes back with the next
    reading. `size` is how many bytes were parsed; `damaged` and `unknown` count records.
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


class Source(Protocol):
    """An agent's sessions on this machine. Its name is what `Session.source` says, and how their ids begin."""

    @property
    def name(self) -> str:
        """A word in small letters."""

    def folders(self) -> Sequence[Path]:
        """Where they lie, whether that is there or not; what is watched for changes."""

    def find(self) -> Iterator[Found]:
        """All of them."""

    def read(self, found: Found, known: Known | None) -> Reading:
        """One of them. With `known`, what is new may be enough. Raises `OSError` or `ValueError` if it cannot be read."""

    def resume(self, session: Session) -> Sequence[str] | None:
        """The command with which the agent goes on with a session in its folder; None if it cannot."""

    def home_of(self, session: Session) -> Path | None:
        """The file that a session was read from, if it is one that may be written back where it was."""
