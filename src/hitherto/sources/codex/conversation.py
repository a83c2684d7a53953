"""The conversation that the records of a rollout tell, entry by entry. Pure.

A rollout holds two streams: what the model was given and gave back, and what the program showed. In newer ones
(`paginated`) the conversation is what was shown, in older ones what the model has; calls of tools and what came of them are
taken from both, each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from hitherto.model import Entry, Json, Part, Role, Text, Thought, Unknown, Usage
from hitherto.service.compaction.imported import Summarised
from hitherto.sources.codex.records import (
    INJECTED,
    ITEMS_OF_BOTH,
    NOTES,
    QUIET,
    QUIET_EVENTS,
    QUIET_ITEMS,
    QUIET_RESPONSES,
    SHOWN_TOO,
    USER_SHELL,
    Record,
    fields,
    items,
    parts_of,
    text,
    whole,
)
from hitherto.sources.codex.resume_state import Memory, meta_of
from hitherto.sources.codex.tools import (
    ANSWERING,
    ASKING,
    ENDING,
    Asked,
    Outcome,
    answered_by,
    asked_by,
    call_parts,
    command_of,
    ended_by,
    spelled,
)
from hitherto.sources.shared.conversation import fitted
from hitherto.sources.shared.usage import tokens_of, total

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


CALLS = 200
"""So many calls are remembered beyond the end of their turn: a command may end much later."""
ENCRYPTED = "The conversation was compacted; its summary can be read by the model's provider only."


class Rolled(Exception):
    """What was read before is not what it was, so the whole is to be read."""


class Talk(Entries):
    """Reads records, one after the other. `inherited` are turns of which a subagent may hold copies; `grown` says that these
    records come behind others that were read before."""

    def __init__(
        self, memory: Memory, inherited: frozenset[str] = frozenset(), *, grown: bool = False
    ) -> None:
        super().__init__(memory)
        self._inherited = inherited
        self._grown = grown

    def add(self, record: Record, *, own: bool = True) -> None:
        """The next record; it is another file's if it is not `own`."""
        self.own, self.record = own, record
        if own:
            self.memory.records += 1
            self.memory.ordinal = max(self.memory.ordinal, -1 if record.ordinal is None else record.ordinal)
        self.memory.at = record.at or self.memory.at
        if not self._is_copied(record) and record.kind not in QUIET:
            LINES.get(record.kind, Talk._strange)(self)

    # Lines

    def _begin(self) -> None:
        """The first of these lines is the file's own; a copy of another thread begins with that one's."""
        if not self.own:
            return
        meta = meta_of(self.record.payload())
        if self.memory.meta is None:
            self.memory.meta = meta
            self.memory.created_at = self.record.at
            self._in_folder(meta.cwd)
        elif meta.id != self.memory.meta.id and self._inherited:
            self.memory.copying = True

    def _is_copied(self, record: Record) -> bool:
        """Whether a record is of the history that a subagent was given by the thread that started it."""
        meta = self.memory.meta
        if meta is None or not meta.subagent or record.kind == "session_meta":
            return False
        if meta.own_from is not None:
            return record.ordinal is not None and record.ordinal < meta.own_from
        if self.memory.copying and record.kind in ("turn_context", "event_msg"):
            turn = text(record.payload(), "turn_id")
            self.memory.copying = turn is None or turn in self._inherited
        return self.memory.copying

    def _context(self) -> None:
        said = self.record.payload()
        self.memory.model = text(said, "model") or self.memory.model
        self._in_folder(text(said, "cwd"))

    def _in_folder(self, cwd: str | None) -> None:
        if self.own and cwd and cwd.startswith("/") and cwd not in self.memory.cwds:
            self.memory.cwds.append(cwd)

    def _compacted(self) -> None:
        said = self.record.payload()
        summary = text(said, "message") or _last_text(items(said, "replacement_history")) or ENCRYPTED
        entry = self.say("system", (Text(text=summary),), meta={"compact_summary": True})
        self.compactions.append(Summarised(summary=entry.id))

    def _message_between(self) -> None:
        """Something that one agent has told another."""
        said = self.record.payload()
        parts = tuple(parts_of(said.get("content"), self.unknown))
        if parts:
            self.say("user", parts, meta=_known(origin="agent", author=text(said, "author")))

    def _strange(self) -> None:
        self.keep(self.record.kind, self.record.payload())

    # The model's items

    def _response(self) -> None:
        kind = self.record.type
        if kind in QUIET_RESPONSES or (self.memory.paginated and kind in SHOWN_TOO):
            return
        item = self.record.payload()
        if kind in ASKING:
            self._ask(item)
        elif kind in ANSWERING:
            self._answer_to(item)
        else:
            RESPONSES.get(kind, Talk._strange_item)(self, item)

    def _message(self, item: Json) -> None:
        role, parts = text(item, "role"), tuple(parts_of(item.get("content"), self.unknown))
        first = next((part.text.lstrip() for part in parts if isinstance(part, Text)), "")
        if role not in ("user", "assistant") or not parts or (role == "user" and first.startswith(INJECTED)):
            return
        if role == "assistant":
            self.say("assistant", parts, meta=_known(phase=text(item, "phase")))
        elif first.startswith(NOTES):
            self.say("system", parts, meta={"meta": True})
        else:
            self.prompt(parts)

    def _reasoning(self, item: Json) -> None:
        said = items(item, "summary") or items(item, "content")
        self.think([part.text for part in parts_of(said, self.unknown) if isinstance(part, Text)])

    def _ask(self, item: Json) -> None:
        asked = asked_by(item)
        if asked is None:
            self._strange_item(item)
        elif asked.id not in self.memory.calls:
            self.memory.calls[asked.id] = "asked"
            self.say("assistant", call_parts(asked))
            if picture := text(item, "result"):
                done = ended_by({**item, "type": "ImageGeneration", "result": picture}, self.unknown)
                self._end(*done) if done else None

    def _answer_to(self, item: Json) -> None:
        outcome = answered_by(item, self.unknown)
        if outcome is None:
            self._strange_item(item)
        elif self.memory.calls.get(outcome.id) != "ended":
            self.memory.calls[outcome.id] = "told"
            self.say("tool", (outcome.part(),), mark="result")

    def _end(self, asked: Asked, outcome: Outcome) -> None:
        """What came of a call, by the program; the call too if the model's items have not told of it."""
        known = self.memory.calls.get(asked.id)
        self.memory.calls[asked.id] = "ended"
        if known is None:
            self.say("assistant", call_parts(asked))
        if known != "ended":
            self.say("tool", (outcome.part(),), mark="result")

    def _strange_item(self, item: Json) -> None:
        self.keep(f"item {self.record.type}", item)

    # Events

    def _event(self) -> None:
        kind = self.record.type
        if kind in QUIET_EVENTS:
            return
        said = self.record.payload()
        if kind in ENDING:
            self._ended(said)
        else:
            EVENTS.get(kind, Talk._strange_event)(self, said)

    def _ended(self, said: Json) -> None:
        """In older rollouts: these tell more than what the model was told."""
        done = ended_by(said, self.unknown)
        if done is not None and not self._is_users(said):
            self._end(*done)

    def _begin_turn(self, _: Json) -> None:
        self._forget_calls()
        self.begin_turn()
        self.memory.turn = True

    def _end_turn(self, said: Json) -> None:
        self._forget_calls()
        self.memory.turn = False
        error = said.get("error")
        if told := text(error, "message") or (error if isinstance(error, str) else None):
            self._fail({"message": told})

    def _forget_calls(self) -> None:
        kept = {id: state for id, state in self.memory.calls.items() if state != "ended"}
        self.memory.calls = dict(islice(kept.items(), max(len(kept) - CALLS, 0), None))

    def _fail(self, said: Json) -> None:
        if message := text(said, "message"):
            self.say("system", (Text(text=message),), meta={"error": message[:1_000]})

    def _roll_back(self, said: Json) -> None:
        """The last turns are taken back."""
        if self._grown:
            raise Rolled
        count = whole(said, "num_turns") or 0
        self.take_back(count)

    def _count(self, said: Json) -> None:
        info = fields(said, "info")
        used, counted = (
            fields(info, "last_token_usage"),
            whole(fields(info, "total_token_usage"), "total_tokens"),
        )
        # The same count comes again when something else in the event has changed.
        if not used or (counted is not None and counted == self.memory.counted):
            return
        self.memory.counted = counted
        self.pay(usage_of(used))

    def _rename(self, said: Json) -> None:
        self.memory.name = text(said, "thread_name")

    def _activity(self, item: Json) -> None:
        told = spelled(item)
        child, kind = text(told, "agent_thread_id"), text(told, "kind") or "activity"
        said = f"{text(told, 'agent_path') or 'subagent'}: {kind}"
        self.say("system", (Text(text=said),), meta=_known(meta=True, child=child and f"codex:{child}"))

    def _strange_event(self, said: Json) -> None:
        self.keep(f"event {self.record.type}", said)

    # What was shown

    def _shown(self, said: Json) -> None:
        item = fields(said, "item")
        kind = text(item, "type") or ""
        if kind in QUIET_ITEMS or (not self.memory.paginated and kind in ITEMS_OF_BOTH):
            return
        if kind not in ENDING:
            ITEMS.get(kind, Talk._strange_shown)(self, item)
        elif self._is_users(item):
            self._command(spelled(item))
        elif done := ended_by(item, self.unknown):
            self._end(*done)

    def _is_users(self, item: Json) -> bool:
        return text(item, "source") in USER_SHELL

    def _command(self, item: Json) -> None:
        """What the user ran in the middle of the conversation."""
        code = whole(item, "exit_code")
        ended = f"\n(exit code {code})" if code else ""
        said = f"$ {command_of(item)}\n{text(item, 'aggregated_output') or ''}{ended}"
        self.say("user", (Text(text=said),))

    def _asked_for(self, item: Json) -> None:
        if parts := tuple(parts_of(item.get("content"), self.unknown)):
            self.prompt(parts)

    def _said(self, item: Json) -> None:
        if parts := tuple(parts_of(item.get("content"), self.unknown)):
            self.say("assistant", parts, meta=_known(phase=text(item, "phase")))

    def _thought(self, item: Json) -> None:
        told = items(item, "summary_text") or items(item, "raw_content")
        self.think([piece for piece in told if isinstance(piece, str)])

    def _planned(self, item: Json) -> None:
        if told := text(item, "text"):
            self.say("assistant", (Text(text=told),), meta={"kind": "plan"})

    def _reviewed(self, item: Json) -> None:
        told = text(item, "review") or text(fields(item, "review_output"), "overall_explanation")
        if told is None:
            self._strange_shown(item)
        else:
            self.say("assistant", (Text(text=told),), meta={"kind": "review"})

    def _hooked(self, item: Json) -> None:
        told = "\n".join(filter(None, (text(each, "text") for each in items(item, "fragments"))))
        if told:
            self.say("system", (Text(text=told),), meta={"meta": True})

    def _strange_shown(self, item: Json) -> None:
        self.keep(f"shown {text(item, 'type')}", item)


