"""Entries in the making: what is said in a rollout, by whom, and what it has used. Pure."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from hitherto.model import Entry, Json, Part, Role, Text, Thought, Unknown, Usage
from hitherto.service.boundaries import Summarised
from hitherto.sources.claude_usage import tokens_of, total
from hitherto.sources.codex_memory import Memory
from hitherto.sources.codex_records import Record, whole
from hitherto.sources.fitting import fitted

PROMPT_CHARS = 10_000
"""So much of the first prompt is remembered for a title."""


class Entries:
    """The entries so far. `memory` is changed as they come; `record` is the one that is being read, which is another file's
    if it is not `own`."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.entries: list[Entry] = []
        self.compactions: list[Summarised] = []
        self.amended: Entry | None = None
        self.unknown = Counter[str](memory.unknown)
        self.own = True
        self.record = Record("", None, None, b"", 0)
        self._turns: list[int] = []
        self._answer: int | None = None

    def close(self) -> None:
        """No more records, for now."""
        self.memory.unknown = dict(self.unknown)
        self.memory.entries += len(self.entries)
        if self._answer is not None:
            self.memory.answer = self.entries[self._answer]

    def begin_turn(self) -> None:
        """What comes now is a turn of its own."""
        self._turns.append(len(self.entries))

    def take_back(self, turns: int) -> None:
        """The last turns are as if they had not been."""
        if turns > 0:
            place = self._turns[-turns] if turns <= len(self._turns) else 0
            gone = {entry.id for entry in self.entries[place:]}
            del self.entries[place:], self._turns[-turns:]
            self.compactions = [each for each in self.compactions if each.summary not in gone]
            self._answer = None
        self.memory.turn = False

    def prompt(self, parts: tuple[Part, ...]) -> None:
        """Something that the user has said. It begins a turn, unless one is going on."""
        if not self.memory.turn:
            self.begin_turn()
        said = next((part.text for part in parts if isinstance(part, Text)), None)
        if self.memory.first_prompt is None and said is not None:
            self.memory.first_prompt = said[:PROMPT_CHARS]
        self.say("user", parts)

    def think(self, thoughts: list[str]) -> None:
        """What the model has thought, as far as it tells."""
        if said := "\n\n".join(filter(None, thoughts)):
            self.say("assistant", (Thought(text=said, provider="openai"),))

    def keep(self, kind: str, said: Json) -> None:
        """Something of a kind that nobody knows: as it is, and counted."""
        self.unknown[kind[:80]] += 1
        self.say("system", (Unknown(raw=said),), meta={"meta": True})

    def say(self, role: Role, parts: tuple[Part, ...], *, mark: str = "", meta: Json | None = None) -> Entry:
        """An entry from the present record, of which a second one has a `mark`."""
        record, memory = self.record, self.memory
        name = str(record.ordinal) if record.ordinal is not None else f"line-{memory.records}"
        answers = role == "assistant"
        entry = Entry(
            id=f"{name}.{mark}" if mark else name,
            at=memory.at,
            role=role,
            parts=parts,
            model=memory.model if answers else None,
            meta=meta or {},
        )
        entry = fitted(entry, record.said)
        self.entries.append(entry)
        if self.own:
            memory.updated_at = max(memory.updated_at or 0, memory.at)
        if answers:
            self._use()
        return entry

    def _use(self) -> None:
        """An answer has come, which the next count is for."""
        memory = self.memory
        if memory.model is not None and memory.model not in memory.models:
            memory.models.append(memory.model)
        self._answer, memory.answer = len(self.entries) - 1, None
        if memory.waiting is not None:
            self.entries[-1] = _paid(self.entries[-1], memory.waiting)
            memory.waiting = None

    def pay(self, used: Usage) -> None:
        """What the newest answer has used, or the next one if there is none."""
        memory = self.memory
        if self.own:
            memory.spent = total((memory.spent, used))
        if self._answer is not None:
            self.entries[self._answer] = _paid(self.entries[self._answer], used)
        elif memory.answer is not None:
            self.amended = _paid(memory.answer, used)
        else:
            memory.waiting = total((memory.waiting, used))
        self._answer = memory.answer = None


def usage_of(used: Json) -> Usage:
    return Usage(
        input=whole(used, "input_tokens"),
        output=whole(used, "output_tokens"),
        cache_read=whole(used, "cached_input_tokens"),
        cache_write=whole(used, "cache_write_input_tokens"),
    )


def _paid(entry: Entry, used: Usage) -> Entry:
    usage = total((entry.usage, used))
    return replace(entry, usage=usage, tokens=tokens_of(usage))
