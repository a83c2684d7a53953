"""Collects the updates of an agent into messages to store. Pure.

A message is complete when another begins, when a tool is called or when the turn ends. A tool call is stored once its
input is known: agents announce calls earlier, and stored entries never change. What an update has that no part of an
entry can hold is stored beside the parts, so that it can be sent again as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from hitherto.acp.protocol import content
from hitherto.acp.protocol.content import ContentBlock
from hitherto.acp.protocol.kept_updates import KEY, TERMINAL, Kept, difference, plain_text, rest_of
from hitherto.acp.proxy.frames import value_of
from hitherto.engine import Delta, Event, Heard, Message, ToolEnded
from hitherto.limits import ENTRY_BYTES
from hitherto.model import Json, Part, Plan, Text, Thought, ToolCall, ToolResult, Unknown, Usage, encode

MOST_CHARS = ENTRY_BYTES // 16
"""A longer message is split."""
MOST_ENDED = 10_000
"""How many calls are remembered that have ended."""
USER = "user_message_chunk"
CHUNK_KINDS = {"agent_message_chunk": False, "agent_thought_chunk": True}
END_STATUSES = {"completed": False, "failed": True}
RESULT_FIELDS = ("status", "content", "rawOutput")
STATE_UPDATES = frozenset(
    (
        *("available_commands_update", "current_mode_update", "config_option_update"),
        *("session_info_update", "usage_update", "notice"),
    )
)
"""Updates that are not messages: the state of the session."""


class _Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: str = ""
    text: str | None = None


class _Chunk(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A chunk of text that has nothing but its text."""

    session_update: str
    content: _Block
    message_id: str | None = None


class _Call:
    """A tool call as far as it is known; `emitted` says that it has been reported, `later` is what was said of it since."""

    def __init__(self, number: str) -> None:
        self.id, self.emitted = number, False
        self.params: Json = {}
        self.later: Json = {}

    @property
    def fields(self) -> Json:
        """Everything that is known."""
        fields: Json = merged(self.params, self.later).get("update", {})
        return fields

    def learn(self, params: Json) -> None:
        """Some more is known. What comes with the end of the call is stored with its result."""
        fields = params["update"]
        ends = fields.get("status") in END_STATUSES
        if self.emitted or (ends and self.params):
            self.later = merged(self.later, params)
        elif ends:
            of_result = {name: fields[name] for name in RESULT_FIELDS if name in fields}
            of_call = {name: value for name, value in fields.items() if name not in RESULT_FIELDS}
            self.params, self.later = {**params, "update": of_call}, {"update": of_result}
        else:
            self.params = merged(self.params, params)

    @property
    def is_known(self) -> bool:
        fields = self.params["update"]
        return bool(fields.get("rawInput")) and fields.get("status") not in (None, "pending")

    def part(self) -> ToolCall:
        fields = self.params["update"]
        title, name = _text(fields.get("title")), _text(fields.get("name"))
        return ToolCall(
            id=self.id,
            name=name or title or _text(fields.get("kind")) or "tool",
            input=fields.get("rawInput"),
            kind=_text(fields.get("kind")),
            title=title,
            locations=_objects(fields.get("locations")),
        )

    def kept_part(self) -> tuple[ToolCall, Json | None]:
        """The call as it is stored, and what stands beside it."""
        part = self.part()
        fields = {**self.params["update"], "sessionUpdate": "tool_call", "toolCallId": self.id}
        return part, rest_of("", {**self.params, "update": fields}, part, None)

    def ended(self, terminals: dict[str, str], is_error: bool) -> ToolEnded:
        """The end of the call. What was said of it with the end is its result; content and output may have come earlier."""
        fields = self.fields
        content, output = fields.get("content"), fields.get("rawOutput")
        result = ToolResult(
            id=self.id, content=results_of(content, terminals), is_error=is_error, output=output
        )
        shown = {name: fields[name] for name in RESULT_FIELDS if fields.get(name) is not None}
        if isinstance(content, list):
            shown["content"] = [_terminal_text(item, terminals) for item in content]
        own = {"sessionUpdate": "tool_call_update", "toolCallId": self.id}
        shown = {**self.later.get("update", {}), **shown, **own}
        rest = rest_of("", {**self.later, "update": shown}, result, None)
        beside = {"0": rest} if rest is not None and len(encode(rest)) <= MOST_BYTES else {}
        return ToolEnded(result=result, meta=kept_meta(Kept(rest=beside)))