LINES: dict[str, Callable[[Talk], None]] = {
    "session_meta": Talk._begin,
    "turn_context": Talk._context,
    "response_item": Talk._response,
    "event_msg": Talk._event,
    "compacted": Talk._compacted,
    "inter_agent_communication": Talk._message_between,
}
RESPONSES: dict[str, Callable[[Talk, Json], None]] = {
    "message": Talk._message,
    "reasoning": Talk._reasoning,
    "agent_message": lambda talk, _: talk._message_between(),
}
EVENTS: dict[str, Callable[[Talk, Json], None]] = {
    "task_started": Talk._begin_turn,
    "turn_started": Talk._begin_turn,
    "task_complete": Talk._end_turn,
    "turn_complete": Talk._end_turn,
    "turn_aborted": Talk._end_turn,
    "thread_rolled_back": Talk._roll_back,
    "token_count": Talk._count,
    "item_completed": Talk._shown,
    "thread_name_updated": Talk._rename,
    "sub_agent_activity": Talk._activity,
    "error": Talk._fail,
    "stream_error": Talk._fail,
}
ITEMS: dict[str, Callable[[Talk, Json], None]] = {
    "UserMessage": Talk._asked_for,
    "AgentMessage": Talk._said,
    "Reasoning": Talk._thought,
    "Plan": Talk._planned,
    "HookPrompt": Talk._hooked,
    "ExitedReviewMode": Talk._reviewed,
    "SubAgentActivity": Talk._activity,
}
"""Kinds of line, of the model's items, of events and of what was shown → what becomes of them."""


def _last_text(history: list[object]) -> str | None:
    """The last message of a history: the summary stands behind what was kept."""
    texts = (text(piece, "text") for item in reversed(history) for piece in items(item, "content"))
    return next(filter(None, texts), None)


def _known(**facts: object) -> Json:
    return {name: value for name, value in facts.items() if value is not None}
