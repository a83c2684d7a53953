"""What a model has answered, as a message to be stored; and what of it only its own provider understands.

Providers want some things back as they gave them: ids of reasoning items, signatures on text or calls. They stand in
the meta of the entry under `replay`, by the number of the part: `{"provider": …, "parts": {"0": {"id": …}}}`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pydantic_ai.messages import (
    FilePart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from hitherto.engine import Message
from hitherto.engines.tool_calls import Tool, parse_arguments
from hitherto.model import Entry, Image, Json, Part, Text, Thought, ToolCall, Usage

REPLAY = "replay"


def message_of(response: ModelResponse, provider: str, tools: Mapping[str, Tool], usage: Usage) -> Message:
    """The answer as it is stored; nothing of it is lost that is needed to send it again."""
    parts: list[Part] = []
    extras: Json = {}
    ids: set[str] = set()
    for given in response.parts:
        part = _part(given, provider, tools, ids)
        if part is None:
            continue
        if extra := _extra(given):
            extras[str(len(parts))] = extra
        parts.append(part)
    meta: Json = {REPLAY: {"provider": provider, "parts": extras}} if extras else {}
    return Message(parts=tuple(parts), model=response.model_name, usage=usage, meta=meta)


def extras_of(entry: Entry, provider: str) -> Mapping[str, Json]:
    """What this provider wants back with the parts of an entry, by their number; of another provider, nothing."""
    match entry.meta.get(REPLAY):
        case {"provider": str(by), "parts": {**parts}} if by == provider:
            return {str(number): extra for number, extra in parts.items() if isinstance(extra, dict)}
    return {}


def _part(given: ModelResponsePart, provider: str, tools: Mapping[str, Tool], ids: set[str]) -> Part | None:
    match given:
        case TextPart(content=text):
            return Text(text=text) if text else None
        case ThinkingPart(content=text, signature=signature):
            return Thought(text=text, signature=signature or None, provider=given.provider_name or provider)
        case FilePart(content=file):
            return Image(mime_type=file.media_type, data=file.base64)
        case ToolCallPart():
            return _call(given, tools, ids)
    return None


def _call(given: ToolCallPart, tools: Mapping[str, Tool], ids: set[str]) -> ToolCall:
    """A call as it is stored. Some servers give several calls of one answer the same id: each gets one of its own."""
    id, count = given.tool_call_id, 1
    while id in ids:
        count += 1
        id = f"{given.tool_call_id}-{count}"
    ids.add(id)
    values, tool = parse_arguments(given.args), tools.get(given.tool_name)
    call = ToolCall(id=id, name=given.tool_name, input=values)
    if tool is None or not isinstance(values, dict):
        return call
    return msgspec.structs.replace(
        call, kind=tool.kind, title=tool.title(values), locations=tool.locations(values)
    )


def _extra(given: ModelResponsePart) -> Json:
    if not isinstance(given, TextPart | ThinkingPart | ToolCallPart):
        return {}
    extra = {"id": given.id, "details": given.provider_details}
    try:
        return {name: value for name, value in msgspec.to_builtins(extra).items() if value}
    except (TypeError, ValueError):
        return {}
