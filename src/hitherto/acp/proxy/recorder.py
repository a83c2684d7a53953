"""Collects the updates of an agent into messages to store. Pure.

A message is complete when another begins, when a tool is called or when the turn ends. A tool call is stored once its
input is known: agents announce calls earlier, and stored entries never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.acp.protocol import content
from hitherto.acp.protocol.content import ContentBlock
from hitherto.acp.proxy.frames import value_of
from hitherto.engine import Delta, Event, Message, ToolEnded
from hitherto.limits import ENTRY_BYTES
from hitherto.model import Json, Part, Plan, Text, Thought, ToolCall, ToolResult, Unknown, Usage, encode

MOST_CHARS = ENTRY_BYTES // 16
"""A longer message is split."""
CHUNK_KINDS = {"agent_message_chunk": False, "agent_thought_chunk": True}
END_STATUSES = {"completed": False, "failed": True}
STATE_UPDATES = frozenset(
    (
        *("user_message_chunk", "available_commands_update", "current_mode_update", "config_option_update"),
        *("session_info_update", "usage_update", "notice"),
    )
)
"""Updates that are not messages of the agent: state of the session, and the user's messages."""


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None


class _Chunk(msgspec.Struct, frozen=True, rename="camel"):
    session_update: str
    content: _Block
    message_id: str | None = None


class _Call:
    """A tool call as far as it is known; `emitted` says that it has been reported."""

    def __init__(self, number: str) -> None:
        self.id, self.emitted = number, False
        self.fields: Json = {}

    def learn(self, fields: Json) -> None:
        self.fields.update((name, value) for name, value in fields.items() if value is not None)

    @property
    def is_known(self) -> bool:
        return bool(self.fields.get("rawInput")) and self.fields.get("status") not in (None, "pending")

    def part(self) -> ToolCall:
        fields = self.fields
        title, name = _text(fields.get("title")), _text(fields.get("name"))
        return ToolCall(
            id=self.id,
            name=name or title or _text(fields.get("kind")) or "tool",
            input=bounded_value(fields.get("rawInput")),
            kind=_text(fields.get("kind")),
            title=title,
            locations=_objects(bounded_value(fields.get("locations"))),
        )

    def result(self, terminals: dict[str, str], is_error: bool) -> ToolResult:
        content = results_of(self.fields.get("content"), terminals)
        output = bounded_value(self.fields.get("rawOutput"))
        return ToolResult(id=self.id, content=content, is_error=is_error, output=output)


