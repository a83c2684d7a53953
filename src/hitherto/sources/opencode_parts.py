"""What opencode's messages consist of, in both forms. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hitherto.model import Image, Json, Part, Resource, ResourceLink, Text, Thought, ToolResult, Usage
from hitherto.sources.claude_tools import plan_of
from hitherto.sources.talk import ERROR_CHARS, Talk, dollars, number, objects, text
from hitherto.sources.tools import call_of

Block = tuple[str, Part]
"""A part, and its id."""
QUIET = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "compaction"})
"""Parts that say something about a message and are no part of it."""
FAILED = "invalid"
"""The tool that stands for a call that could not be understood, and that it calls completed."""
_DATA = re.compile(r"data:([^;,]*)[^,]*;base64,(.*)", re.DOTALL)


def old_blocks(talk: Talk, parts: Iterable[Json]) -> Iterator[Block]:
    """The parts of a message of the older form."""
    for part in parts:
        match part:
            case {"type": "tool", "callID": str(call), "tool": str(name)}:
                yield from _tool(part["id"], call, name, part.get("state"))
            case {"type": "text" | "reasoning", "text": ""}:
                pass
            case {"type": "text", "text": str(said)} | {"type": "subtask", "prompt": str(said)}:
                yield part["id"], Text(text=said)
            case {"type": "reasoning", "text": str(said)}:
                yield part["id"], Thought(text=said)
            case {"type": "file"}:
                yield part["id"], attachment(part)
            case {"type": str(kind)} if kind in QUIET:
                pass
            case _:
                yield part["id"], talk.strange(f"part {part.get('type')}", part)


def new_blocks(talk: Talk, id: str, content: Any) -> Iterator[Block]:
    """The content of an assistant's message of the newer form; `id` is the message's."""
    for place, block in enumerate(objects(content)):
        own = f"{id}/{place}"
        match block:
            case {"type": "tool", "id": str(call), "name": str(name)}:
                yield from _tool(own, call, name, block.get("state"))
            case {"type": "text" | "reasoning", "text": ""}:
                pass
            case {"type": "text", "text": str(said)}:
                yield own, Text(text=said)
            case {"type": "reasoning", "text": str(said)}:
                yield own, Thought(text=said)
            case _:
                yield own, talk.strange(f"block {block.get('type')}", block)


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
    """What a command ended with, which the tool itself calls completed."""
    return number(state.get("metadata"), "exit")


def _outcome(state: Json) -> Iterator[Part]:
    error = state.get("error")
    if told := error if isinstance(error, str) else text(error, "message"):
        yield Text(text=told)
    if output := text(state, "output"):
        yield Text(text=output)
    for block in objects(state.get("content")):
        said = text(block, "text")
        yield Text(text=said) if said else attachment(block)
    for file in objects(state.get("attachments")):
        yield attachment(file)


def attachments(told: Json) -> Iterator[Part]:
    """The files of a prompt of the newer form."""
    return map(attachment, objects(told.get("files")))


def attachment(file: Json) -> Part:
    """A file: its bytes if it has them with it, else where it is."""
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


def model_of(told: Json) -> str | None:
    """The model of an answer, with its provider's name."""
    chosen = told.get("model") if isinstance(told.get("model"), dict) else told
    provider, model = text(chosen, "providerID"), text(chosen, "modelID", "id")
    return f"{provider}:{model}" if provider and model else model


def usage_of(told: Json) -> Usage | None:
    """What an answer used; input counts what was cached, output what was thought."""
    tokens = told.get("tokens")
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
        cost=dollars(told.get("cost")),
    )


def error_of(error: Any) -> Json:
    """What went wrong with an answer; one that was stopped did not fail."""
    if not isinstance(error, dict):
        return {}
    name = text(error, "name", "type") or "error"
    if "abort" in name.lower() or "interrupt" in name.lower():
        return {"stop_reason": "aborted"}
    said = text(error.get("data"), "message") or text(error, "message") or name
    return {"error": said[:ERROR_CHARS]}
