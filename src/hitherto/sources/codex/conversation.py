"""Building the conversation of a rollout from its records. Pure.

A rollout has two streams: the items of the model, and the events that the program showed. In newer rollouts (`paginated`)
the conversation comes from the events, in older ones from the items. Tool calls and their results come from both, each
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.model import Entry, Image, Json, Part, Role, Text, Thought, Unknown, Usage
from hitherto.service.compaction.imported import Summarised
from hitherto.sources.codex.records import (
    INJECTED,
    ITEMS_OF_BOTH,
    LOCAL_PICTURES,
    NOTES,
    PICTURES,
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
    CALL_ITEMS,
    FINISHED_ITEMS,
    RESULT_ITEMS,
    CallRequest,
    Outcome,
    call_of_item,
    call_parts,
    command_of,
    finished_call,
    result_of_item,
    snake_case,
)
from hitherto.sources.shared.conversation import KIND_CHARS, fit_entry
from hitherto.sources.shared.usage import tokens_of, total
from hitherto.values.titles import opening

ROLES = frozenset({"user", "assistant", "developer", "system"})
PROGRAM = frozenset({"developer", "system"})
"""The roles of what the program tells its model."""
COPIED = "copied from the thread that started it"
_PICTURE = b'"input_image"'
PROMPT_CHARS = 10_000
"""How much of the first prompt is kept for a title."""


class RolledBack(NamedTuple):
    """Turns that were rolled back: they follow the entry `after`, None if nothing is before them."""

    after: str | None
    entries: list[Entry]
    compactions: list[Summarised]


class Entries:
    """The entries so far. `memory` changes with them; `record` is the one being read, and belongs to another file if it is
    not `own`."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.entries: list[Entry] = []
        self.compactions: list[Summarised] = []
        self.rolled_back: list[RolledBack] = []
        self.amended: Entry | None = None
        self.unknown = Counter[str](memory.unknown)
        self.left_out = Counter[str](memory.left_out)
        self.added = 0
        self.own = True
        self.record = Record("", None, None, b"", 0)
        self._turns: list[int] = []
        self._answer: int | None = None

    def close(self) -> None:
        """End of the records, for now."""
        self.memory.unknown = dict(self.unknown)
        self.memory.left_out = dict(self.left_out)
        self.memory.entries += len(self.entries)
        if self._answer is not None:
            self.memory.answer = self.entries[self._answer]

    def begin_turn(self) -> None:
        """Start a turn."""
        self._turns.append(len(self.entries))

    def drop_turns(self, turns: int) -> None:
        """Move the last turns out of the conversation, into a branch beside it."""
        if turns > 0:
            place = self._turns[-turns] if turns <= len(self._turns) else 0
            gone = {entry.id for entry in self.entries[place:]}
            compactions = [each for each in self.compactions if each.summary in gone]
            self.compactions = [each for each in self.compactions if each.summary not in gone]
            if gone:
                after = self.entries[place - 1].id if place else None
                self.rolled_back.append(RolledBack(after, self.entries[place:], compactions))
            del self.entries[place:], self._turns[-turns:]
            self._answer = None
        self.memory.turn = False

    def prompt(self, parts: tuple[Part, ...]) -> None:
        """Add a prompt of the user. It starts a turn, unless one is running."""
        if not self.memory.turn:
            self.begin_turn()
        if self.memory.first_prompt is None:
            openings = (opening(part.text, PROMPT_CHARS) for part in parts if isinstance(part, Text))
            self.memory.first_prompt = next(filter(None, openings), None)
        self.add_entry("user", parts)

    def think(self, thoughts: list[str]) -> None:
        """Add the model's thoughts, as far as they are readable."""
        if thought := "\n\n".join(filter(None, thoughts)):
            self.add_entry("assistant", (Thought(text=thought, provider="openai"),))

    def keep_unknown(self, kind: str, raw: Json) -> None:
        """Add something of an unknown kind, raw and counted."""
        self.unknown[kind[:KIND_CHARS]] += 1
        self.add_entry("system", (Unknown(raw=raw),), meta={"meta": True})

    def add_entry(
        self, role: Role, parts: tuple[Part, ...], *, mark: str = "", meta: Json | None = None
    ) -> Entry:
        """Add an entry from the current record; a second one from the same record has a `mark`."""
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
        entry = fit_entry(entry, record.data)
        self.entries.append(entry)
        self.added += 1
        if self.own:
            memory.updated_at = max(memory.updated_at or 0, memory.at)
        if answers:
            self._note_answer()
        return entry

    def _note_answer(self) -> None:
        """Note an answer: the next usage count belongs to it."""
        memory = self.memory
        if memory.model is not None and memory.model not in memory.models:
            memory.models.append(memory.model)
        self._answer, memory.answer = len(self.entries) - 1, None
        if memory.waiting is not None:
            self.entries[-1] = _with_usage(self.entries[-1], memory.waiting)
            memory.waiting = None

    def count_usage(self, used: Usage) -> None:
        """Add usage to the newest answer, or to the next one if there is none."""
        memory = self.memory
        if self.own:
            memory.spent = total((memory.spent, used))
        if self._answer is not None:
            self.entries[self._answer] = _with_usage(self.entries[self._answer], used)
        elif memory.answer is not None:
            self.amended = _with_usage(memory.answer, used)
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


