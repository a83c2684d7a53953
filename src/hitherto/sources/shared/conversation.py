"""Building a conversation: entries in order, with counts of damaged and unknown records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from hitherto.limits import ENTRY_BYTES, ENTRY_SUM, LARGEST_NUMBER
from hitherto.model import (
    Entry,
    Json,
    Part,
    Plan,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    Value,
    encode,
)
from hitherto.service.compaction.imported import Branch, Summarised
from hitherto.sources.port import Census
from hitherto.sources.shared.depth import is_deep
from hitherto.sources.shared.size import shortened
from hitherto.sources.shared.usage import total
from hitherto.values.titles import title_from

ERROR_CHARS = 1_000
KIND_CHARS = 80
"""How much is kept of the name of a kind."""


class Conversation(Value, frozen=True):
    """A conversation, a title made from its first prompt, and how many records were damaged or of unknown kinds, shown or left
    out. `entries` are those of the conversation, then those of the `branches` beside it."""

    entries: tuple[Entry, ...] = ()
    compactions: tuple[Summarised, ...] = ()
    branches: tuple[Branch, ...] = ()
    title: str | None = None
    damaged: int = 0
    unknown: dict[str, int] = {}  # noqa: RUF012 - frozen, and msgspec copies a default that is empty
    census: Census = Census()


class ConversationBuilder:
    """Collects the entries of a conversation."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.compactions: list[Summarised] = []
        self.branches: list[Branch] = []
        self.unknown = Counter[str]()
        self.shown = 0
        self.left_out = Counter[str]()
        self.damaged = 0
        self._title: str | None = None

    @property
    def conversation(self) -> Conversation:
        return Conversation(
            entries=tuple(self.entries),
            compactions=tuple(self.compactions),
            branches=tuple(self.branches),
            title=self._title,
            damaged=self.damaged,
            unknown=dict(self.unknown),
            census=Census(self.shown, dict(self.left_out)),
        )

    def tally(self, kind: str, *, shown: bool) -> None:
        """Count a record: it is shown, or of a kind that is left out."""
        if shown:
            self.shown += 1
        else:
            self.left_out[kind[:KIND_CHARS]] += 1

    def add_branch(self, after: str | None, add: Callable[[], None]) -> None:
        """Add what `add` adds as a branch that leaves the conversation after this entry; if that is nothing, there is none."""
        compactions, self.compactions = self.compactions, []
        before, title = len(self.entries), self._title
        add()
        if size := len(self.entries) - before:
            self.branches.append(Branch(after, size, tuple(self.compactions)))
        self.compactions, self._title = compactions, title

    def add_entry(
        self,
        id: str,
        at: int,
        role: Role,
        parts: Sequence[Part],
        *,
        model: str | None = None,
        usage: Usage | None = None,
        meta: Json | None = None,
    ) -> None:
        """Add an entry, unless it is empty."""
        meta = meta or {}
        if not parts and not meta.get("error"):
            return
        if role == "user" and self._title is None and not meta.get("meta"):
            titles = (title_from(part.text) for part in parts if isinstance(part, Text))
            self._title = next(filter(None, titles), None)
        tokens = usage.output if usage else None
        self.entries.append(
            Entry(
                id=id,
                at=at,
                role=role,
                parts=tuple(parts),
                model=model,
                usage=usage,
                tokens=tokens,
                meta=meta,
            )
        )

    def add_message(
        self,
        id: str,
        at: int,
        role: Role,
        blocks: Iterable[tuple[str, Part]],
        *,
        model: str | None = None,
        usage: Usage | None = None,
        meta: Json | None = None,
    ) -> None:
        """Add a message as one or more entries: the results of its tools are an entry of their own, after a group of calls.

        Each part has an id; the first entry gets the message's id, every other one the id of its first part.
        """
        pieces: list[tuple[str, Role, list[Part]]] = [(id, role, []), ("", "tool", [])]
        for own, part in blocks:
            if pieces[-1][2] and not isinstance(part, ToolCall | Plan | ToolResult):
                pieces += [(own, role, []), ("", "tool", [])]
            parts = pieces[-1 if isinstance(part, ToolResult) else -2][2]
            if isinstance(part, ToolResult) and not parts:
                pieces[-1] = (own if pieces[-2][2] else pieces[-2][0], "tool", parts)
            parts.append(part)
        filled = [piece for piece in pieces if piece[2]] or pieces[:1]
        for place, (name, whose, parts) in enumerate(filled):
            self.add_entry(
                name,
                at,
                whose,
                parts,
                model=None if whose == "tool" else model,
                usage=None if place else usage,
                meta=None if place else meta,
            )

    def add_summary(
        self, id: str, at: int, parts: Sequence[Part], kept: Sequence[str] = (), **how: Any
    ) -> None:
        """Add an entry that summarises everything before it."""
        self.add_entry(id, at, "system", parts, meta={"compact_summary": True}, **how)
        self.compactions.append(Summarised(summary=id, kept=tuple(kept)))

    def unknown_part(self, kind: object, raw: Any) -> Unknown:
        """A part of an unknown kind, kept raw and counted."""
        self.unknown[str(kind or "?")[:KIND_CHARS]] += 1
        return Unknown(raw=raw)