Said = tuple[Part | _Call, Any]
"""A part of a message, and what stands beside it."""


class Collector:
    """See the module. `terminals` are the outputs of the editor's terminals, as far as they have been seen."""

    def __init__(self) -> None:
        self.terminals: dict[str, str] = {}
        self.cost: float | None = None
        self.states: dict[str, Json] = {}
        self._decoder = msgspec.json.Decoder(_Chunk)
        self._message: str | None = None
        self._parts: list[Said] = []
        self._texts: list[str] = []
        self._runs: list[list[Any]] = []
        self._thought = False
        self._chars = 0
        self._emitted = 0
        self._calls: dict[str, _Call] = {}
        self._ended: set[str] = set()
        self._heard: list[tuple[str | None, Said]] = []
        self._expected: list[str] = []
        self._prompt: str | None = None
        self._ready: list[Event] = []
        self._kinds: dict[str, Callable[[Json], None]] = {
            **dict.fromkeys(CHUNK_KINDS, self._record_block),
            USER: self._record_heard,
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
        return any(isinstance(part, _Call) for part, _ in self._parts)

    def __bool__(self) -> bool:
        """Whether there is anything that was not emitted yet."""
        return bool(self._ready or self._texts or self._parts or self._heard)

    # Recording

    def record(self, update: Raw, beside: Json | None = None) -> Json | None:
        """Record an update; `beside` are other members of its parameters. Returns its fields, unless it is a text chunk."""
        if beside is None:
            try:
                chunk = self._decoder.decode(update)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                return self._record_other(update, {})
            thought = CHUNK_KINDS.get(chunk.session_update)
            if thought is not None and chunk.content.type == "text" and chunk.content.text is not None:
                self._record_text(chunk.content.text, thought, chunk.message_id)
                return None
        return self._record_other(update, beside or {})

    def record_question(self, call: Any) -> None:
        """The user is asked about a call: it is complete."""
        if isinstance(call, dict):
            self._record_call({"update": bounded_fields(call)})
            self.complete_message()

    def expect_echo(self, parts: Iterable[Part]) -> None:
        """The user has said this, and it is stored: if the agent repeats it, that is not another message."""
        self._expected.append(_spoken(parts))

    def hear(self, parts: tuple[Part, ...]) -> None:
        """The user says something while the agent answers."""
        self.complete_message()
        self._ready.append(Heard(parts=parts))
        self.expect_echo(parts)

    def _record_other(self, update: Raw, beside: Json) -> Json:
        fields = value_of(update)
        if not isinstance(fields, dict):
            return {}
        kind = _text(fields.get("sessionUpdate")) or ""
        record = self._kinds.get(kind)
        if kind != USER:
            self._end_heard()
        if kind in STATE_UPDATES:
            self.states[kind] = fields
        if record is not None:
            record({**beside, "update": bounded_fields(fields)})
        elif kind not in STATE_UPDATES:
            self._record_unknown({**beside, "update": bounded_fields(fields)})
        return fields

    def _record_unknown(self, params: Json) -> None:
        self._add(Unknown(raw=params["update"]), difference(params, {"update": params["update"]}))

    def _record_block(self, params: Json) -> None:
        """A chunk that is not plain text, or has other fields, or is not written as the protocol wants it."""
        fields = params["update"]
        block, message, kind = fields.get("content"), _text(fields.get("messageId")), fields["sessionUpdate"]
        match block:
            case {"type": "text", "text": str(text)}:
                rest = difference(params, _with_message(plain_text(kind, text, message), fields))
                self._record_text(text, CHUNK_KINDS[kind], message, rest)
            case _:
                self._switch_message(message)
                part = part_of(block)
                self._add(part, rest_of(kind, params, part, message))

    def _record_heard(self, params: Json) -> None:
        """A message of the user, from the agent."""
        fields = params["update"]
        message, part = _text(fields.get("messageId")), part_of(fields.get("content"))
        if self._heard and self._heard[0][0] != message:
            self._end_heard()
        self._heard.append((message, (part, _rest_of_chunk(params, part, message))))

    def _end_heard(self) -> None:
        """The message of the user is complete: one that is stored already is only known by its id."""
        if not self._heard:
            return
        (message, _), said = self._heard[0], [said for _, said in self._heard]
        self._heard = []
        text = _spoken(part for part, _ in said if not isinstance(part, _Call))
        if text in self._expected:
            del self._expected[: self._expected.index(text) + 1]
            self._prompt = message
            return
        self.complete_message()
        parts, rest = _kept_parts(said)
        kept = Kept(message, rest)
        self._ready.append(Heard(parts=parts, meta=kept_meta(kept) if kept != Kept() else {}))

    def _record_plan(self, params: Json) -> None:
        plan = Plan(steps=_objects(params["update"].get("entries")))
        self._add(plan, rest_of("", params, plan, None))

    def _record_text(self, text: str, thought: bool, message: str | None, rest: Json | None = None) -> None:
        if self._heard:
            self._end_heard()
        if message != self._message or (self._parts and self.has_calls):
            self._switch_message(message)
        if thought is not self._thought:
            self._close()
            self._thought = thought
        self._texts.append(text)
        if rest is not None or self._runs:
            self._add_run(text, rest)
        self._chars += len(text)
        if self._chars > MOST_CHARS:
            self.complete_message()

    def _add_run(self, text: str, rest: Json | None) -> None:
        """What stands beside a stretch of the text; stretches before the first that has something have nothing."""
        if not self._runs and (before := sum(map(len, self._texts[:-1]))):
            self._runs.append([before, None])
        if self._runs and self._runs[-1][1] == rest:
            self._runs[-1][0] += len(text)
        else:
            self._runs.append([len(text), rest])

    def _switch_message(self, message: str | None) -> None:
        """A message of this id continues; any other message is complete."""
        spoken = self._texts or any(not isinstance(part, Plan | Unknown) for part, _ in self._parts)
        if self.has_calls or (message != self._message and (spoken or self._message is not None)):
            self.complete_message()
        self._message = message

    def _record_call(self, params: Json) -> None:
        fields = params["update"]
        number = _text(fields.get("toolCallId"))
        if number is None:
            self._record_unknown(params)
            return
        call = self._calls.get(number)
        if call is None and number in self._ended and fields.get("sessionUpdate") != "tool_call":
            self._record_unknown(params)  # an afterthought: the call and its end are stored
            return
        if call is None:
            call = self._calls[number] = _Call(number)
            self._add(call)
        call.learn(params)
        status = fields.get("status")
        if status in END_STATUSES:
            self._end(call, is_error=END_STATUSES[status])
        elif not call.emitted and call.is_known:
            self.complete_message()

    def _end(self, call: _Call, *, is_error: bool) -> None:
        if not call.emitted:
            self.complete_message()
        del self._calls[call.id]
        if len(self._ended) >= MOST_ENDED:
            self._ended.clear()
        self._ended.add(call.id)
        self._ready.append(call.ended(self.terminals, is_error))

    def _record_usage(self, params: Json) -> None:
        match params["update"].get("cost"):
            case {"amount": int() | float() as amount, "currency": "USD"} if 0 <= amount < 1e9:
                self.cost = float(amount)

    def _add(self, part: Part | _Call, rest: Json | None = None) -> None:
        self._close()
        self._parts.append((part, rest))

    def _close(self) -> None:
        """What is being said becomes a part."""
        if self._texts:
            text = "".join(self._texts)
            self._emit_delta()
            part = Thought(text=text) if self._thought else Text(text=text)
            self._parts.append((part, self._runs or None))
            self._texts, self._emitted, self._runs = [], 0, []

    # Emitting

    def events(self) -> list[Event]:
        """The events since the last call, in order."""
        self._emit_delta()
        ready, self._ready = self._ready, []
        return ready

    def discard_emitted(self) -> None:
        """The turn was cut off: text that was emitted in pieces is stored already, the rest is a message."""
        self._parts = [said for said in self._parts if not isinstance(said[0], Text | Thought)]
        self._texts, self._emitted, self._runs = self._texts[self._emitted :], 0, []
        self._ready = [event for event in self._ready if not isinstance(event, Delta)]
        self.complete_message()

    def _emit_delta(self) -> None:
        if len(self._texts) > self._emitted:
            self._ready.append(Delta(text="".join(self._texts[self._emitted :]), thought=self._thought))
            self._emitted = len(self._texts)

    def complete_message(self, usage: Usage | None = None, meta: Json | None = None) -> None:
        """The message is complete as it is."""
        self._close()
        if self._parts:
            has_calls = self.has_calls
            parts, rest = _kept_parts(self._parts)
            kept = Kept(self._message, rest, self._prompt)
            beside = kept_meta(kept) if has_calls or kept != Kept() else {}
            self._ready.append(Message(parts=parts, usage=usage, meta={**(meta or {}), **beside}))
            self._prompt = None
        self._parts, self._message, self._chars = [], None, 0

    def end(self, usage: Usage | None = None, meta: Json | None = None) -> list[Event]:
        """The turn is over: everything that is left. Calls whose end was not reported have none."""
        self._end_heard()
        self.complete_message(usage, meta)
        self._calls.clear()
        self.terminals.clear()
        self._expected.clear()
        return self.events()


def _kept_parts(said: Sequence[Said]) -> tuple[tuple[Part, ...], dict[str, Any]]:
    """The parts of a message as they are stored, and what stands beside them."""
    parts: list[Part] = []
    rest: dict[str, Any] = {}
    for at, (part, beside) in enumerate(said):
        if isinstance(part, _Call):
            part.emitted = True
            part, beside = part.kept_part()
        parts.append(part)
        if beside is not None and len(encode(beside)) <= MOST_BYTES:
            rest[str(at)] = beside
    return tuple(parts), rest


def kept_meta(kept: Kept) -> Json:
    """What an entry's meta holds of it."""
    return {KEY: msgspec.to_builtins(kept)}


def merged(known: Json, more: Json, *, deep: bool = False) -> Json:
    """What is known, with what is said later: null changes nothing, and of `_meta` everything is kept."""
    found = dict(known)
    for name, value in more.items():
        before = found.get(name)
        if isinstance(before, dict) and isinstance(value, dict) and (deep or name in ("update", "_meta")):
            found[name] = merged(before, value, deep=deep or name == "_meta")
        elif value is not None or name not in found:
            found[name] = value
    return found


def _with_message(plain: Json, fields: Json) -> Json:
    """An id of a message that is written as null is as none."""
    if "messageId" in fields and _text(fields["messageId"]) is None:
        plain["update"]["messageId"] = fields["messageId"]
    return plain


def _rest_of_chunk(params: Json, part: Part, message: str | None) -> Any:
    """What stands beside a chunk of the user's, which is kept by itself."""
    kind = params["update"]["sessionUpdate"]
    if isinstance(part, Text):
        rest = difference(params, _with_message(plain_text(kind, part.text, message), params["update"]))
        return None if rest is None else [[len(part.text), rest]]
    return rest_of(kind, params, part, message)


def _spoken(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def _terminal_text(item: Any, terminals: dict[str, str]) -> Any:
    """What stands for a terminal of the editor whose output was seen: the terminal itself is gone when this is replayed."""
    match item:
        case {"type": "terminal", "terminalId": str(number)} if number in terminals:
            text = terminals[number][-MOST_BYTES // 4 :]
            return {"type": "content", "content": {"type": "text", "text": text}, "_meta": {TERMINAL: number}}
    return item


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


def bounded_fields(fields: Json) -> Json:
    """The fields of an update, each bounded; content stays content."""
    found = {name: bounded_value(value) for name, value in fields.items()}
    if isinstance(fields.get("content"), dict) and isinstance(found["content"], str):
        found["content"] = {"type": "text", "text": found["content"]}
    return found


def bounded_value(value: Any) -> Any:
    """A value, or a note of its size if it is too large to store."""
    if value is None:
        return None
    size = len(encode(value))
    return value if size <= MOST_BYTES else TOO_LARGE.format(size)
