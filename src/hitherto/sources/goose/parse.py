"""goose's sessions: rows in, entries out. Pure.

Each message says who may see it. After a compaction, the agent no longer sees the summarised messages, and the user never
sees the summary.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitherto.model import (
    Audio,
    Entry,
    Image,
    Json,
    Part,
    Resource,
    ResourceLink,
    Role,
    Text,
    Thought,
    ToolResult,
    Usage,
)
from hitherto.sources.shared.conversation import (
    Conversation,
    ConversationBuilder,
    dollars,
    moment,
    number,
    objects,
    text,
)
from hitherto.sources.shared.database import json_object, json_objects
from hitherto.sources.shared.tool_kinds import call_of
from hitherto.sources.shared.usage import total

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
QUIET = frozenset({"toolConfirmationRequest", "actionRequired", "redactedThinking", "conversationCompacted"})
"""Content that is left out: permission requests for a call, and encrypted thoughts."""
_NOTHING = {"type": "text", "text": ""}
SECONDS = 10_000_000_000
"""Times up to this are in seconds, larger ones in ms."""


def parse(messages: Iterable[Json], ledger: Iterable[Json], provider: str | None = None) -> Conversation:
    """The conversation of these messages, with the usage from the ledger."""
    builder = ConversationBuilder()
    rows = sorted((row for each in messages if (row := _row(builder, each)) is not None), key=_in_order)
    seen = False
    for place, row in enumerate(rows):
        later = rows[place + 1 :]
        if row.hidden and _is_repeated(row, later):
            builder.tally("prompt that is there again after a summary", shown=False)
            continue
        seen |= row.in_context and not row.hidden
        before = len(builder.entries)
        _add_message(builder, row, is_summary=bool(builder.entries) and not seen and _is_summary(row, later))
        builder.tally("message without text", shown=len(builder.entries) > before)
    ledger = list(ledger)
    for _ in ledger:
        builder.tally("usage", shown=False)
    conversation = builder.conversation
    return replace(conversation, entries=tuple(_with_usages(conversation.entries, ledger, provider)))


class _Row(NamedTuple):
    """A message. `hidden` from the user; `in_context` is what the agent still sees."""

    id: str
    number: int
    at: int
    role: str
    content: list[Json]
    hidden: bool
    in_context: bool


def _row(builder: ConversationBuilder, message: Json) -> _Row | None:
    content = json_objects(message, "content_json")
    if content is None:
        builder.damaged += 1
        return None
    seen = json_object(message, "metadata_json") or {}
    return _Row(
        id=text(message, "message_id") or str(message["id"]),
        number=number(message, "id") or 0,
        at=at(message["created_timestamp"]),
        role=str(message["role"]),
        content=content,
        hidden=seen.get("userVisible") is False,
        in_context=seen.get("agentVisible") is not False,
    )


def _in_order(row: _Row) -> tuple[int, int]:
    return row.at, row.number


def at(stamp: Any) -> int:
    """The time of a message in ms."""
    read = moment(stamp) or 0
    return read if read > SECONDS else read * 1000


def _is_repeated(row: _Row, later: Sequence[_Row]) -> bool:
    """Whether this is a prompt that a compaction replaced by a copy after the summary."""
    if row.in_context or row.role != "user":
        return False
    return any(each.role == "user" and not each.hidden and each.content == row.content for each in later)


def _is_summary(row: _Row, later: Sequence[_Row]) -> bool:
    """Whether this is the summary of a compaction: a note to the agent, in its own name, follows it."""
    return row.hidden and row.role == "user" and bool(later) and later[0].hidden and later[0].role != "user"


def _add_message(builder: ConversationBuilder, row: _Row, *, is_summary: bool) -> None:
    blocks = [(f"{row.id}/{place}", part) for place, part in enumerate(_parts(builder, row.content))]
    if is_summary:
        builder.add_summary(row.id, row.at, [part for _, part in blocks])
    elif row.hidden:
        builder.add_entry(row.id, row.at, "system", [part for _, part in blocks], meta={"meta": True})
    elif row.role in ROLES:
        builder.add_message(row.id, row.at, ROLES[row.role], blocks)
    else:
        builder.add_entry(
            row.id, row.at, "system", [builder.unknown_part(f"message {row.role}", row.content)]
        )


def _parts(builder: ConversationBuilder, content: Iterable[Json]) -> Iterator[Part]:
    return (
        _part(builder, block) for block in content if text(block, "type") not in QUIET and block != _NOTHING
    )


def _part(builder: ConversationBuilder, block: Json) -> Part:
    match block:
        case {"type": "thinking", "thinking": str(content)} | {"type": "reasoning", "text": str(content)}:
            return Thought(text=content, signature=text(block, "signature"))
        case {"type": "toolRequest" | "frontendToolRequest", "id": str(id), "toolCall": dict(call)}:
            return _call(id, call)
        case {"type": "toolResponse", "id": str(id), "toolResult": dict(result)}:
            return _result(builder, id, result)
        case {"type": "systemNotification", "msg": str(content)}:
            return Text(text=content)
    return _content(builder, block)


def _call(id: str, call: Json) -> Part:
    """A call; an invalid one has no name and an error."""
    value = call.get("value")
    if isinstance(value, dict) and (name := text(value, "name")):
        return call_of(id, name, value.get("arguments"))
    return call_of(id, "invalid", {"error": call.get("error")})


def _result(builder: ConversationBuilder, id: str, result: Json) -> ToolResult:
    """A tool result. The value is the result, or in older versions its content only."""
    value, error = result.get("value"), text(result, "error")
    answer = value if isinstance(value, dict) else {"content": value}
    content = [_content(builder, block) for block in objects(answer.get("content"))]
    failed = result.get("status") == "error" or answer.get("isError") is True
    return ToolResult(
        id=id,
        content=(Text(text=error),) if error else tuple(content),
        is_error=failed,
        output=answer.get("structuredContent"),
    )


def _content(builder: ConversationBuilder, block: Json) -> Part:
    """MCP content."""
    match block:
        case {"type": "text", "text": str(content)}:
            return Text(text=content)
        case {"type": "image", "data": str(data)}:
            return Image(mime_type=text(block, "mimeType") or "image/png", data=data)
        case {"type": "audio", "data": str(data)}:
            return Audio(mime_type=text(block, "mimeType") or "audio/wav", data=data)
        case {"type": "resource", "resource": {"uri": str(uri)} as inside}:
            mime, blob = text(inside, "mimeType"), text(inside, "blob")
            return Resource(uri=uri, mime_type=mime, text=text(inside, "text"), blob=blob)
        case {"type": "resource_link", "uri": str(uri)}:
            return ResourceLink(uri=uri, name=text(block, "name"), mime_type=text(block, "mimeType"))
    return builder.unknown_part(f"content {block.get('type')}", block)


def _with_usages(entries: Sequence[Entry], ledger: Iterable[Json], provider: str | None) -> Iterator[Entry]:
    """The entries, with each ledger row's usage on the answer before it, by time. Answers of the same second share the rows in
    order."""
    answers = [place for place, entry in enumerate(entries) if entry.role == "assistant"]
    times = [entries[place].at for place in answers]
    used = defaultdict[int, list[Json]](list)
    for row in ledger if answers else ():
        last = max(bisect_right(times, at(row["created_timestamp"])) - 1, 0)
        same = answers[bisect_left(times, times[last]) : last + 1]
        used[next((place for place in same if place not in used), same[-1])].append(row)
    for place, entry in enumerate(entries):
        yield _with_usage(entry, used[place], provider) if place in used else entry


def _with_usage(entry: Entry, rows: Sequence[Json], provider: str | None) -> Entry:
    usages = [_usage(row) for row in rows]
    costs = [usage.cost for usage in usages if usage.cost is not None]
    used = replace(total(usages) or Usage(), cost=sum(costs) if costs else None)
    name = next((name for row in reversed(rows) if (name := text(row, "model"))), None)
    model = f"{provider}:{name}" if provider and name else name
    return replace(entry, usage=used, tokens=used.output, model=model)


def _usage(row: Json) -> Usage:
    return Usage(
        input=number(row, "input_tokens"),
        output=number(row, "output_tokens"),
        cache_read=number(row, "cache_read_tokens"),
        cache_write=number(row, "cache_write_tokens"),
        cost=dollars(row.get("cost")),
    )
