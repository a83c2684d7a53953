"""Entries as `session/update` lines: the same for a replay of what is stored and for what has just been stored. Pure.

An entry's id is the `messageId` of all its chunks, a tool call's id its `toolCallId`: both stay the same in every load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from recollect.acp.content import block_of
from recollect.acp.stored import Call, Piece, Result, Stored, Text, Thought, value_of
from recollect.acp.times import rfc3339, rfc3339_bytes
from recollect.acp.tools import called, ended, planned
from recollect.model import Json, Plan
from recollect.rpc import wire

AT = "recollect/at"
INTERRUPTED = "The end of this tool was never seen."

CHUNKS = {
    "user": "user_message_chunk",
    "assistant": "agent_message_chunk",
    "tool": "agent_message_chunk",
    # Neither the user nor the agent has said it; as a thought it is there and not in the way.
    "system": "agent_thought_chunk",
}
_LINE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":%b}}\n'
_CHUNK = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":{"sessionUpdate":"%s","messageId":%%b,'
    '"content":{"type":"text","text":%%b},"_meta":{"recollect/at":"%%b"}}}}\n'
)


class Begun(msgspec.Struct):
    """What has been shown of a message before it was stored, piece by piece."""

    entry: str
    texts: list[str] = msgspec.field(default_factory=list)
    thoughts: list[str] = msgspec.field(default_factory=list)


class Renderer:
    """Writes the updates of one session for one client. Remembers which tool calls have no end yet."""

    def __init__(self, session_id: str, *, compaction: bool) -> None:
        self._session = wire.encode(session_id)
        self._compaction = compaction
        self._open: dict[str, bool] = {}
        named = self._session.decode().replace("%", "%%")
        self._said = {role: (_CHUNK % (named, kind)).encode() for role, kind in CHUNKS.items()}
        self._thought = (_CHUNK % (named, "agent_thought_chunk")).encode()

    def update(self, kind: str, fields: Json) -> bytes:
        """The line of an update."""
        return _LINE % (self._session, wire.encode({"sessionUpdate": kind, **fields}))

    def chunk(self, entry: str, text: str, *, thought: bool) -> bytes:
        """The line of some more of a message that is being said."""
        kind = "agent_thought_chunk" if thought else "agent_message_chunk"
        return self.update(kind, {"messageId": entry, "content": {"type": "text", "text": text}})

    def plain(self, stored: Stored) -> bytes | None:
        """The one line of an entry that says one text and nothing else, as most do; None for any other."""
        parts = stored.parts
        if len(parts) != 1 or memoryview(stored.meta) or self._open:
            return None
        part = parts[0]
        if type(part) is not Text:
            return None
        return self._said[stored.role] % (stored.id, part.text, rfc3339_bytes(stored.at))

    def entry(self, stored: Stored, *, mark: bool = False, begun: Begun | None = None) -> Iterator[bytes]:
        """The lines of an entry, without what has been shown of it already. `mark`: it is the summary of a compaction,
        which stands among all that it sums up."""
        meta = value_of(stored.meta) if memoryview(stored.meta) else {}
        if mark or meta.get("compact_summary") is True:
            yield from self.compacted(stored)
            return
        if meta.get("meta") is True:  # what a program told its model, said by nobody
            return
        if stored.role == "user" and self._open:
            yield from self.interrupted()
        at = rfc3339_bytes(stored.at)
        for part in stored.parts if begun is None else _left(stored.parts, begun):
            if isinstance(part, Text):
                yield self._said[stored.role] % (stored.id, part.text, at)
            elif isinstance(part, Thought):
                yield self._thought % (stored.id, part.text, at)
            elif (line := self._other(part, stored)) is not None:
                yield line

    def interrupted(self) -> Iterator[bytes]:
        """An end for every tool call that has none."""
        for number in list(self._open):
            said = {"type": "content", "content": {"type": "text", "text": INTERRUPTED}}
            yield self.update(
                "tool_call_update", {"toolCallId": number, "status": "failed", "content": [said]}
            )
        self._open.clear()

    def _other(self, part: Piece, stored: Stored) -> bytes | None:
        meta = {"_meta": {AT: rfc3339(stored.at)}}
        match part:
            case Call():
                fields = called(part)
                self._open[part.id] = "content" in fields
                return self.update("tool_call", {**fields, **meta})
            case Result():
                fields = ended(part, shows_edit=self._open.pop(part.id, False))
                return self.update("tool_call_update", {**fields, **meta})
            case Plan():
                return self.update("plan", {**planned(part), **meta})
        block = block_of(part)
        if block is None:
            return None
        return self.update(CHUNKS[stored.role], {"messageId": stored.id, "content": block, **meta})

    def compacted(self, stored: Stored) -> Iterator[bytes]:
        """A compaction, for clients that know of such. Others are told nothing: every message that the summary stands
        for is replayed to them anyway, and nobody has said the summary."""
        if self._compaction:
            summary = [block for part in stored.parts if (block := block_of(part))]
            fields: dict[str, Any] = {"compactionId": stored.id, "status": "completed", "summary": summary}
            yield self.update("compaction_update", {**fields, "_meta": {AT: rfc3339(stored.at)}})


def _left(parts: tuple[Piece, ...], begun: Begun) -> Iterator[Piece]:
    """The parts without the texts and thoughts that have been shown."""
    shown = {Text: "".join(begun.texts), Thought: "".join(begun.thoughts)}
    said = [part for part in parts if isinstance(part, Text | Thought)]
    whole = {kind: "".join(value_of(part.text) for part in said if type(part) is kind) for kind in shown}
    skip: dict[type, int | None] = {
        # Said otherwise than it was stored: to say it again would only make it worse.
        kind: len(text) if whole[kind].startswith(text) else None
        for kind, text in shown.items()
    }
    for part in parts:
        if not isinstance(part, Text | Thought):
            yield part
            continue
        text, passed = value_of(part.text), skip[type(part)]
        if passed is None:
            continue
        skip[type(part)] = max(passed - len(text), 0)
        if rest := text[passed:]:
            yield type(part)(text=Raw(wire.encode(rest)))
