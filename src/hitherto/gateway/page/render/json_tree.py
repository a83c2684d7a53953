"""A JSON value as a tree that can be folded: bounded in depth, in breadth and in what a leaf shows. Pure."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, NamedTuple

from hitherto.clean_text import clean, clean_lines

DEPTH, BREADTH, NODES = 6, 100, 400
LEAF_CHARS = 4_000


class Node(NamedTuple):
    """A value under its name. `items` of a leaf is None; `more` counts what is left out."""

    name: str
    text: str = ""
    kind: str = ""
    items: tuple[Node, ...] | None = None
    more: int = 0


class _Budget:
    def __init__(self, nodes: int) -> None:
        self.left = nodes


def tree(value: Any, name: str = "") -> Node:
    """The value as a tree."""
    return _node(name, value, DEPTH, _Budget(NODES))


def _node(name: str, value: Any, depth: int, budget: _Budget) -> Node:
    budget.left -= 1
    named = clean(name[:200])
    match value:
        case dict():
            inner = [(str(key), each) for key, each in islice(value.items(), BREADTH)]
            return _branch(named, inner, len(value), "{}", depth, budget)
        case list() | tuple():
            inner = [(str(number), each) for number, each in enumerate(value[:BREADTH])]
            return _branch(named, inner, len(value), "[]", depth, budget)
        case str():
            more = max(0, len(value) - LEAF_CHARS)
            return Node(named, clean_lines(value[:LEAF_CHARS]), "text", more=more)
    return Node(named, json.dumps(value, default=str)[:100], "plain")


def _branch(
    name: str, inner: list[tuple[str, Any]], size: int, sign: str, depth: int, budget: _Budget
) -> Node:
    items: list[Node] = []
    for key, value in inner if depth else ():
        if budget.left <= 0:
            break
        items.append(_node(key, value, depth - 1, budget))
    return Node(name, f"{sign[0]} {size} {sign[1]}", "branch", tuple(items), size - len(items))
