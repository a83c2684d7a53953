"""opencode's sessions: rows in, entries out. Pure.

A session has one of two forms. The older has messages and their parts in separate tables, the newer has one row for each
message. If the newer has messages, they are read, preceded by what the older has from the time before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hitherto.model import Image, Json, Part, Resource, ResourceLink, Text, Thought, ToolResult, Usage
from hitherto.sources.shared.conversation import (
    ERROR_CHARS,
    Conversation,
    ConversationBuilder,
    dollars,
    moment,
    number,
    objects,
    text,
)
from hitherto.sources.shared.database import json_object
from hitherto.sources.shared.tool_kinds import call_of, plan_of

SPOKEN = frozenset({"user", "assistant"})
NOTES = frozenset({"synthetic", "system", "skill"})
QUIET = frozenset({"agent-switched", "model-switched", "location-switched", "idle"})
"""Rows about the conversation that are not part of it."""


def parse(
    session: Json, messages: Sequence[Json], parts: Sequence[Json], rows: Sequence[Json]
) -> Conversation:
    """The conversation of a session from both forms: messages with parts, and rows."""
    reader = _Reader()
    old, new = reader.older(messages, parts), reader.intact(rows)
    if any(row["type"] in SPOKEN for row in new):
        began = min(map(_at, new))
        if any(_at(row) >= began for row in old):
            reader.leave_out("message that is in the newer table too", old)
            old = []
    else:
        reader.leave_out("row of the newer table without a message there", new)
        new = []
    shown, reverted = _parted(session, [*old, *new])
    reader.add_all(shown)
    after = reader.builder.entries[-1].id if reader.builder.entries else None
    reader.builder.add_branch(after, lambda: reader.add_all(reverted))
    return reader.builder.conversation


def _parted(session: Json, rows: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """The messages before the reverted one; and it with all after it, which are hidden until the next prompt removes them."""
    revert = json_object(session, "revert") or {}
    place, part = text(revert, "messageID"), text(revert, "partID")
    at = next((number for number, row in enumerate(rows) if row["id"] == place), len(rows))
    shown, reverted = list(rows[:at]), list(rows[at:])
    ids = [each["id"] for each in reverted[0].get("parts", ())] if reverted else []
    if part in ids:
        row, cut = reverted[0], ids.index(part)
        shown.append({**row, "parts": row["parts"][:cut]})
        reverted[0] = {**row, "parts": row["parts"][cut:], "id": f"{row['id']}/reverted", "again": True}
    return shown, reverted


def _at(row: Json) -> int:
    when = row["json"].get("time")
    created = moment(when.get("created")) if isinstance(when, dict) else None
    return created or moment(row["time_created"]) or 0


class _Reader:
    """Reads both forms into one conversation."""

    def __init__(self) -> None:
        self.builder = ConversationBuilder()
        self._tail: str | None = None
        """The first message that the next summary keeps."""

    def intact(self, rows: Iterable[Json]) -> list[Json]:
        """Rows with valid JSON, decoded; the others are counted as damaged."""
        decoded = [{**row, "id": str(row["id"]), "json": json_object(row, "data")} for row in rows]
        whole = [row for row in decoded if row["json"] is not None]
        self.builder.damaged += len(decoded) - len(whole)
        return whole

    def older(self, messages: Iterable[Json], parts: Iterable[Json]) -> list[Json]:
        """Messages of the older form, each with its parts."""
        belonging = defaultdict[str, list[Json]](list)
        for part in self.intact(parts):
            belonging[part["message_id"]].append({**part["json"], "id": part["id"]})
        return [{**row, "parts": belonging[row["id"]]} for row in self.intact(messages)]

    def leave_out(self, kind: str, rows: Iterable[Json]) -> None:
        """Count rows that are left out, with their parts."""
        for row in rows:
            for _ in (row, *row.get("parts", ())):
                self.builder.tally(kind, shown=False)

    def add_all(self, rows: Iterable[Json]) -> None:
        """Add messages, and count what became of each row."""
        for row in rows:
            before = len(self.builder.entries)
            self._add(row)
            if not row.get("again"):
                kind = f"{row['json'].get('role')} message without content" if "parts" in row else row["type"]
                self.builder.tally(str(kind), shown=len(self.builder.entries) > before)

    def _add(self, row: Json) -> None:
        if "parts" in row:
            self._message(row["id"], _at(row), row["json"], row["parts"])
        else:
            self._row(row["id"], _at(row), str(row["type"]), row["json"])

    def _message(self, id: str, at: int, data: Json, parts: Sequence[Json]) -> None:
        role = data.get("role")
        blocks = list(old_blocks(self.builder, parts))
        if role == "assistant" and data.get("summary") is True:
            texts = [part for _, part in blocks if isinstance(part, Text)]
            self.builder.add_summary(id, at, texts, [self._tail] if self._tail else [], usage=usage_of(data))
        elif role == "assistant":
            meta = error_of(data.get("error"))
            self.builder.add_message(
                id, at, role, blocks, model=model_of(data), usage=usage_of(data), meta=meta
            )
        elif role == "user":
            written = any(part.get("type") != "text" or not part.get("synthetic") for part in parts)
            self.builder.add_message(id, at, role, blocks, meta={} if written else {"meta": True})
        else:
            self.builder.add_entry(id, at, "system", [self.builder.unknown_part(f"message {role}", data)])
        for part in parts:
            if part.get("type") == "compaction":
                self._tail = text(part, "tail_start_id")

    def _row(self, id: str, at: int, kind: str, data: Json) -> None:
        builder = self.builder
        if kind == "user":
            texts = [Text(text=prompt)] if (prompt := text(data, "text")) else []
            builder.add_entry(id, at, "user", [*texts, *attachments(data)])
        elif kind == "assistant":
            blocks, meta = new_blocks(builder, id, data.get("content")), error_of(data.get("error"))
            builder.add_message(
                id, at, "assistant", blocks, model=model_of(data), usage=usage_of(data), meta=meta
            )
        elif kind == "compaction":
            self._compaction(id, at, data)
        elif kind == "shell":
            builder.add_entry(id, at, "user", [_command(data)])
        elif kind in NOTES:
            builder.add_entry(id, at, "system", [Text(text=text(data, "text") or "")], meta={"meta": True})
        elif kind not in QUIET:
            builder.add_entry(id, at, "system", [builder.unknown_part(kind, data)])

    def _compaction(self, id: str, at: int, data: Json) -> None:
        """A finished summary; an unfinished or failed one does not count."""
        if (summary := text(data, "summary")) and data.get("status", "completed") == "completed":
            self.builder.add_summary(id, at, [Text(text=summary)], usage=usage_of(data))


def _command(data: Json) -> Text:
    """A command that the user ran within the conversation."""
    given, code = data.get("output"), data.get("exit")
    output = given if isinstance(given, str) else text(given, "output", "text") or ""
    ended = f"\n(exit code {code})" if isinstance(code, int) and code else ""
    return Text(text=f"$ {text(data, 'command') or ''}\n{output}{ended}")


Block = tuple[str, Part]
"""A part, and its id."""
QUIET_PARTS = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "compaction"})
"""Parts about a message that are not part of it."""
FAILED = "invalid"
"""The tool name of an invalid call, which opencode marks as completed."""
_DATA = re.compile(r"data:([^;,]*)[^,]*;base64,(.*)", re.DOTALL)


def old_blocks(builder: ConversationBuilder, parts: Iterable[Json]) -> Iterator[Block]:
    """The parts of a message of the older form."""
    for part in parts:
        blocks = list(_old_part(builder, part))
        builder.tally(f"part {part.get('type')}", shown=bool(blocks))
        yield from blocks


def _old_part(builder: ConversationBuilder, part: Json) -> Iterator[Block]:
    match part:
        case {"type": "tool", "callID": str(call), "tool": str(name)}:
            yield from _tool(part["id"], call, name, part.get("state"))
        case {"type": "text" | "reasoning", "text": ""}:
            pass
        case {"type": "text", "text": str(content)} | {"type": "subtask", "prompt": str(content)}:
            yield part["id"], Text(text=content)
        case {"type": "reasoning", "text": str(content)}:
            yield part["id"], Thought(text=content)
        case {"type": "file"}:
            yield part["id"], attachment(part)
        case {"type": str(kind)} if kind in QUIET_PARTS:
            pass
        case _:
            yield part["id"], builder.unknown_part(f"part {part.get('type')}", part)


def new_blocks(builder: ConversationBuilder, id: str, content: Any) -> Iterator[Block]:
    """The content of an assistant's message of the newer form; `id` is the message's."""
    for place, block in enumerate(objects(content)):
        own = f"{id}/{place}"
        match block:
            case {"type": "tool", "id": str(call), "name": str(name)}:
                yield from _tool(own, call, name, block.get("state"))
            case {"type": "text" | "reasoning", "text": ""}:
                pass
            case {"type": "text", "text": str(content)}:
                yield own, Text(text=content)
            case {"type": "reasoning", "text": str(content)}:
                yield own, Thought(text=content)
            case _:
                yield own, builder.unknown_part(f"block {block.get('type')}", block)


def _tool(own: str, call: str, name: str, state: Any) -> Iterator[Block]:
    state = state if isinstance(state, dict) else {}
    given = state.get("input")
    yield own, call_of(call, name, given)
    if name == "todowrite" and (plan := plan_of(given)) is not None:
        yield f"{own}/plan", plan
    if state.get("status") in ("completed", "error"):
        failed = state["status"] == "error" or name == FAILED or bool(_exit(state))
        content = tuple(_outcome(state))
        yield f"{own}/result", ToolResult(id=call, content=content, is_error=failed)


def _exit(state: Json) -> int | None:
    """The exit code of a command, which opencode marks as completed."""
    return number(state.get("metadata"), "exit")


def _outcome(state: Json) -> Iterator[Part]:
    error = state.get("error")
    if message := error if isinstance(error, str) else text(error, "message"):
        yield Text(text=message)
    if output := text(state, "output"):
        yield Text(text=output)
    for block in objects(state.get("content")):
        content = text(block, "text")
        yield Text(text=content) if content else attachment(block)
    for file in objects(state.get("attachments")):
        yield attachment(file)


def attachments(data: Json) -> Iterator[Part]:
    """The files of a prompt of the newer form."""
    return map(attachment, objects(data.get("files")))


def attachment(file: Json) -> Part:
    """A file: its bytes if they are there, else its address."""
    source = file.get("source")
    uri = text(file, "url", "uri") or text(source, "uri", "url", "path") or ""
    name = text(file, "filename", "name") or text(source, "path")
    mime, data = text(file, "mime", "mimeType"), text(file, "data")
    if inline := _DATA.fullmatch(uri):
        mime, data, uri = mime or inline[1], inline[2], ""
    if data and mime and mime.startswith("image/"):
        return Image(mime_type=mime, data=data)
    if data:
        return Resource(uri=uri or name or "", mime_type=mime, blob=data)
    return ResourceLink(uri=uri, name=name, mime_type=mime)


def model_of(data: Json) -> str | None:
    """The model of an answer, with its provider's name."""
    chosen = data.get("model") if isinstance(data.get("model"), dict) else data
    provider, model = text(chosen, "providerID"), text(chosen, "modelID", "id")
    return f"{provider}:{model}" if provider and model else model


def usage_of(data: Json) -> Usage | None:
    """The usage of an answer; input includes the cache, output includes thoughts."""
    tokens = data.get("tokens")
    if not isinstance(tokens, dict):
        return None
    cache = tokens.get("cache")
    read, write = number(cache, "read"), number(cache, "write")
    inputs = [each for each in (number(tokens, "input"), read, write) if each is not None]
    outputs = [each for each in (number(tokens, "output"), number(tokens, "reasoning")) if each is not None]
    return Usage(
        input=sum(inputs) if inputs else None,
        output=sum(outputs) if outputs else None,
        cache_read=read,
        cache_write=write,
        cost=dollars(data.get("cost")),
    )


def error_of(error: Any) -> Json:
    """The error of an answer; a stopped answer has not failed."""
    if not isinstance(error, dict):
        return {}
    name = text(error, "name", "type") or "error"
    if "abort" in name.lower() or "interrupt" in name.lower():
        return {"stop_reason": "aborted"}
    message = text(error.get("data"), "message") or text(error, "message") or name
    return {"error": message[:ERROR_CHARS]}
