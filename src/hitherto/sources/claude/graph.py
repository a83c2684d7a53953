"""Which records of a growing transcript are the conversation, for sync: all that was said on the branch to resume, and the
other branches beside it. Pure.

New records are linked to a *window* that is kept of the records read before: the end of the conversation, where a new
record almost always finds its parent. What the window cannot decide is not guessed: `RebuildNeeded` says that the whole
file must be read. To make that exact, four bytes of every linked uuid are kept (1/500 of a usual file): they tell a
missing parent from one outside the window, and a repeated record from a new one.

`hitherto.claude.tree` chooses a conversation too, with another contract: docs/claude.md, "Which messages are the
conversation", states the differences, and a test holds them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec

from hitherto.model import Value
from hitherto.sources.claude.records import CompactMetadata, Record, ResultBlock

SIGHT = 32
"""How many nodes of the spine the window holds."""
# A chain of compactions, each keeping what the one before it kept, is followed no further.
_COMPACTIONS = 64
# Stands for the uuid of a node that a compaction has moved: what follows it is for a whole reading to decide.
_HIDDEN = ""
_NONE = -1
_UNSEEN = -2


class RebuildNeeded(Exception):
    """The new records change what was read before, or may do so."""


class Window(Value, frozen=True):
    """The end of the conversation, in which new records find their parents.

    `nodes` are those of the conversation that descend from the first of them, `answer` what that one belongs to.
    `newest` is the message that decided (or the first node, if that is farther up), `decides` whether no message of
    the file is newer, `tip` where the spine ends. `last` is what a record without its parent follows (-1: nothing,
    -2: it is not in the window). `leaf` is the leaf that the program named last, if there was such a node, and
    `leaf_at` the node in the window that it is or that descends from it. `seen` holds a checksum of each uuid.
    """

    nodes: tuple[Node, ...] = ()
    answer: str | None = None
    newest: int = 0
    tip: int = 0
    decides: bool = True
    last: int = _NONE
    leaf: str | None = None
    leaf_at: int = 0
    seen: bytes = b""


class Linked:
    """New records linked to a window; `new` are those of the conversation, in order."""

    def __init__(self, window: Window, records: Sequence[Record], leaf: str | None) -> None:
        self._window = window
        self._nodes = list(window.nodes)
        self._old = len(window.nodes)
        self._index = {node.uuid: number for number, node in enumerate(window.nodes) if node.uuid != _HIDDEN}
        self._seen = set(struct.unpack(f"<{len(window.seen) // 4}I", window.seen))
        self._kept: dict[str, tuple[str | None, int]] = {}
        self._records: list[int] = []
        self._last = window.last
        for number, record in enumerate(records):
            self._add(number, record)
        self._leaf, self._leaf_at = self._place(leaf)
        self._choice = self._choose()

    @property
    def new(self) -> list[int]:
        """The new records of the conversation, by number, in order."""
        chosen = self._choice.chosen
        return [record for place, record in enumerate(self._records, self._old) if chosen[place]]

    @property
    def aside(self) -> list[Aside]:
        """The other branches, by numbers of records, each after those that it may leave. Only a whole reading has any."""
        branches = [] if self._old else branches_beside(self._nodes, self._choice)
        return [
            Aside(
                records=[self._records[node] for node in branch],
                ancestors=(self._records[node] for node in _ancestors(self._nodes, branch[0])),
            )
            for branch in branches
        ]

    def has(self, uuid: str) -> bool:
        """Whether there is a node with this uuid, in the window or before it."""
        return uuid in self._index or _checksum(uuid) in self._seen

    def _add(self, number: int, record: Record) -> None:
        uuid = record.uuid or ""
        place = self._index.get(uuid)
        kind = kind_of(record)
        response = _response(record) if kind is Kind.BLOCK else None
        if self._seen and _checksum(uuid) in self._seen:
            raise RebuildNeeded
        if place is not None:
            # Written again: it keeps its place and has its newest content.
            self._records[place - self._old] = number
            self._nodes[place].kind, self._nodes[place].response = kind, response
            return
        parent = self._parent(record, kind)
        place = self._index[uuid] = len(self._nodes)
        self._nodes.append(Node(uuid, parent, kind, response))
        if self._last == _NONE or kind is not Kind.HANGING:
            self._last = place
        self._records.append(number)
        if kind is Kind.BOUNDARY:
            self._keep(record, place)

    def _parent(self, record: Record, kind: Kind) -> int:
        """The node that a record follows; a record whose parent is missing follows the last message before it."""
        named = record.parent_uuid
        if named is None and kind is Kind.RESULT:
            named = record.source_tool_assistant
        if kind is Kind.BOUNDARY:
            named = named or record.logical_parent_uuid or ""
        if named is None:
            return -1
        named, instead = self._after_compaction(named)
        place = self._index.get(named, instead)
        if place is not None:
            return place if kind is not Kind.BOUNDARY else self._end_of_compacted(record, place)
        if self._last == _UNSEEN or _checksum(named) in self._seen:
            raise RebuildNeeded
        return self._last

    def _end_of_compacted(self, boundary: Record, parent: int) -> int:
        """The last node of what a compaction was made of. A partial one names a node in its middle as its parent: the last
        that it summarised, if it keeps the end, or the last that it kept, if it keeps the beginning."""
        anchor, kept = kept_by(boundary.compact_metadata)
        if not kept or (anchor != boundary.uuid and self._index.get(kept[-1]) == parent):
            return parent
        if self._old:
            raise RebuildNeeded
        below = _below(self._nodes, parent)
        if anchor == boundary.uuid:
            ends = [node for node in range(parent, len(below)) if below[node] and self._is_message(node)]
        else:
            ends = [at for uuid in kept if (at := self._index.get(uuid, -1)) >= 0 and below[at]]
        return max(ends, default=parent)

    def _is_message(self, number: int) -> bool:
        return self._nodes[number].kind <= Kind.BLOCK

    def _keep(self, boundary: Record, place: int) -> None:
        """Note what a compaction kept: from then on it follows the summary."""
        anchor, kept = kept_by(boundary.compact_metadata)
        for uuid in kept:
            if uuid != anchor and self.has(uuid):
                self._kept[uuid] = (anchor, place)

    def _after_compaction(self, named: str) -> tuple[str, int | None]:
        """The node that follows from a compaction that kept `named`, and which one if that is not there."""
        boundary: int | None = None
        for _ in range(_COMPACTIONS):
            if named not in self._kept:
                break
            anchor, boundary = self._kept[named]
            named = anchor or ""
        return named, boundary

    def _choose(self) -> Choice:
        """The conversation, if it continues from the window."""
        window = self._window
        choice = choose(self._nodes, self._leaf_at, window.answer)
        if not all(choice.chosen[: self._old]):
            raise RebuildNeeded
        if choice.newest < self._old and not self._is_certain(choice):
            raise RebuildNeeded
        if self._old and any(
            not choice.chosen[number] and self._nodes[number].kind is not Kind.HANGING
            for number in range(self._old, len(self._nodes))
        ):
            raise RebuildNeeded  # another branch grows, and only a whole reading finds where
        return choice

    def _is_certain(self, choice: Choice) -> bool:
        """Whether nothing out of sight could have decided instead of a node that was known before."""
        window = self._window
        if choice.newest == window.newest:
            return window.decides or self._leaf == window.leaf
        # The leaf is named only now and hangs from what decided before, with no message behind it.
        last = choice.spine[-1]
        return window.decides and choice.newest > window.newest and (last == window.tip or last >= self._old)

    def _place(self, leaf: str | None) -> tuple[str | None, int | None]:
        """The named leaf and where it is; None and None if there is no such node."""
        if leaf is None:
            return None, None
        place = self._index.get(leaf)
        if place is None and leaf == self._window.leaf:
            place = self._window.leaf_at
        if place is None and _checksum(leaf) in self._seen:
            raise RebuildNeeded
        return (None, None) if place is None else (leaf, place)

    def window(self) -> Window:
        """The window for the next records."""
        nodes, choice = self._nodes, self._choice
        if not nodes:
            return self._window
        top = choice.spine[-SIGHT] if len(choice.spine) > SIGHT else choice.spine[0]
        kept: dict[int, int] = {}
        for number in range(top, len(nodes)):
            if choice.chosen[number] and (number == top or nodes[number].parent in kept):
                kept[number] = len(kept)
        sums = [_checksum(node.uuid) for node in nodes[self._old :]]
        seen = self._window.seen + struct.pack(f"<{len(sums)}I", *sums)
        return Window(
            nodes=tuple(self._moved(nodes[number], kept) for number in kept),
            answer=choice.answers[top],
            newest=kept.get(choice.newest, 0),
            tip=kept[choice.spine[-1]],
            decides=self._decides(),
            last=kept.get(self._last, _UNSEEN),
            leaf=self._leaf,
            leaf_at=kept.get(self._leaf_at or 0, 0),
            seen=seen,
        )

    def _moved(self, node: Node, kept: dict[int, int]) -> Node:
        uuid = _HIDDEN if node.uuid in self._kept else node.uuid
        return Node(uuid, kept.get(node.parent, -1), node.kind, node.response)

    def _decides(self) -> bool:
        """Whether no message of the file is newer than what decided."""
        newest = self._choice.newest
        if any(node.kind <= Kind.BLOCK for node in self._nodes[max(newest + 1, self._old) :]):
            return False
        return newest >= self._old or self._window.decides


def kept_by(said: CompactMetadata | None) -> tuple[str | None, list[str]]:
    """The record behind which a compaction puts what it kept, and the uuids of that, in order."""
    uuids: tuple[str | None, ...] = ()
    anchor = None
    if said is not None and said.preserved_segment is not None:
        anchor, uuids = said.preserved_segment.anchor_uuid, (said.preserved_segment.tail_uuid,)
    if said is not None and said.preserved_messages is not None:
        kept = said.preserved_messages
        anchor, uuids = kept.anchor_uuid or anchor, (*uuids, *kept.uuids, *kept.all_uuids)
    return anchor, [uuid for uuid in uuids if uuid is not None]


def _response(record: Record) -> str:
    """The id that the blocks of one answer share."""
    return (record.message.id if record.message else None) or record.uuid or ""


def _checksum(uuid: str) -> int:
    return zlib.crc32(uuid.encode("utf-8", "surrogatepass"))


class Kind(IntEnum):
    """The role of a node in the conversation. Kinds up to `BLOCK` are messages, which decide about the branch."""

    MESSAGE = 0
    RESULT = 1
    BLOCK = 2
    NOTE = 3
    HANGING = 4
    BOUNDARY = 5


class Node(msgspec.Struct, gc=False, array_like=True):
    """A linked record: `parent` is the number of another node, -1 for none. `response` groups blocks of one answer."""

    uuid: str
    parent: int
    kind: Kind
    response: str | None = None


class Choice(NamedTuple):
    """The conversation: for each node whether it belongs to it, and to which answer.

    `newest` is the message that decided, `spine` the nodes from the first to the last that hangs from it.
    """

    chosen: bytearray
    answers: list[str | None]
    newest: int
    spine: list[int]


class Aside(NamedTuple):
    """A branch beside the conversation: its own records, and those that lead to it, from the nearest on."""

    records: list[int]
    ancestors: Iterator[int]


def kind_of(record: Record) -> Kind:
    """The role of a record in the conversation."""
    if record.type == "assistant":
        return Kind.BLOCK
    if record.type == "user":
        if record.is_meta:
            return Kind.NOTE
        content = record.message.content if record.message else None
        answers = isinstance(content, list) and any(isinstance(block, ResultBlock) for block in content)
        return Kind.RESULT if answers else Kind.MESSAGE
    if record.type == "system" and record.subtype == "compact_boundary":
        return Kind.BOUNDARY
    return Kind.HANGING


def choose(nodes: Sequence[Node], leaf: int | None, answer: str | None = None) -> Choice:
    """The conversation that ends with the newest message below `leaf` (None: of all).

    With it come what hangs from it without being a message of another branch, and of each answer all blocks and
    results, also those of tools that ran at the same time. `answer` is the answer that a first node belongs to which
    is none of its blocks.
    """
    newest = _newest(nodes, leaf)
    spine = _spine(nodes, newest)
    chosen = bytearray(len(nodes))
    for number in spine:
        chosen[number] = 1
    return Choice(chosen, _belonging(nodes, chosen, answer), newest, spine)


def _newest(nodes: Sequence[Node], leaf: int | None) -> int:
    """The newest message that descends from `leaf`; if there is none the leaf itself, or the first node."""
    below = None if leaf is None else _below(nodes, leaf)
    for number in range(len(nodes) - 1, -1, -1):
        if nodes[number].kind <= Kind.BLOCK and (below is None or below[number]):
            return number
    return leaf or 0


def _below(nodes: Sequence[Node], top: int) -> bytearray:
    below = bytearray(len(nodes))
    below[top] = 1
    for number in range(top + 1, len(nodes)):
        parent = nodes[number].parent
        if parent >= top and below[parent]:
            below[number] = 1
    return below


def _spine(nodes: Sequence[Node], newest: int) -> list[int]:
    """From the first node to the last one that descends from `newest`."""
    spine: list[int] = []
    number = _below(nodes, newest).rindex(1) if nodes else -1
    while number >= 0:
        spine.append(number)
        number = nodes[number].parent
    return spine[::-1]


def _belonging(nodes: Sequence[Node], chosen: bytearray, answer: str | None) -> list[str | None]:
    """Adds to `chosen` what belongs to the spine; returns the answer that each chosen node belongs to."""
    answers: list[str | None] = [None] * len(nodes)
    for number, node in enumerate(nodes):
        kind, parent = node.kind, node.parent
        if not chosen[number]:
            if parent < 0 or not chosen[parent] or not _joins(node, answers[parent]):
                continue
            chosen[number] = 1
        if kind == Kind.BLOCK:
            answers[number] = node.response
        elif kind in (Kind.RESULT, Kind.HANGING, Kind.NOTE):
            answers[number] = answers[parent] if parent >= 0 else answer
    return answers


def _joins(node: Node, answer: str | None) -> bool:
    """Whether a node beside the spine belongs to what it hangs from."""
    match node.kind:
        case Kind.HANGING:
            return True
        case Kind.BLOCK:
            return answer is not None and node.response == answer
        case Kind.RESULT | Kind.NOTE:
            return answer is not None
    return False


def branches_beside(nodes: Sequence[Node], choice: Choice) -> list[list[int]]:
    """All nodes that the conversation leaves out, as branches, each in order, by their first nodes.

    A branch follows from each node the newest thing that was said below it; with it come, as in a conversation, what
    hangs from it and all of each answer.
    """
    chosen, answers = choice.chosen, list(choice.answers)
    newest = _newest_below(nodes, chosen)
    branch_of: dict[int, int] = {}
    branches: list[list[int]] = []
    for number, node in enumerate(nodes):
        if chosen[number]:
            continue
        parent = node.parent
        inherited = answers[parent] if parent >= 0 else None
        answers[number] = node.response if node.kind == Kind.BLOCK else inherited
        if node.kind in (Kind.MESSAGE, Kind.BOUNDARY):
            answers[number] = None
        beside = branch_of.get(parent)
        if beside is not None and (newest[number] == newest[parent] or _joins(node, inherited)):
            branch_of[number] = beside
            branches[beside].append(number)
        else:
            branch_of[number] = len(branches)
            branches.append([number])
    return branches


def _newest_below(nodes: Sequence[Node], chosen: bytearray) -> list[int]:
    """Of each node beside the conversation, the newest one below it, or itself, that does not only hang there."""
    newest = [-1] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        if chosen[number]:
            continue
        if newest[number] < 0 and nodes[number].kind != Kind.HANGING:
            newest[number] = number
        parent = nodes[number].parent
        if parent >= 0:
            newest[parent] = max(newest[parent], newest[number])
    return newest


def _ancestors(nodes: Sequence[Node], number: int) -> Iterator[int]:
    while (number := nodes[number].parent) >= 0:
        yield number
