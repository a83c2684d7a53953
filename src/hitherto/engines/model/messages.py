"""The conversation as a model is sent it, from stored entries alone. Pure: the same entries, the same messages.

Whatever the entries hold, what comes out is a conversation that providers accept: it begins and ends with the user,
and each tool call has exactly one result, in the message directly after it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from hitherto.engines.model.content import Rendered, clean, clean_value, render_parts, structured
from hitherto.engines.model.reply import extras_of
from hitherto.model import Entry, Json, Part, Text, Thought, ToolCall, ToolResult, Unknown, plain_text
from hitherto.presentation.labels import sender_name

BEGINNING = "(The beginning of this conversation is not shown.)"
NOTHING = "(An empty message.)"
GO_ON = "(Go on.)"
NO_OUTPUT = "(no output)"
INTERRUPTED = "interrupted: the tool was started, and its result is unknown"

_WHEN = datetime.fromtimestamp(0, UTC)
"""Messages carry a time that is never sent; one for all keeps equal conversations equal."""
_SIGNING = ("anthropic",)
"""Providers that know a thought of theirs by its signature only; others know it by its id too."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def model_messages(entries: Sequence[Entry], provider: str, *, named: bool = False) -> list[ModelMessage]:
    """The messages of this conversation, for a model of this provider. With `named`, each message of a person begins with
    the name of who wrote it, as far as that is known."""
    calls = pair_calls(entries)
    builder = _MessageBuilder(provider)
    for number, entry in enumerate(entries):
        if entry.role != "assistant":
            speaker = (Text(text=f"{sender_name(entry)}:"),) if named and sender_name(entry) else ()
            builder.add_user(render_parts((*speaker, *_shown_parts(entry)), provider))
        elif not entry.meta.get("synthetic"):  # another program's own words in the model's name
            extras = extras_of(entry, provider)
            for index, part in enumerate(entry.parts):
                extra = extras.get(str(index), {})
                if isinstance(part, ToolCall):
                    builder.add_call(part, calls[number, index], extra)
                else:
                    builder.add_part(part, extra)
    return builder.messages()


class _MessageBuilder:
    """Messages in the making: what the assistant says until it is answered, and what it is answered."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._messages: list[ModelMessage] = []
        self._answer_parts: list[ModelResponsePart] = []
        self._returns: list[ToolReturnPart] = []
        self._request: list[ToolReturnPart] = []
        self._user_content: list[Rendered] = []

    def add_user(self, items: Sequence[Rendered]) -> None:
        """The user's side speaks; with nothing to show, it may still have brought the results of tools."""
        if items or self._returns:
            self._end_answer()
        self._user_content.extend(items)

    def add_part(self, part: Part, extra: Json) -> None:
        mark = _provider_fields(extra, self._provider)
        match part:
            case Thought(provider=by, signature=signature):
                # Another provider's thought would be taken for text; so would one that carries no mark of its own.
                if by == self._provider and (signature or (mark.get("id") and by not in _SIGNING)):
                    self._answer_parts.append(_thought(part, {"provider_name": by, **mark}))
            case Unknown(raw={"type": "redacted_thinking", "data": str(data)}) if (
                self._provider == "anthropic"
            ):
                # As Claude's own transcripts keep a thought that only its provider can read.
                self._answer_parts.append(
                    ThinkingPart(
                        content="", id="redacted_thinking", signature=clean(data), provider_name="anthropic"
                    )
                )
            case Text(text=text) if text.strip():
                self._answer_parts.append(TextPart(content=clean(text), **mark))
            case _:
                texts = (item for item in render_parts((part,), self._provider) if isinstance(item, str))
                self._answer_parts.extend(TextPart(content=text) for text in texts)

    def add_call(self, call: ToolCall, pair: PairedCall, extra: Json) -> None:
        name = _NOT_IN_NAMES.sub("_", call.name)[:_LONGEST_NAME] or "tool"
        mark = _provider_fields(extra, self._provider)
        self._answer_parts.append(
            ToolCallPart(tool_name=name, args=_arguments(call.input), tool_call_id=pair.id, **mark)
        )
        self._returns.append(_return_part(name, pair, self._provider))

    def messages(self) -> list[ModelMessage]:
        self._end_answer()
        self._end_request(otherwise=GO_ON if self._messages else NOTHING)
        return self._messages

    def _end_answer(self) -> None:
        while self._answer_parts and isinstance(self._answer_parts[-1], ThinkingPart):
            self._answer_parts.pop()  # providers refuse a message that ends in a thought
        if self._answer_parts:
            self._end_request(otherwise=BEGINNING)
            self._messages.append(_response(self._answer_parts, self._provider))
            self._request, self._answer_parts, self._returns = self._returns, [], []

    def _end_request(self, *, otherwise: str) -> None:
        if not (self._request or self._user_content):
            self._user_content.append(otherwise)
        prompt = (
            [UserPromptPart(content=_prompt(self._user_content), timestamp=_WHEN)]
            if self._user_content
            else []
        )
        self._messages.append(ModelRequest(parts=[*self._request, *prompt]))
        self._request, self._user_content = [], []