def fit_conversation(conversation: Conversation, records: Iterable[bytes | str]) -> Conversation:
    """The conversation that was read from these records, its entries cut to what a store can keep."""
    lines = [line if isinstance(line, bytes) else line.encode("utf-8", "replace") for line in records]
    if sum(map(len, lines)) <= LONGEST and not any(map(is_deep, lines)):
        return conversation
    return replace(
        conversation, entries=tuple(fit_entry(entry, encode(entry)) for entry in conversation.entries)
    )


def usage_totals(entries: Iterable[Entry]) -> Json:
    """The models of a conversation, their usage and their cost, as far as known."""
    entries = list(entries)
    usages = [entry.usage for entry in entries if entry.usage is not None]
    used, costs = total(usages), [usage.cost for usage in usages if usage.cost is not None]
    return {
        "models": list(dict.fromkeys(entry.model for entry in entries if entry.model)),
        "usage": None if used is None else msgspec.to_builtins(used),
        "cost": sum(costs) if costs else None,
    }


def without_empty(meta: Json) -> Json:
    """The same without empty values."""
    return {name: value for name, value in meta.items() if value}


# Values that another program wrote: they may have any type


def text(record: Any, *names: str) -> str | None:
    """The first of these fields that is a non-empty text."""
    if isinstance(record, dict):
        for name in names:
            value = record.get(name)
            if isinstance(value, str) and value:
                return value
    return None


def objects(value: Any) -> Iterator[Json]:
    """The objects in a list."""
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())


def number(record: Any, name: str) -> int | None:
    """A field that is a valid count."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= ENTRY_SUM else None


def dollars(value: Any) -> float | None:
    """A cost."""
    counts = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e5
    return float(value) if counts else None


def moment(value: Any) -> int | None:
    """A moment in ms, written as such a number or as a date; a date without a zone is one of UTC."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if 0 <= value <= LARGEST_NUMBER else None
    try:
        read = msgspec.convert(value, datetime) if isinstance(value, str) else None
        zoned = read if read is None or read.tzinfo else read.replace(tzinfo=UTC)
        return None if zoned is None else max(round(zoned.timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        return None


LONGEST = ENTRY_BYTES // 2
"""A record that is longer becomes an entry that is cut."""
TOO_DEEP = Text(text="[left out: nested too deeply]")


def fit_entry(entry: Entry, record: bytes | memoryview) -> Entry:
    """The entry that was made of a record, cut if that is too long to be kept, or empty if it is nested too deeply."""
    if len(record) > LONGEST:
        return replace(entry, parts=shortened(entry.parts, LONGEST // 8), meta={**entry.meta, "cut": True})
    if is_deep(record):
        return replace(entry, parts=(TOO_DEEP,), meta={**entry.meta, "cut": True})
    return entry