def _with_usage(entry: Entry, used: Usage) -> Entry:
    usage = total((entry.usage, used))
    return replace(entry, usage=usage, tokens=tokens_of(usage))


CALLS = 200
"""How many calls are remembered after their turn: a command may end much later."""
ENCRYPTED = "The conversation was compacted; its summary can be read by the model's provider only."


class RebuildNeeded(Exception):
    """What was read before has changed: the whole file must be read."""


class ConversationBuilder(Entries):
    """Reads records in order. `inherited` are turns that a subagent may have copies of; `grown`: these records follow others
    that were read before."""

    def __init__(
        self, memory: Memory, inherited: frozenset[str] = frozenset(), *, grown: bool = False
    ) -> None:
        super().__init__(memory)
        self._inherited = inherited
        self._grown = grown

    def add(self, record: Record, *, own: bool = True) -> None:
        """Read the next record; it belongs to another file if it is not `own`."""
        self.own, self.record = own, record
        if own:
            self.memory.records += 1
            self.memory.ordinal = max(self.memory.ordinal, -1 if record.ordinal is None else record.ordinal)
        self.memory.at = record.at or self.memory.at
        before, copied = self.added, self._is_copied(record)
        if not copied and record.kind not in QUIET:
            LINES.get(record.kind, ConversationBuilder._unknown_line)(self)
        if own and self.added > before:
            self.memory.shown += 1
        elif own:
            self.left_out[COPIED if copied else kind_of(record)] += 1

    # Lines

    def _begin(self) -> None:
        """The first of these lines is the file's own; a copied thread begins with the other thread's."""
        if not self.own:
            return
        meta = meta_of(self.record.payload())
        if self.memory.meta is None:
            self.memory.meta = meta
            self.memory.created_at = self.record.at
            self._note_folder(meta.cwd)
        elif meta.id != self.memory.meta.id and self._inherited:
            self.memory.copying = True

    def _is_copied(self, record: Record) -> bool:
        """Whether a record belongs to the history that a subagent got from the thread that started it."""
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
        payload = self.record.payload()
        self.memory.model = text(payload, "model") or self.memory.model
        self._note_folder(text(payload, "cwd"))

    def _note_folder(self, cwd: str | None) -> None:
        if self.own and cwd and cwd.startswith("/") and cwd not in self.memory.cwds:
            self.memory.cwds.append(cwd)

    def _compacted(self) -> None:
        payload = self.record.payload()
        summary = text(payload, "message") or _last_text(items(payload, "replacement_history")) or ENCRYPTED
        entry = self.add_entry("system", (Text(text=summary),), meta={"compact_summary": True})
        self.compactions.append(Summarised(summary=entry.id))

    def _message_between(self) -> None:
        """A message from one agent to another."""
        payload = self.record.payload()
        parts = tuple(parts_of(payload.get("content"), self.unknown))
        if parts:
            self.add_entry("user", parts, meta=_known(origin="agent", author=text(payload, "author")))

    def _unknown_line(self) -> None:
        self.keep_unknown(self.record.kind, self.record.payload())

    # The model's items

    def _response(self) -> None:
        kind = self.record.type
        if self.memory.paginated and kind == "message" and _PICTURE in self.record.data:
            self._keep_pictures(self.record.payload())
        if kind in QUIET_RESPONSES or (self.memory.paginated and kind in SHOWN_TOO):
            return
        item = self.record.payload()
        if kind in CALL_ITEMS:
            self._ask(item)
        elif kind in RESULT_ITEMS:
            self._answer_to(item)
        else:
            RESPONSES.get(kind, ConversationBuilder._unknown_response)(self, item)

    def _keep_pictures(self, item: Json) -> None:
        """Keep the pictures of a prompt until it is shown: what is shown has only their paths."""
        parts = parts_of(item.get("content"), Counter[str]())
        self.memory.pictures = [part for part in parts if isinstance(part, Image) and part.data]

    def _message(self, item: Json) -> None:
        role, parts = text(item, "role"), tuple(parts_of(item.get("content"), self.unknown))
        first = next((part.text.lstrip() for part in parts if isinstance(part, Text)), "")
        if role not in ROLES:
            self._unknown_response(item)
            return
        if role in PROGRAM or not parts or (role == "user" and first.startswith(INJECTED)):
            return
        if role == "assistant":
            self.add_entry("assistant", parts, meta=_known(phase=text(item, "phase")))
        elif first.startswith(NOTES):
            self.add_entry("system", parts, meta={"meta": True})
        else:
            self.prompt(parts)

    def _reasoning(self, item: Json) -> None:
        pieces = items(item, "summary") or items(item, "content")
        self.think([part.text for part in parts_of(pieces, self.unknown) if isinstance(part, Text)])

    def _ask(self, item: Json) -> None:
        request = call_of_item(item)
        if request is None:
            self._unknown_response(item)
        elif request.id not in self.memory.calls:
            self.memory.calls[request.id] = "asked"
            self.add_entry("assistant", call_parts(request))
            if picture := text(item, "result"):
                done = finished_call({**item, "type": "ImageGeneration", "result": picture}, self.unknown)
                self._end(*done) if done else None

    def _answer_to(self, item: Json) -> None:
        outcome = result_of_item(item, self.unknown)
        if outcome is None:
            self._unknown_response(item)
        elif self.memory.calls.get(outcome.id) != "ended":
            self.memory.calls[outcome.id] = "told"
            self.add_entry("tool", (outcome.part(),), mark="result")

    def _end(self, request: CallRequest, outcome: Outcome) -> None:
        """The result of a call, from an event; and the call itself if no item had it."""
        known = self.memory.calls.get(request.id)
        self.memory.calls[request.id] = "ended"
        if known is None:
            self.add_entry("assistant", call_parts(request))
        if known != "ended":
            self.add_entry("tool", (outcome.part(),), mark="result")

    def _unknown_response(self, item: Json) -> None:
        self.keep_unknown(f"item {self.record.type}", item)

    # Events

    def _event(self) -> None:
        kind = self.record.type
        if kind in QUIET_EVENTS:
            return
        payload = self.record.payload()
        if kind in FINISHED_ITEMS:
            self._tool_event(payload)
        else:
            EVENTS.get(kind, ConversationBuilder._unknown_event)(self, payload)

    def _tool_event(self, event: Json) -> None:
        """A finished tool call in older rollouts: the event has more than the model's item."""
        done = finished_call(event, self.unknown)
        if done is not None and not self._is_users(event):
            self._end(*done)

    def _begin_turn(self, _: Json) -> None:
        self._forget_calls()
        self.begin_turn()
        self.memory.turn = True

    def _end_turn(self, event: Json) -> None:
        self._forget_calls()
        self.memory.turn = False
        error = event.get("error")
        if message := text(error, "message") or (error if isinstance(error, str) else None):
            self._fail({"message": message})

    def _forget_calls(self) -> None:
        kept = {id: state for id, state in self.memory.calls.items() if state != "ended"}
        self.memory.calls = dict(islice(kept.items(), max(len(kept) - CALLS, 0), None))

    def _fail(self, event: Json) -> None:
        if message := text(event, "message"):
            self.add_entry("system", (Text(text=message),), meta={"error": message[:1_000]})

    def _roll_back(self, event: Json) -> None:
        """The last turns were rolled back."""
        if self._grown:
            raise RebuildNeeded
        count = whole(event, "num_turns") or 0
        self.drop_turns(count)

    def _count(self, event: Json) -> None:
        info = fields(event, "info")
        used, counted = (
            fields(info, "last_token_usage"),
            whole(fields(info, "total_token_usage"), "total_tokens"),
        )
        # A count is repeated when something else in the event has changed.
        if not used or (counted is not None and counted == self.memory.counted):
            return
        self.memory.counted = counted
        self.count_usage(usage_of(used))

    def _rename(self, event: Json) -> None:
        self.memory.name = text(event, "thread_name")

    def _activity(self, item: Json) -> None:
        fields_of_item = snake_case(item)
        child, kind = text(fields_of_item, "agent_thread_id"), text(fields_of_item, "kind") or "activity"
        activity = f"{text(fields_of_item, 'agent_path') or 'subagent'}: {kind}"
        self.add_entry(
            "system", (Text(text=activity),), meta=_known(meta=True, child=child and f"codex:{child}")
        )

    def _unknown_event(self, event: Json) -> None:
        self.keep_unknown(f"event {self.record.type}", event)

    # Items that were shown

    def _item_completed(self, event: Json) -> None:
        item = fields(event, "item")
        kind = text(item, "type") or ""
        if kind in QUIET_ITEMS or (not self.memory.paginated and kind in ITEMS_OF_BOTH):
            return
        if kind not in FINISHED_ITEMS:
            ITEMS.get(kind, ConversationBuilder._unknown_item)(self, item)
        elif self._is_users(item):
            self._command(snake_case(item))
        elif kind == "ImageView" and text(item, "id") in self.memory.calls:
            return  # the picture itself comes with the result for the model
        elif done := finished_call(item, self.unknown):
            self._end(*done)

    def _is_users(self, item: Json) -> bool:
        return text(item, "source") in USER_SHELL

    def _command(self, item: Json) -> None:
        """A command that the user ran within the conversation."""
        code = whole(item, "exit_code")
        ended = f"\n(exit code {code})" if code else ""
        command = f"$ {command_of(item)}\n{text(item, 'aggregated_output') or ''}{ended}"
        self.add_entry("user", (Text(text=command),))

    def _user_message(self, item: Json) -> None:
        pictures, self.memory.pictures = self.memory.pictures, []
        if parts := tuple(_with_pictures(item.get("content"), pictures, self.unknown)):
            self.prompt(parts)

    def _agent_message(self, item: Json) -> None:
        if parts := tuple(parts_of(item.get("content"), self.unknown)):
            self.add_entry("assistant", parts, meta=_known(phase=text(item, "phase")))

    def _shown_reasoning(self, item: Json) -> None:
        thoughts = items(item, "summary_text") or items(item, "raw_content")
        self.think([piece for piece in thoughts if isinstance(piece, str)])

    def _plan(self, item: Json) -> None:
        if plan := text(item, "text"):
            self.add_entry("assistant", (Text(text=plan),), meta={"kind": "plan"})

    def _review(self, item: Json) -> None:
        review = text(item, "review") or text(fields(item, "review_output"), "overall_explanation")
        if review is None:
            self._unknown_item(item)
        else:
            self.add_entry("assistant", (Text(text=review),), meta={"kind": "review"})

    def _hook_prompt(self, item: Json) -> None:
        prompt = "\n".join(filter(None, (text(each, "text") for each in items(item, "fragments"))))
        if prompt:
            self.add_entry("system", (Text(text=prompt),), meta={"meta": True})

    def _unknown_item(self, item: Json) -> None:
        self.keep_unknown(f"shown {text(item, 'type')}", item)


