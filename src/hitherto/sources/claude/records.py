"""What a line of a Claude Code transcript says, as far as we use it. Pure: bytes in, frozen values out.

A line is decoded once, straight into `Record`; what is seldom needed stays raw. A line that says the same in an
unusual way (another type somewhere, a new kind of block, a lone surrogate) is read once more, field by field: one
strange field never costs the record.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw, field

from hitherto.model import Usage, encode

NOTHING = Raw(b"")
REQUEST_CHARS = 200
"""How much is kept of what a provider calls a request."""
_TOOL_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    """A value read from a line."""


class TextBlock(_Value, frozen=True, tag="text"):
    text: str = ""


class ThinkingBlock(_Value, frozen=True, tag="thinking"):
    thinking: str = ""
    signature: str | None = None


class CallBlock(_Value, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: Any = None


class ResultBlock(_Value, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: str | list[Block] | None = None
    is_error: bool | None = None


class MediaSource(_Value, frozen=True):
    """Where an image or a document comes from."""

    type: str = ""
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class ImageBlock(_Value, frozen=True, tag="image"):
    source: MediaSource


class DocumentBlock(_Value, frozen=True, tag="document"):
    source: MediaSource
    title: str | None = None


class OtherBlock(_Value, frozen=True, tag="\0other"):
    """A block of another kind, or one whose fields are not as they should be."""

    raw: Any


Block = TextBlock | ThinkingBlock | CallBlock | ResultBlock | ImageBlock | DocumentBlock | OtherBlock
Content = str | list[Block] | None


class Tokens(_Value, frozen=True):
    """The usage of one response so far."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Message(_Value, frozen=True):
    """The message of a user or assistant record."""

    id: str | None = None
    model: str | None = None
    content: str | list[Block] | None = None
    usage: Tokens | None = None


class Kept(_Value, frozen=True, rename="camel"):
    """Which messages a compaction kept, and the entry that they follow from then on."""

    anchor_uuid: str | None = None
    uuids: tuple[str, ...] = ()
    all_uuids: tuple[str, ...] = ()


class Segment(_Value, frozen=True, rename="camel"):
    """The older way to say which messages a compaction kept: the ends of a stretch."""

    anchor_uuid: str | None = None
    head_uuid: str | None = None
    tail_uuid: str | None = None


class CompactMetadata(_Value, frozen=True, rename="camel"):
    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    preserved_messages: Kept | None = None
    preserved_segment: Segment | None = None


class Attachment(_Value, frozen=True, rename="camel"):
    """What the program adds to the conversation; most kinds are left out, so nothing long is read of it here."""

    type: str = ""
    prompt: Raw = NOTHING
    command_mode: str | None = None
    filename: str | None = None
    content: Raw = NOTHING
    hook_name: str | None = None
    stdout: Raw = NOTHING
    stderr: Raw = NOTHING
    blocking_error: Raw = NOTHING


class Origin(_Value, frozen=True, rename="camel"):
    """The record of another session that this one is a copy of."""

    session_id: str | None = None
    message_uuid: str | None = None


class Sender(_Value, frozen=True):
    """Who a message comes from."""

    kind: str | None = None


class Record(_Value, frozen=True, rename="camel"):
    """One line. Fields that its kind does not have are at their default."""

    type: str = ""
    # What links it into the conversation
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    source_tool_assistant: str | None = field(default=None, name="sourceToolAssistantUUID")
    is_sidechain: bool = False
    agent_id: str | None = None
    team_name: str | None = None
    # What every record of the conversation says
    session_id: str | None = None
    timestamp: datetime | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    is_meta: bool = False
    # user, assistant
    message: Message | None = None
    request_id: str | None = None
    is_compact_summary: bool = False
    is_api_error_message: bool = False
    tool_use_result: Raw = NOTHING
    origin: Sender | None = None
    forked_from: Origin | None = None
    # system, attachment
    subtype: str | None = None
    level: str | None = None
    content: Raw = NOTHING
    compact_metadata: CompactMetadata | None = None
    attachment: Attachment | None = None
    # Records about the session
    custom_title: str | None = None
    ai_title: str | None = None
    tag: str | None = None
    leaf_uuid: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    relocated_cwd: str | None = None
    continued_in_session_id: str | None = None
    total_cost: float | None = field(default=None, name="totalCostUSD")


