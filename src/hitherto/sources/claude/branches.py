"""The branches of a transcript beside the conversation, as entries: what was rewound, edited or resumed elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hitherto.model import Entry, Usage, Value
from hitherto.sources.claude.entries import Compacted, ConversationBuilder
from hitherto.sources.claude.graph import Aside
from hitherto.sources.claude.metadata import Facts, count
from hitherto.sources.claude.records import Record
from hitherto.sources.shared.usage import total

BESIDE = "beside the conversation"
"""What is counted as left out: records of the program, beside the conversation, with which nobody says anything."""


class BranchRead(Value, frozen=True):
    """A branch: its own entries. It leaves the conversation, or another branch that was read before it, after the entry
    `after`; None if it begins anew."""

    after: str | None
    entries: tuple[Entry, ...]
    compactions: tuple[Compacted, ...] = ()


class Line(NamedTuple):
    """A record and its bytes."""

    record: Record
    data: memoryview


class Beside(NamedTuple):
    """All branches, and what they tell of the session."""

    branches: tuple[BranchRead, ...]
    facts: Facts
    usage: Usage | None


def read_branches(
    aside: Iterable[Aside], line_of: Callable[[int], Line], entry_of: dict[int, str], at: int
) -> Beside:
    """The branches as entries. `entry_of` has the entry of each record that became one; those of branches are added."""
    facts, branches, spent = Facts(), list[BranchRead](), list[Usage | None]()
    for each in aside:
        builder = ConversationBuilder(facts, None, None, at)
        before = facts.copy()
        for number in each.records:
            builder.add(*line_of(number))
            if builder.newest is not None:
                entry_of[number] = builder.newest
        if all(entry.meta.get("meta") for entry in builder.entries):
            facts.shown, facts.left_out = before.shown, before.left_out
            for _ in each.records:
                count(facts.left_out, BESIDE)
            continue
        after = next((entry_of[number] for number in each.ancestors if number in entry_of), None)
        branches.append(
            BranchRead(after=after, entries=tuple(builder.entries), compactions=tuple(builder.compactions))
        )
        spent.append(builder.usage)
    return Beside(tuple(branches), facts, total(spent))