LINES: dict[str, Callable[[ConversationBuilder], None]] = {
    "session_meta": ConversationBuilder._begin,
    "turn_context": ConversationBuilder._context,
    "response_item": ConversationBuilder._response,
    "event_msg": ConversationBuilder._event,
    "compacted": ConversationBuilder._compacted,
    "inter_agent_communication": ConversationBuilder._message_between,
}
RESPONSES: dict[str, Callable[[ConversationBuilder, Json], None]] = {
    "message": ConversationBuilder._message,
    "reasoning": ConversationBuilder._reasoning,
    "agent_message": lambda builder, _: builder._message_between(),
}
EVENTS: dict[str, Callable[[ConversationBuilder, Json], None]] = {
    "task_started": ConversationBuilder._begin_turn,
    "turn_started": ConversationBuilder._begin_turn,
    "task_complete": ConversationBuilder._end_turn,
    "turn_complete": ConversationBuilder._end_turn,
    "turn_aborted": ConversationBuilder._end_turn,
    "thread_rolled_back": ConversationBuilder._roll_back,
    "token_count": ConversationBuilder._count,
    "item_completed": ConversationBuilder._item_completed,
    "thread_name_updated": ConversationBuilder._rename,
    "sub_agent_activity": ConversationBuilder._activity,
    "error": ConversationBuilder._fail,
    "stream_error": ConversationBuilder._fail,
}
ITEMS: dict[str, Callable[[ConversationBuilder, Json], None]] = {
    "UserMessage": ConversationBuilder._user_message,
    "AgentMessage": ConversationBuilder._agent_message,
    "Reasoning": ConversationBuilder._shown_reasoning,
    "Plan": ConversationBuilder._plan,
    "HookPrompt": ConversationBuilder._hook_prompt,
    "ExitedReviewMode": ConversationBuilder._review,
    "SubAgentActivity": ConversationBuilder._activity,
}
"""Handlers by kind of line, of model item, of event and of shown item."""