_decode = msgspec.json.Decoder(Record).decode


def read(line: bytes | memoryview) -> Record | None:
    """The record that one line holds; None if the line is not a whole JSON object."""
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(bytes(line).decode("utf-8", "replace"))
        return _leniently(value) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def blocks_of(raw: Raw) -> Content:
    """Content that was kept raw: a text, or blocks."""
    return _content(value_of(raw))


def value_of(raw: Raw) -> Any:
    """The plain value of what was kept raw; None if there is nothing, or if it cannot be read."""
    data = bytes(raw)
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def milliseconds(at: datetime) -> int:
    """The moment in milliseconds since the epoch; a time without a zone is UTC."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _leniently(value: dict[str, Any]) -> Record:
    fields = _fields(value, Record)
    if value.get("parentUuid") is not None:
        # It has a parent, whichever: without one it would begin a conversation of its own, and hide the one before it.
        fields.setdefault("parent_uuid", "")
    return Record(**fields)


def _fields(value: dict[str, Any], kind: type[_Value]) -> dict[str, Any]:
    """Those fields of a value that are as they should be."""
    fields: dict[str, Any] = {}
    for known in msgspec.structs.fields(kind):
        given = value.get(known.encode_name)
        if given is None:
            continue
        if known.name == "message":
            fields["message"] = _message(given)
        elif known.name == "attachment":
            fields["attachment"] = _attachment(given)
        elif known.type is Raw:
            fields[known.name] = Raw(encode(given))
        else:
            _take(fields, known.name, given, known.type)
    return fields


def _attachment(value: Any) -> Attachment | None:
    return Attachment(**_fields(value, Attachment)) if isinstance(value, dict) else None


def _message(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return None
    fields: dict[str, Any] = {"content": _content(value.get("content"))}
    for name, kind in (("id", str), ("model", str), ("usage", Tokens)):
        _take(fields, name, value.get(name), kind)
    return Message(**fields)


def _take(fields: dict[str, Any], name: str, value: Any, kind: Any) -> None:
    """Sets a field if the value is of its type; else the field keeps its default."""
    try:
        fields[name] = msgspec.convert(value, kind)
    except (ValueError, RecursionError):
        return


def _content(value: Any) -> Content:
    if isinstance(value, list):
        return [_block(item) for item in value]
    return value if isinstance(value, str) or value is None else [OtherBlock(raw=value)]


def _block(value: Any) -> Block:
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and kind in _TOOL_CALLS:
            value = {**value, "type": "tool_use"}
        if value.get("type") == "tool_result" and isinstance(value.get("content"), list):
            content = _content(value["content"])
            value = {key: item for key, item in value.items() if key != "content"}
            block = _converted(value)
            return (
                msgspec.structs.replace(block, content=content) if isinstance(block, ResultBlock) else block
            )
    return _converted(value)


def _converted(value: Any) -> Block:
    try:
        block: Block = msgspec.convert(value, Block)
    except (ValueError, RecursionError):
        return OtherBlock(raw=value)
    return block


def usage_of(message: Message, request: str | None) -> Usage | None:
    """The usage in a block of an answer to this request; input includes the cache."""
    tokens = message.usage
    if tokens is None:
        return None
    parts = (tokens.input_tokens, tokens.cache_read_input_tokens, tokens.cache_creation_input_tokens)
    known = [part for part in parts if part is not None]
    return Usage(
        input=sum(known) if known else None,
        output=tokens.output_tokens,
        cache_read=tokens.cache_read_input_tokens,
        cache_write=tokens.cache_creation_input_tokens,
        request=f"{message.id} {request or ''}".rstrip()[:REQUEST_CHARS] if message.id else None,
    )
