"""Transcripts as agents write them, from plain turns, with as little as each agent needs to resume. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from hitherto import __version__
from hitherto.model import Json
from hitherto.presentation.plain_conversation import PlainConversation, Turn, opening

CLAUDE_MODELS = "claude-"
LATEST = 253_402_300_799_000
"""The end of the year 9999."""


class Heading(NamedTuple):
    """The metadata of a new transcript: id, folder, time, and the agent where the session started."""

    id: str
    cwd: str
    at: int
    begun_in: str
    title: str | None = None


def claude_transcript(
    heading: Heading, conversation: PlainConversation, new_id: Callable[[], str]
) -> Iterator[Json]:
    """The records of a Claude Code transcript. A summary follows a boundary, as in its own compactions."""
    parent: str | None = None
    first = conversation.turns[0].at if conversation.turns else heading.at
    for at, said in _claude_links(heading, conversation, first):
        uuid = new_id()
        common = {"isSidechain": False, "userType": "external", "cwd": heading.cwd, "sessionId": heading.id}
        yield {"parentUuid": parent, **common, **said, "uuid": uuid, "timestamp": stamp(at)}
        parent = uuid
    prompt = next((turn.text for turn in reversed(conversation.turns) if turn.side == "user"), "")
    yield {"type": "last-prompt", "lastPrompt": prompt[:200], "leafUuid": parent, "sessionId": heading.id}
    if heading.title:
        yield {"type": "custom-title", "customTitle": heading.title, "sessionId": heading.id}


def _claude_links(
    heading: Heading, conversation: PlainConversation, first: int
) -> Iterator[tuple[int, Json]]:
    if conversation.summary is not None:
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        yield first, {**boundary, "compactMetadata": {"trigger": "manual", "preTokens": 0}}
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        yield first, {"type": "user", "message": {"role": "user", "content": conversation.summary}, **marks}
    note = {"role": "user", "content": opening(heading.begun_in)}
    yield first, {"type": "user", "message": note, "isMeta": True}
    for number, turn in enumerate(conversation.turns):
        yield turn.at, _claude_turn(turn, f"msg_{heading.id}_{number}")


def _claude_turn(turn: Turn, id: str) -> Json:
    if turn.side == "user":
        return {"type": "user", "message": {"role": "user", "content": turn.text}}
    message: Json = {"id": id, "type": "message", "role": "assistant"}
    # Claude Code resumes with the model that it finds here, so it must be one of its own.
    if turn.model is not None and turn.model.startswith(CLAUDE_MODELS):
        message["model"] = turn.model
    message |= {"content": [{"type": "text", "text": turn.text}], "stop_reason": "end_turn"}
    return {"type": "assistant", "message": message}


def codex_rollout(heading: Heading, conversation: PlainConversation) -> Iterator[Json]:
    """The records of a Codex rollout: items for the model, and events that are shown."""
    meta = {"id": heading.id, "session_id": heading.id, "timestamp": stamp(heading.at), "cwd": heading.cwd}
    meta |= {"originator": "hitherto", "cli_version": __version__, "source": "cli", "history_mode": "legacy"}
    yield _codex(heading.at, "session_meta", meta)
    first = conversation.turns[0].at if conversation.turns else heading.at
    if conversation.summary is not None:
        kept = [_codex_message("user", conversation.summary)]
        yield _codex(first, "compacted", {"message": conversation.summary, "replacement_history": kept})
    yield _codex(first, "response_item", _codex_message("user", opening(heading.begun_in)))
    for turn in conversation.turns:
        yield _codex(turn.at, "response_item", _codex_message(turn.side, turn.text))
        shown = "user_message" if turn.side == "user" else "agent_message"
        yield _codex(turn.at, "event_msg", {"type": shown, "message": turn.text})


def _codex(at: int, kind: str, payload: Json) -> Json:
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def _codex_message(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def stamp(at: int) -> str:
    """A time as both agents write it, limited to valid dates."""
    moment = datetime.fromtimestamp(min(max(at, 0), LATEST) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