def kind_of(record: Record) -> str:
    """What a record that is not shown is counted as."""
    kind = record.kind
    if kind in ("response_item", "event_msg"):
        kind = f"{'item' if kind == 'response_item' else 'event'} {record.type}"
    if kind == "event item_completed":
        kind = f"shown {text(fields(record.payload(), 'item'), 'type')}"
    elif kind == "item message":
        kind = f"message {text(record.payload(), 'role')}"
    return kind[:KIND_CHARS]


def _with_pictures(content: object, pictures: Sequence[Image], unknown: Counter[str]) -> Iterator[Part]:
    """The parts of a prompt, those that are only named with their bytes, in order."""
    left = iter(pictures)
    for piece in content if isinstance(content, list) else ():
        named = text(piece, "type") in LOCAL_PICTURES
        picture = next(left, None) if named or text(piece, "type") in PICTURES else None
        if named and picture is not None:
            yield replace(picture, uri=text(piece, "path"))
        else:
            yield from parts_of([piece], unknown)


def _last_text(history: list[object]) -> str | None:
    """The last message of a history: the summary comes after the kept messages."""
    texts = (text(piece, "text") for item in reversed(history) for piece in items(item, "content"))
    return next(filter(None, texts), None)


def _known(**facts: object) -> Json:
    return {name: value for name, value in facts.items() if value is not None}
