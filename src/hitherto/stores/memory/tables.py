"""What the store in memory is made of: dicts for each owner, and a journal that can undo every change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from hitherto.edits.batches import EditBatch
from hitherto.model import Account, Change, Checkpoint, Fact, Pending, Token
from hitherto.ports import ListKey, Memo, RawCopy, Record, SearchKey, Totals
from hitherto.values.spans import EntryPlace, Spans
from hitherto.values.usage.requests import Request

K = TypeVar("K")
V = TypeVar("V")
MISSING: Any = object()


class Ordered(dict[K, V]):
    """A dict that also knows the order of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[Any] = []

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self:
            insort(self._keys, key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        del self._keys[bisect_left(self._keys, key)]

    def rising(self, after: K) -> Iterator[tuple[K, V]]:
        """Keys and values from strictly above `after`, in rising order."""
        for index in range(bisect_right(self._keys, after), len(self._keys)):
            yield self._keys[index], self[self._keys[index]]

    def falling(self, below: K | None) -> Iterator[tuple[K, V]]:
        """Keys and values from strictly below `below` (None: from the top), in falling order."""
        end = len(self._keys) if below is None else bisect_left(self._keys, below)
        for index in range(end - 1, -1, -1):
            yield self._keys[index], self[self._keys[index]]


class Journal:
    """Changes dicts, and remembers how each was."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return bool(self._undo)

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set a key."""
        self._remember(table, key)
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Remove a key, if it is there."""
        if key in table:
            self._remember(table, key)
            del table[key]

    def next(self, counters: dict[K, int], key: K) -> int:
        """The next number of a counter."""
        number = counters.get(key, 0) + 1
        self.put(counters, key, number)
        return number

    def undo(self) -> None:
        """Take everything back, the newest change first."""
        while self._undo:
            self._undo.pop()()

    def _remember(self, table: dict[K, V], key: K) -> None:
        old = table.get(key, MISSING)

        def restore() -> None:
            if old is MISSING:
                del table[key]
            else:
                table[key] = old

        self._undo.append(restore)


class Document(NamedTuple):
    """What a search can find: an entry (`place`), or the titles of the session `num`."""

    kind: str
    num: int
    place: EntryPlace | None
    tokens: tuple[str, ...]


class Kept(NamedTuple):
    """An entry of a log; `document` is None once it has been erased."""

    id: str
    payload: bytes
    document: SearchKey | None


class Tombstone(NamedTuple):
    """What is left of a session that was deleted."""

    num: int
    at: int
    change: int


@dataclass(slots=True)
class Log:
    """A log's entries by `seq`, their ids, and the running sums, which outlive entries that were collected."""

    entries: dict[int, Kept] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    sums: dict[int, Totals] = field(default_factory=dict)


@dataclass(slots=True)
class OwnerTables:
    """Everything of one owner. Nothing here refers to another owner."""

    sessions: dict[int, Record] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    # Texts compare by code point, which is also the order of their UTF-8 bytes.
    order: Ordered[ListKey, int] = field(default_factory=Ordered)
    feed: Ordered[int, Change] = field(default_factory=Ordered)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    # By session id: the marks of what was erased, and when.
    erased: dict[str, dict[str, int]] = field(default_factory=dict)
    logs: dict[int, Log] = field(default_factory=dict)
    garbage: dict[int, None] = field(default_factory=dict)
    spans: dict[int, dict[str, Spans]] = field(default_factory=dict)
    # For each log, the span lists (session, name) that have a span over it.
    over: defaultdict[int, dict[tuple[int, str], None]] = field(default_factory=lambda: defaultdict(dict))
    checkpoints: dict[int, tuple[Checkpoint, ...]] = field(default_factory=dict)
    documents: Ordered[SearchKey, Document] = field(default_factory=Ordered)
    titles: dict[int, SearchKey] = field(default_factory=dict)
    memos: dict[tuple[str, str], Memo] = field(default_factory=dict)
    live: dict[int, bytes] = field(default_factory=dict)
    inbox: dict[int, tuple[Pending, ...]] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    raw_copies: dict[int, dict[str, RawCopy]] = field(default_factory=dict)
    links: dict[Account, Account] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    # By log and first entry; and the logs whose edits must be read again.
    edits: dict[tuple[int, int], EditBatch] = field(default_factory=dict)
    edits_due: dict[int, None] = field(default_factory=dict)
    # Requests that were counted, by log and place, and up to where each log is.
    requests: dict[tuple[int, int], Request] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    # By session: what it had used at a revision.
    usage: dict[int, tuple[int, bytes]] = field(default_factory=dict)


@dataclass(slots=True)
class Tables:
    """The tables of all owners, the counters (`newest` is the change number of each owner), and tokens by their digest."""

    owners: dict[str, OwnerTables] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    tokens: dict[bytes, Token] = field(default_factory=dict)
    # How often the secret of a token was replaced.
    rotations: dict[str, int] = field(default_factory=dict)
    # By owner and number: chats of which nothing but this is known.
    silent_since: dict[tuple[str, int], int] = field(default_factory=dict)
    # By name: who has the duty, and until when.
    duties: dict[str, tuple[str, int]] = field(default_factory=dict)
