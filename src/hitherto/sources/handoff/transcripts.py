"""Transcripts as agents write them, from plain turns, with as little as each agent needs to resume. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from hitherto import __version__
from hitherto.model import Image, Json, ToolResult
from hitherto.presentation.labels import result_text, shortened
from hitherto.presentation.plain_conversation import (
    NATIVE_CHARS,
    PlainConversation,
    Turn,
    Use,
    opening,
    tagged_summary,
    whole,
)

CLAUDE_MODELS = "claude-"
LATEST = 253_402_300_799_000
"""The end of the year 9999."""
NewId = Callable[[], str]


class Heading(NamedTuple):
    """The metadata of a new transcript: id, folder, time, and the agent where the session started."""

    id: str
    cwd: str
    at: int
    begun_in: str
    title: str | None = None

    def call(self, number: int) -> str:
        """An id for a call of a tool."""
        return f"call_{self.id.replace('-', '')}_{number}"


def claude_transcript(heading: Heading, conversation: PlainConversation, new_id: NewId) -> Iterator[Json]:
    """The records of a Claude Code transcript. A summary follows a boundary, as in its own compactions."""
    parent: str | None = None
    for at, said in _claude_links(heading, conversation):
        uuid = new_id()
        common = {"isSidechain": False, "userType": "external", "cwd": heading.cwd, "sessionId": heading.id}
        yield {"parentUuid": parent, **common, **said, "uuid": uuid, "timestamp": stamp(at)}
        parent = uuid
    prompts = (
        turn.text for turn in reversed(conversation.turns) if isinstance(turn, Turn) and turn.side == "user"
    )
    prompt = next(prompts, "")
    yield {"type": "last-prompt", "lastPrompt": prompt[:200], "leafUuid": parent, "sessionId": heading.id}
    if heading.title:
        yield {"type": "custom-title", "customTitle": heading.title, "sessionId": heading.id}


def _claude_links(heading: Heading, conversation: PlainConversation) -> Iterator[tuple[int, Json]]:
    first = _first_time(heading, conversation)
    if conversation.summary is not None:
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        yield first, {**boundary, "compactMetadata": {"trigger": "manual", "preTokens": 0}}
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        yield first, {"type": "user", "message": {"role": "user", "content": conversation.summary}, **marks}
    note = {"role": "user", "content": opening(heading.begun_in)}
    yield first, {"type": "user", "message": note, "isMeta": True}
    for number, (turn, before) in enumerate(
        zip(conversation.turns, (None, *conversation.turns), strict=False)
    ):
        # A tool that is used right after words of the assistant is a part of the same answer.
        follows = isinstance(turn, Use) and isinstance(before, Turn) and before.side == "assistant"
        id = f"msg_{heading.id}_{number - follows}"
        if isinstance(turn, Use):
            yield from _claude_use(turn, id, heading.call(number))
        elif turn.side == "user":
            yield turn.at, {"type": "user", "message": {"role": "user", "content": _claude_prompt(turn)}}
        else:
            yield turn.at, _claude_answer(turn, id, {"type": "text", "text": turn.text}, "end_turn")


def _claude_prompt(turn: Turn) -> str | list[Json]:
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return [*map(_claude_picture, turn.pictures), *text] if turn.pictures else turn.text


def _claude_answer(turn: Turn | Use, id: str, block: Json, stop: str) -> Json:
    message: Json = {"id": id, "type": "message", "role": "assistant"}
    # Claude Code resumes with the model that it finds here, so it must be one of its own.
    if turn.model is not None and turn.model.startswith(CLAUDE_MODELS):
        message["model"] = turn.model
    return {"type": "assistant", "message": {**message, "content": [block], "stop_reason": stop}}


def _claude_use(use: Use, id: str, call: str) -> Iterator[tuple[int, Json]]:
    block = {"type": "tool_use", "id": call, "name": use.tool.name, "input": use.tool.given}
    yield use.at, _claude_answer(use, id, block, "tool_use")
    content = [
        *({"type": "text", "text": text} for text in filter(None, [_result_text(use.result)])),
        *map(_claude_picture, _pictures(use.result)),
    ]
    result = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": use.result.is_error}
    yield use.at, {"type": "user", "message": {"role": "user", "content": [result]}}


def _claude_picture(picture: Image) -> Json:
    source = {"type": "base64", "media_type": picture.mime_type, "data": picture.data}
    return {"type": "image", "source": source}


def codex_rollout(heading: Heading, conversation: PlainConversation, _: NewId) -> Iterator[Json]:
    """The records of a Codex rollout: items for the model, and events that are shown."""
    meta = {"id": heading.id, "session_id": heading.id, "timestamp": stamp(heading.at), "cwd": heading.cwd}
    meta |= {"originator": "hitherto", "cli_version": __version__, "source": "cli", "history_mode": "legacy"}
    yield _codex(heading.at, "session_meta", meta)
    first = _first_time(heading, conversation)
    if conversation.summary is not None:
        kept = [_codex_message("user", conversation.summary)]
        yield _codex(first, "compacted", {"message": conversation.summary, "replacement_history": kept})
    yield _codex(first, "response_item", _codex_message("user", opening(heading.begun_in)))
    for number, turn in enumerate(conversation.turns):
        if isinstance(turn, Use):
            yield from _codex_use(turn, heading.call(number))
        else:
            yield from _codex_turn(turn)


def _codex_turn(turn: Turn) -> Iterator[Json]:
    yield _codex(turn.at, "response_item", _codex_message(turn.side, turn.text, turn.pictures))
    shown: Json = {"type": "user_message" if turn.side == "user" else "agent_message", "message": turn.text}
    yield _codex(turn.at, "event_msg", shown | ({"images": _urls(turn.pictures)} if turn.pictures else {}))


def _codex_use(use: Use, call: str) -> Iterator[Json]:
    asked = {"type": "function_call", "name": use.tool.name, "arguments": json.dumps(use.tool.given)}
    yield _codex(use.at, "response_item", {**asked, "call_id": call})
    code, text, pictures = int(use.result.is_error), _result_text(use.result), _pictures(use.result)
    # As Codex tells its model what came of a command.
    told = f"Process exited with code {code}\nOutput:\n{text}"
    output = [{"type": "input_text", "text": told}, *_codex_pictures(pictures)] if pictures else told
    yield _codex(use.at, "response_item", {"type": "function_call_output", "call_id": call, "output": output})


def _codex(at: int, kind: str, payload: Json) -> Json:
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def _codex_message(role: str, text: str, pictures: Sequence[Image] = ()) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    texts = [{"type": kind, "text": text}] if text or not pictures else []
    return {"type": "message", "role": role, "content": [*_codex_pictures(pictures), *texts]}


def _codex_pictures(pictures: Sequence[Image]) -> list[Json]:
    return [{"type": "input_image", "image_url": url} for url in _urls(pictures)]


def gemini_log(heading: Heading, conversation: PlainConversation, new_id: NewId) -> Iterator[Json]:
    """The operations of a log of Gemini CLI. It has no place for a summary but a message."""
    began = stamp(heading.at)
    project = hashlib.sha256(heading.cwd.encode()).hexdigest()
    about = {"sessionId": heading.id, "projectHash": project, "startTime": began, "lastUpdated": began}
    yield {**about, "kind": "main"}
    first = _first_time(heading, conversation)
    summary = f"\n\n{tagged_summary(conversation.summary)}" if conversation.summary else ""
    yield _gemini(new_id(), first, "user", [{"text": opening(heading.begun_in) + summary}])
    for number, turn in enumerate(conversation.turns):
        if isinstance(turn, Use):
            call = _gemini_call(turn, heading.call(number))
            yield _gemini(new_id(), turn.at, "gemini", "") | {"toolCalls": [call]}
        elif turn.side == "user":
            pictures = [
                {"inlineData": {"mimeType": each.mime_type, "data": each.data}} for each in turn.pictures
            ]
            texts = [{"text": turn.text}] if turn.text else []
            yield _gemini(new_id(), turn.at, "user", [*texts, *pictures])
        else:
            yield _gemini(new_id(), turn.at, "gemini", turn.text)
    yield {"$set": {"lastUpdated": began, **({"summary": heading.title} if heading.title else {})}}


def _gemini(id: str, at: int, kind: str, content: str | list[Json]) -> Json:
    return {"id": id, "timestamp": stamp(at), "type": kind, "content": content}


def _gemini_call(use: Use, call: str) -> Json:
    text, failed = _result_text(use.result), use.result.is_error
    response = {"error" if failed else "output": text}
    answer = {"functionResponse": {"id": call, "name": use.tool.name, "response": response}}
    status = {"status": "error" if failed else "success", "timestamp": stamp(use.at)}
    shown = {"resultDisplay": text, "displayName": use.tool.name}
    return {"id": call, "name": use.tool.name, "args": use.tool.given, "result": [answer], **status, **shown}


def _first_time(heading: Heading, conversation: PlainConversation) -> int:
    return conversation.turns[0].at if conversation.turns else heading.at


def _result_text(result: ToolResult) -> str:
    """A result without its pictures, as text."""
    pictures = _pictures(result)
    others = tuple(part for part in result.content if part not in pictures)
    told = result_text(replace(result, content=others)) if others or not pictures else ""
    return whole(shortened(told, NATIVE_CHARS))


def _pictures(result: ToolResult) -> tuple[Image, ...]:
    return tuple(part for part in result.content if isinstance(part, Image) and part.data)


def _urls(pictures: Sequence[Image]) -> list[str]:
    return [f"data:{each.mime_type};base64,{each.data}" for each in pictures]


def stamp(at: int) -> str:
    """A time as all these agents write it, limited to valid dates."""
    moment = datetime.fromtimestamp(min(max(at, 0), LATEST) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
