"""What Gemini CLI's messages consist of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hitherto.model import Image, Json, Part, Resource, ResourceLink, Text, Thought, ToolResult, Usage
from hitherto.sources.claude_tools import plan_of
from hitherto.sources.talk import Talk, number, objects, text
from hitherto.sources.tools import call_of

Block = tuple[str, Part]
"""A part, and its id."""
ENDED = frozenset({"success", "error", "cancelled"})
"""States of a call that has a result."""
INJECTED = ("<session_context>", "<hook_context>")
"""How texts begin that the program put there in the user's name."""


def calls_in(messages: Iterable[Json]) -> frozenset[str]:
    """The calls that are in the lists of calls of messages, with what came of them."""
    calls = (call for message in messages for call in objects(message.get("toolCalls")))
    return frozenset(id for call in calls if text(call, "status") in ENDED and (id := text(call, "id")))


def blocks_of(talk: Talk, message: Json, listed: frozenset[str]) -> Iterator[Block]:
    """All of a message: what was thought, said and done. Calls that are `listed` are in a list of calls, and what the content
    of any message has of them is not told a second time."""
    id, calls = message["id"], list(objects(message.get("toolCalls")))
    listed |= {own for call in calls if (own := text(call, "id"))}
    for place, thought in enumerate(objects(message.get("thoughts"))):
        told = "\n".join(filter(None, (text(thought, "subject"), text(thought, "description"))))
        yield f"{id}/thought-{place}", Thought(text=told)
    for place, piece in enumerate(_pieces(message.get("content"))):
        if _call_id(piece) not in listed and (part := _part(talk, piece)) is not None:
            yield f"{id}/{place}", part
    for call in calls:
        yield from _call(talk, id, call)


def is_given(message: Json) -> bool:
    """Whether the user gave any of this message: the program says things in their name too."""
    return any(
        not isinstance(said := piece.get("text"), str) or not said.lstrip().startswith(INJECTED)
        for piece in _pieces(message.get("content"))
    )


def _pieces(content: Any) -> Iterator[Json]:
    """Content may be a text, a part, or a list of both."""
    for each in content if isinstance(content, list) else [content]:
        if isinstance(each, str):
            yield {"text": each}
        elif isinstance(each, dict):
            yield each


def _call_id(piece: Json) -> str | None:
    """The call that a part of the content belongs to; a mark that no call has, if it has none."""
    inside = piece.get("functionCall") or piece.get("functionResponse")
    return text(inside, "id") or "" if isinstance(inside, dict) else ""


def _part(talk: Talk, piece: Json) -> Part | None:
    match piece:
        case {"text": str(said)}:
            said_how = Thought if piece.get("thought") is True else Text
            return said_how(text=said) if said else None
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            return (
                Image(mime_type=mime, data=data)
                if mime.startswith("image/")
                else Resource(uri="", mime_type=mime, blob=data)
            )
        case {"fileData": {"fileUri": str(uri)} as file}:
            return ResourceLink(uri=uri, mime_type=text(file, "mimeType"))
        case {"functionCall": {"name": str(name)} as call}:
            return call_of(text(call, "id") or name, name, call.get("args"))
        case {"functionResponse": {"name": str(name)} as answer}:
            return _response(text(answer, "id") or name, answer)
    return talk.strange(f"part {next(iter(piece), '?')}", piece)


def _response(id: str, answer: Json, *, failed: bool = False) -> ToolResult:
    response = answer.get("response")
    error, output = text(response, "error"), text(response, "output")
    said = error or output
    return ToolResult(
        id=id,
        content=(Text(text=said),) if said else (),
        is_error=failed or bool(error),
        output=None if said else response,
    )


def _call(talk: Talk, message: str, call: Json) -> Iterator[Block]:
    id, name, given = text(call, "id") or "", text(call, "name") or "?", call.get("args")
    yield f"{message}/{id}", call_of(id, name, given)
    if name == "write_todos" and (plan := plan_of(given)) is not None:
        yield f"{message}/{id}/plan", plan
    status = text(call, "status")
    if status in ENDED:
        yield f"{message}/{id}/result", _result(talk, id, call, failed=status != "success")


def _result(talk: Talk, id: str, call: Json, *, failed: bool) -> ToolResult:
    """What came of a call: as the model got it, else as it was shown."""
    content = list[Part]()
    for piece in _pieces(call.get("result")):
        if isinstance(piece.get("functionResponse"), dict):
            told = _response(id, piece["functionResponse"], failed=failed)
            content += told.content
        elif (part := _part(talk, piece)) is not None:
            content.append(part)
    shown = call.get("resultDisplay")
    if not content and isinstance(shown, str) and shown:
        content.append(Text(text=shown))
    output = shown if isinstance(shown, dict) else None
    return ToolResult(id=id, content=tuple(content), is_error=failed, output=output)


def usage_of(tokens: Any) -> Usage | None:
    """What an answer used; output counts what was thought."""
    if not isinstance(tokens, dict):
        return None
    outputs = [each for name in ("output", "thoughts") if (each := number(tokens, name)) is not None]
    return Usage(
        input=number(tokens, "input"),
        output=sum(outputs) if outputs else None,
        cache_read=number(tokens, "cached"),
    )
