"""Which records of a transcript are its conversation. Pure.

Each record names its parent; edits and retries make branches, tools that run at the same time make side shoots. A
*node* is a record that is linked, in the order of the file; a parent always stands before its child, so nothing here
can go round in circles.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec

from hitherto.sources.claude_records import Record, ResultBlock


class Kind(IntEnum):
    """What a node is to the conversation. Up to `BLOCK`: a message, which decides about the branch."""

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


def kind_of(record: Record) -> Kind:
    """What this record is to the conversation."""
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