def _shown_parts(entry: Entry) -> tuple[Part, ...]:
    """What a model is shown of an entry that is not the assistant's; results go to their calls."""
    if entry.role != "system":
        return tuple(part for part in entry.parts if not isinstance(part, ToolResult))
    text = plain_text(entry)
    if not text.strip() or entry.meta.get("error"):
        return ()
    summary = entry.meta.get("compaction") or entry.meta.get("compact_summary")
    tag = "earlier-conversation-summary" if summary else "note"
    return (Text(text=f"<{tag}>\n{text}\n</{tag}>"),)


def _response(parts: list[ModelResponsePart], provider: str) -> ModelResponse:
    marked = any(
        part.provider_name for part in parts if isinstance(part, TextPart | ThinkingPart | ToolCallPart)
    )
    return ModelResponse(parts=parts, provider_name=provider if marked else None, timestamp=_WHEN)


def _thought(part: Thought, mark: Json) -> ThinkingPart:
    signature = None if part.signature is None else clean(part.signature)
    return ThinkingPart(content=clean(part.text), signature=signature, **mark)


def _prompt(content: list[Rendered]) -> str | list[Rendered]:
    texts = [item for item in content if isinstance(item, str)]
    return "\n\n".join(texts) if len(texts) == len(content) else content


def _provider_fields(extra: Json, provider: str) -> Json:
    """The fields by which a provider knows a part as its own."""
    return (
        {"id": extra.get("id"), "provider_name": provider, "provider_details": extra.get("details")}
        if extra
        else {}
    )


def _arguments(given: Any) -> Json:
    values = clean_value(given)
    if isinstance(values, dict):
        return values
    return {} if values is None else {"input": values}


def _return_part(name: str, pair: PairedCall, provider: str) -> ToolReturnPart:
    result = pair.result or ToolResult(id=pair.id, content=(Text(text=INTERRUPTED),), is_error=True)
    items = render_parts(result.content, provider)
    if not items:
        items.append(NO_OUTPUT if result.output is None else structured(result.output))
    return ToolReturnPart(
        tool_name=name,
        content=items[0] if len(items) == 1 else items,
        tool_call_id=pair.id,
        outcome="failed" if result.is_error else "success",
        timestamp=_WHEN,
    )


PartPlace = tuple[int, int]
"""The number of an entry, and of a part in it."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


class PairedCall(msgspec.Struct):
    """A call's id on the wire, and its result, if there is one anywhere after it."""

    id: str
    result: ToolResult | None = None


def pair_calls(entries: Sequence[Entry]) -> dict[PartPlace, PairedCall]:
    """Each tool call of the assistant, by its place. Results without a call belong nowhere."""
    found: dict[PartPlace, PairedCall] = {}
    taken: set[str] = set()
    waiting: dict[str, list[PartPlace]] = {}
    for number, entry in enumerate(entries):
        for index, part in enumerate(entry.parts):
            if isinstance(part, ToolCall) and entry.role == "assistant":
                found[number, index] = PairedCall(_wire_id(part.id, taken))
                waiting.setdefault(part.id, []).append((number, index))
            elif isinstance(part, ToolResult) and (places := waiting.get(part.id)):
                found[_answered(places)].result = part
    return found


def _answered(places: list[PartPlace]) -> PartPlace:
    """Of several calls with the same id, the first one of the newest message; it waits no longer."""
    newest = places[-1][0]
    place = next(place for place in places if place[0] == newest)
    places.remove(place)
    return place


def _wire_id(given: str, taken: set[str]) -> str:
    if not _ID.fullmatch(given):
        given = f"call_{hashlib.sha256(given.encode('utf-8', 'replace')).hexdigest()[:24]}"
    found, count = given, 1
    while found in taken:
        count += 1
        found = f"{given[:32]}-{count}"
    taken.add(found)
    return found