class Collector:
    """See the module. `terminals` are the outputs of the editor's terminals, as far as they have been seen."""

    def __init__(self) -> None:
        self.terminals: dict[str, str] = {}
        self.cost: float | None = None
        self._decoder = msgspec.json.Decoder(_Chunk)
        self._message: str | None = None
        self._parts: list[Part | _Call] = []
        self._texts: list[str] = []
        self._thought = False
        self._chars = 0
        self._emitted = 0
        self._calls: dict[str, _Call] = {}
        self._ready: list[Event] = []
        self._kinds: dict[str, Callable[[Json], None]] = {
            **dict.fromkeys(CHUNK_KINDS, self._record_block),
            "tool_call": self._record_call,
            "tool_call_update": self._record_call,
            "plan": self._record_plan,
            "usage_update": self._record_usage,
        }

    @property
    def is_ready(self) -> bool:
        """Whether something is complete."""
        return bool(self._ready)

    @property
    def has_calls(self) -> bool:
        """Whether there are calls that were not emitted yet, because more updates of them may follow."""
        return any(isinstance(part, _Call) for part in self._parts)

    def __bool__(self) -> bool:
        """Whether there is anything that was not emitted yet."""
        return bool(self._ready or self._texts or self._parts)

    # Recording

    def record(self, update: Raw) -> Json | None:
        """Record an update. Returns its fields, unless it is a text chunk."""
        try:
            chunk = self._decoder.decode(update)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return self._record_other(update)
        thought = CHUNK_KINDS.get(chunk.session_update)
        if thought is None or chunk.content.type != "text" or chunk.content.text is None:
            return self._record_other(update)
        self._record_text(chunk.content.text, thought, chunk.message_id)
        return None

    def record_question(self, call: Any) -> None:
        """The user is asked about a call: it is complete."""
        if isinstance(call, dict):
            self._record_call(call)
            self.complete_message()

    def _record_other(self, update: Raw) -> Json:
        fields = value_of(update)
        if not isinstance(fields, dict):
            return {}
        kind = _text(fields.get("sessionUpdate")) or ""
        record = self._kinds.get(kind)
        if record is not None:
            record(fields)
        elif kind not in STATE_UPDATES:
            self._add(Unknown(raw=bounded_value(fields)))
        return fields

    def _record_block(self, fields: Json) -> None:
        """A chunk that is no plain text, or not written as the protocol wants it."""
        block, message = fields.get("content"), _text(fields.get("messageId"))
        match block:
            case {"type": "text", "text": str(text)}:
                self._record_text(text, CHUNK_KINDS[fields["sessionUpdate"]], message)
            case _:
                self._switch_message(message)
                self._add(part_of(block))

    def _record_plan(self, fields: Json) -> None:
        """A plan is always sent whole: the newest replaces earlier ones."""
        self._parts = [part for part in self._parts if not isinstance(part, Plan)]
        self._add(Plan(steps=_objects(bounded_value(fields.get("entries")))))

    def _record_text(self, text: str, thought: bool, message: str | None) -> None:
        if message != self._message or (self._parts and self.has_calls):
            self._switch_message(message)
        if thought is not self._thought:
            self._close()
            self._thought = thought
        self._texts.append(text)
        self._chars += len(text)
        if self._chars > MOST_CHARS:
            self.complete_message()

    def _switch_message(self, message: str | None) -> None:
        """A message of this id continues; any other message is complete."""
        if self.has_calls or (message is not None and self._message is not None and message != self._message):
            self.complete_message()
        self._message = message if message is not None else self._message

    def _record_call(self, fields: Json) -> None:
        number = _text(fields.get("toolCallId"))
        if number is None:
            return
        call = self._calls.get(number)
        if call is None:
            call = self._calls[number] = _Call(number)
            self._add(call)
        call.learn(fields)
        status = fields.get("status")
        if status in END_STATUSES:
            self._end(call, is_error=END_STATUSES[status])
        elif not call.emitted and call.is_known:
            self.complete_message()

    def _end(self, call: _Call, *, is_error: bool) -> None:
        if not call.emitted:
            self.complete_message()
        del self._calls[call.id]
        self._ready.append(ToolEnded(result=call.result(self.terminals, is_error)))

    def _record_usage(self, fields: Json) -> None:
        match fields.get("cost"):
            case {"amount": int() | float() as amount, "currency": "USD"} if 0 <= amount < 1e9:
                self.cost = float(amount)

    def _add(self, part: Part | _Call) -> None:
        self._close()
        self._parts.append(part)

    def _close(self) -> None:
        """What is being said becomes a part."""
        if self._texts:
            text = "".join(self._texts)
            self._emit_delta()
            self._parts.append(Thought(text=text) if self._thought else Text(text=text))
            self._texts, self._emitted = [], 0

    # Emitting

    def events(self) -> list[Event]:
        """The events since the last call, in order."""
        self._emit_delta()
        ready, self._ready = self._ready, []
        return ready

    def discard_emitted(self) -> None:
        """The turn was cut off: text that was emitted in pieces is stored already, the rest is emitted with what follows."""
        self._parts = [part for part in self._parts if not isinstance(part, Text | Thought)]
        self._texts, self._emitted = self._texts[self._emitted :], 0
        self._ready = [event for event in self._ready if not isinstance(event, Delta)]

    def _emit_delta(self) -> None:
        if len(self._texts) > self._emitted:
            self._ready.append(Delta(text="".join(self._texts[self._emitted :]), thought=self._thought))
            self._emitted = len(self._texts)

    def complete_message(self, usage: Usage | None = None, meta: Json | None = None) -> None:
        """The message is complete as it is."""
        self._close()
        if self._parts:
            parts = tuple(self._finished_parts(self._parts))
            self._ready.append(Message(parts=parts, usage=usage, meta=meta or {}))
        self._parts, self._message, self._chars = [], None, 0

    def end(self, usage: Usage | None = None, meta: Json | None = None) -> list[Event]:
        """The turn is over: everything that is left. Calls whose end was not reported have none."""
        self.complete_message(usage, meta)
        self._calls.clear()
        self.terminals.clear()
        return self.events()

    def _finished_parts(self, parts: list[Part | _Call]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, _Call):
                part.emitted = True
                yield part.part()
            else:
                yield part


def _objects(value: Any) -> tuple[Json, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


MOST_BYTES = ENTRY_BYTES // 4
"""Larger content is replaced by a note of its size, so that it fits into an entry with what is beside it."""
TOO_LARGE = "[{} bytes: too large to store]"


def parts_of(blocks: Any) -> tuple[Part, ...]:
    """The parts of a prompt; what is no list has none."""
    return tuple(map(part_of, blocks)) if isinstance(blocks, list) else ()


def part_of(block: Any) -> Part:
    """A content block as a part: of a kind that is not known, kept as it came."""
    size = len(encode(block))
    if size > MOST_BYTES:
        return Text(text=TOO_LARGE.format(size))
    try:
        known: ContentBlock = msgspec.convert(block, ContentBlock)
    except (msgspec.ValidationError, ValueError):
        return Unknown(raw=block)
    return content.parts_of((known,))[0]


def results_of(shown: Any, terminals: dict[str, str]) -> tuple[Part, ...]:
    """The content of a tool call. For a terminal of the editor, the output that was seen."""
    return tuple(_result_of(item, terminals) for item in shown) if isinstance(shown, list) else ()


def _result_of(item: Any, terminals: dict[str, str]) -> Part:
    match item:
        case {"type": "content", "content": block}:
            return part_of(block)
        case {"type": "terminal", "terminalId": str(number)} if number in terminals:
            return Text(text=terminals[number][-MOST_BYTES // 4 :])
    return part_of(item)


def bounded_value(value: Any) -> Any:
    """A value, or a note of its size if it is too large to store."""
    if value is None:
        return None
    size = len(encode(value))
    return value if size <= MOST_BYTES else TOO_LARGE.format(size)
