"""Entries as `session/update` lines, the same for a replay and for a running turn. Pure.

An entry's id is the `messageId` of all its chunks, a tool call's id its `toolCallId`: both stay the same in every load.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from hitherto.acp.protocol.content import block_of
from hitherto.acp.protocol.entry_bytes import NOTHING, Call, Piece, Result, Stored, Text, Thought, value_of
from hitherto.acp.protocol.initialize import Client
from hitherto.acp.protocol.kept_updates import GATED, Kept, kept_of, updates_of
from hitherto.acp.protocol.times import rfc3339, rfc3339_pieces
from hitherto.acp.protocol.tool_calls import call_fields, plan_fields, result_fields
from hitherto.model import EPISODE, Json, Plan, Unknown
from hitherto.rpc import frames
from hitherto.updates import Compacting

AT = "hitherto/at"
INTERRUPTED = "This tool call was interrupted; its result is unknown."

CHUNKS = {
    "user": "user_message_chunk",
    "assistant": "agent_message_chunk",
    "tool": "agent_message_chunk",
    # Said by neither the user nor the agent; as a thought it is visible and out of the way.
    "system": "agent_thought_chunk",
}
_LINE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":%b}}\n'
_KEPT_LINE = b'{"jsonrpc":"2.0","method":"session/update","params":%b}\n'
_SPOKEN = (Text, Thought)
# A chunk in pieces, between which stand the id of its message, its text and its time: a replay is mostly these.
_CHUNK = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":{"sessionUpdate":"%b","messageId":'
_SAYS = b',"content":{"type":"text","text":'
_SAID = b'},"_meta":{"hitherto/at":"'
_END = b'"}}}}\n'


class ShownSoFar(msgspec.Struct):
    """The text of a message that was shown before the message was stored."""

    entry: str
    texts: list[str] = msgspec.field(default_factory=list)
    thoughts: list[str] = msgspec.field(default_factory=list)

    @property
    def length(self) -> int:
        """How many characters of it were shown."""
        return sum(map(len, self.texts)) + sum(map(len, self.thoughts))


class Renderer:
    """Writes the updates of one session for one client. Remembers which tool calls have no end yet."""

    def __init__(self, session_id: str, client: Client) -> None:
        self._session = frames.encode(session_id)
        self._client = client
        self._open: dict[str, bool] = {}
        self._terminals: dict[str, Json] = {}
        self._chunks: dict[type, dict[str, bytes]] = {
            Text: {role: _CHUNK % (self._session, kind.encode()) for role, kind in CHUNKS.items()},
            Thought: dict.fromkeys(CHUNKS, _CHUNK % (self._session, b"agent_thought_chunk")),
        }

    def update(self, kind: str, fields: Json) -> bytes:
        """The line of an update."""
        return _LINE % (self._session, frames.encode({"sessionUpdate": kind, **fields}))

    def chunk(self, entry: str, text: str, *, thought: bool) -> bytes:
        """The line of one more chunk of a message."""
        kind = "agent_thought_chunk" if thought else "agent_message_chunk"
        return self.update(kind, {"messageId": entry, "content": {"type": "text", "text": text}})

    def compacting(self, update: Compacting) -> Iterator[bytes]:
        """The lines of a compaction that goes on or has failed, for clients that support them."""
        if not self._client.compaction:
            return
        fields: Json = {"compactionId": update.entry}
        if update.text:
            yield self.update(
                "compaction_summary_chunk", {**fields, "content": {"type": "text", "text": update.text}}
            )
        else:
            error = {} if update.error is None else {"error": update.error}
            yield self.update("compaction_update", {**fields, "status": update.status, **error})

    def embed(self, call: str, terminal_id: str) -> bytes | None:
        """The line that shows a running call in a terminal of the client; None if the call does not run."""
        if call not in self._open:
            return None
        self._terminals[call] = terminal = {"type": "terminal", "terminalId": terminal_id}
        return self.update(
            "tool_call_update", {"toolCallId": call, "status": "in_progress", "content": [terminal]}
        )

    def is_embedded(self, call: str) -> bool:
        """Whether the output of this call is seen in a terminal of the client."""
        return call in self._terminals

    def entries(
        self,
        page: Sequence[Stored],
        lines: list[bytes],
        *,
        marks: Collection[int] = (),
        begun: ShownSoFar | None = None,
    ) -> None:
        """Add the lines of entries to `lines`; a line may be added in several pieces. `marks` are the positions of
        summaries among the messages they cover; `begun` is what was already shown of a single entry."""
        chunks = self._chunks
        for at, stored in enumerate(page):
            if (stored.meta is not NOTHING or at in marks) and self._render_special(
                stored, lines, at in marks, begun
            ):
                continue
            role = stored.role
            if self._open and role == "user":
                lines.extend(self.close_interrupted())
            minute, second, thousandth = rfc3339_pieces(stored.at)
            for part in stored.parts if begun is None else _unshown_parts(stored.parts, begun):
                if isinstance(part, _SPOKEN):
                    begin = chunks[type(part)][role]
                    lines += (begin, stored.id, _SAYS, part.text, _SAID, minute, second, thousandth, _END)
                elif (line := self._render_other(part, stored)) is not None:
                    lines.append(line)

    def close_interrupted(self) -> Iterator[bytes]:
        """A `failed` result for every tool call that has none."""
        for number in list(self._open):
            said = {"type": "content", "content": {"type": "text", "text": INTERRUPTED}}
            terminal = [self._terminals.pop(number)] if number in self._terminals else []
            yield self.update(
                "tool_call_update", {"toolCallId": number, "status": "failed", "content": [*terminal, said]}
            )
        self._open.clear()

    def _render_other(self, part: Piece, stored: Stored) -> bytes | None:
        meta = {"_meta": {AT: rfc3339(stored.at)}}
        match part:
            case Call():
                fields = call_fields(part)
                self._open[part.id] = "content" in fields
                return self.update("tool_call", {**fields, **meta})
            case Result():
                fields = result_fields(part, shows_edit=self._open.pop(part.id, False))
                if (terminal := self._terminals.pop(part.id, None)) is not None:
                    fields["content"] = [terminal]  # text would take its place
                return self.update("tool_call_update", {**fields, **meta})
            case Plan():
                return self.update("plan", {**plan_fields(part), **meta})
            case Unknown(raw={"sessionUpdate": str(kind)}):  # unchanged, as another agent sent it
                return _LINE % (self._session, frames.encode(part.raw)) if self._knows(kind) else None
        block = block_of(part)
        if block is None:
            return None
        return self.update(CHUNKS[stored.role], {"messageId": stored.id, "content": block, **meta})

    def _render_special(
        self, stored: Stored, lines: list[bytes], mark: bool, begun: ShownSoFar | None
    ) -> bool:
        """Whether an entry is not rendered from its parts alone: context that a program gave its model, a compaction summary,
        or a message of another agent, which is sent as it came. Of context and summaries only the latter are sent, and only
        to clients that support them: every message they cover is replayed anyway."""
        meta = {} if stored.meta is NOTHING else value_of(stored.meta)
        if mark or meta.get("compact_summary") is True:
            if stored.parts or EPISODE not in meta:  # the heading of an episode may have no words
                self._render_summary(stored, lines)
            return True
        if meta.get("meta") is True:
            return True
        kept = kept_of(meta)
        if kept is None or begun is not None:  # begun: it was shown under the id of the entry
            return False
        lines.extend(self._kept_lines(stored, kept))
        return True

    def _render_summary(self, stored: Stored, lines: list[bytes]) -> None:
        if self._client.compaction:
            summary = [block for part in stored.parts if (block := block_of(part))]
            fields: Json = {"compactionId": stored.id, "status": "completed", "summary": summary}
            lines.append(self.update("compaction_update", {**fields, "_meta": {AT: rfc3339(stored.at)}}))

    def _kept_lines(self, stored: Stored, kept: Kept) -> Iterator[bytes]:
        """The updates of another agent as they came, with the time. Chunks without a message id get that of the entry."""
        at, kinds = rfc3339(stored.at), (CHUNKS[stored.role], "agent_thought_chunk")
        if kept.message is None:
            kept = replace(kept, message=value_of(stored.id))
        for part, params in updates_of(stored.parts, kept, kinds, self._knows):
            fields = params["update"]
            if isinstance(part, Call):
                self._open[str(fields.get("toolCallId", part.id))] = True
            elif isinstance(part, Result):
                self._open.pop(str(fields.get("toolCallId", part.id)), None)
            if not isinstance(part, Unknown):
                meta = fields.get("_meta")
                fields = {**fields, "_meta": {**(meta if isinstance(meta, dict) else {}), AT: at}}
            yield _KEPT_LINE % frames.encode({"sessionId": Raw(self._session), **params, "update": fields})

    def _knows(self, kind: str) -> bool:
        """Whether the client gets updates of this kind."""
        gate = GATED.get(kind)
        return gate is None or bool(getattr(self._client, gate))


def _unshown_parts(parts: tuple[Piece, ...], begun: ShownSoFar) -> Iterator[Piece]:
    """The parts without text and thoughts that were already shown."""
    shown = {Text: "".join(begun.texts), Thought: "".join(begun.thoughts)}
    said = [part for part in parts if isinstance(part, Text | Thought)]
    whole = {kind: "".join(value_of(part.text) for part in said if type(part) is kind) for kind in shown}
    skip: dict[type, int | None] = {
        # The stored text differs from what was shown: sending it again would only make it worse.
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
            yield type(part)(text=Raw(frames.encode(rest)))
