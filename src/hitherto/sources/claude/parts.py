"""Content blocks of Claude Code's messages as parts of our entries. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from hitherto.model import (
    Image,
    Json,
    Part,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from hitherto.sources.claude.metadata import count
from hitherto.sources.claude.records import (
    CallBlock,
    Content,
    DocumentBlock,
    ImageBlock,
    OtherBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    value_of,
)
from hitherto.sources.shared.size import OUTPUT_BYTES, json_size
from hitherto.sources.shared.tool_kinds import TITLE_CHARS, Tool, plan_of, text_of, title_of_call

PROVIDER = "anthropic"

Counts = dict[str, int]
Parts = tuple[Part, ...]

# Kinds of block that we know and keep as they are, having no part of our own for them.
_KEPT_RAW = frozenset(
    {"redacted_thinking", "tool_reference", "container_upload", "fallback", "connector_text"}
)

_fields = msgspec.json.Decoder(dict[str, Raw])


def parts_of(content: Content, unknown: Counts) -> Parts:
    """The parts of a message; blocks of new kinds are kept raw and counted."""
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    if not content:
        return ()
    if len(content) == 1:
        block = content[0]
        return _MAKERS[type(block)](block, unknown)
    return tuple(part for block in content for part in _MAKERS[type(block)](block, unknown))


def structured(raw: Raw) -> Any:
    """A tool's structured result if it is short, else those of its fields that are; None if nothing is."""
    if len(memoryview(raw)) <= OUTPUT_BYTES:
        return value_of(raw)
    try:
        fields = _fields.decode(raw)
    except (ValueError, RecursionError):
        return None
    kept: Json = {}
    room = OUTPUT_BYTES
    for name, item in fields.items():
        if (size := len(memoryview(item)) + len(name)) <= room:
            room -= size
            kept[name] = value_of(item)
    return kept or None


def _text(block: TextBlock, _: Counts) -> Parts:
    return (Text(text=block.text),)


def _thought(block: ThinkingBlock, _: Counts) -> Parts:
    return (Thought(text=block.thinking, signature=block.signature or None, provider=PROVIDER),)


def _call(block: CallBlock, _: Counts) -> Parts:
    call = ToolCall(
        id=block.id,
        name=block.name,
        input=block.input,
        kind=kind_of(block.name),
        title=title_of(block.name, block.input),
        locations=locations_of(block.input),
    )
    plan = plan_of(block.input) if block.name == "TodoWrite" else None
    return (call,) if plan is None else (call, plan)


def _result(block: ResultBlock, unknown: Counts) -> Parts:
    content = parts_of(block.content, unknown)
    return (ToolResult(id=block.tool_use_id, content=content, is_error=block.is_error is True),)


def _image(block: ImageBlock, _: Counts) -> Parts:
    source = block.source
    uri = source.url or (f"file-id:{source.file_id}" if source.file_id else None)
    return (Image(mime_type=source.media_type or "image/*", data=source.data, uri=uri),)


def _document(block: DocumentBlock, _: Counts) -> Parts:
    source = block.source
    if source.url:
        return (ResourceLink(uri=source.url, title=block.title, mime_type=source.media_type),)
    uri = f"document:{block.title or source.file_id or 'untitled'}"
    if source.type == "text":
        return (Resource(uri=uri, mime_type=source.media_type, text=source.data),)
    return (Resource(uri=uri, mime_type=source.media_type, blob=source.data),)


def _other(block: OtherBlock, unknown: Counts) -> Parts:
    given = block.raw.get("type") if isinstance(block.raw, dict) else None
    kind = given if isinstance(given, str) else "?"
    if kind.endswith("_tool_result") and isinstance(block.raw.get("tool_use_id"), str):
        return (_server_result(block.raw),)
    if kind not in _KEPT_RAW:
        count(unknown, f"block {kind}"[:100])
    return (Unknown(raw=block.raw),)


def _server_result(raw: Json) -> ToolResult:
    """The result of a tool that ran beside the model: links for pages, everything else as it came if it is short."""
    items = raw.get("content")
    found = items if isinstance(items, list) else []
    content = tuple(part for item in found if (part := _found(item)) is not None)
    left = raw if not content and json_size(raw, OUTPUT_BYTES) <= OUTPUT_BYTES else None
    failed = raw.get("is_error") is True or (isinstance(items, dict) and "error_code" in items)
    return ToolResult(id=raw["tool_use_id"], content=content, is_error=failed, output=left)


def _found(item: Any) -> Part | None:
    match item:
        case {"url": str(url)}:
            return ResourceLink(uri=url, title=item["title"] if isinstance(item.get("title"), str) else None)
        case {"type": "text", "text": str(text)}:
            return Text(text=text)
    return None


_MAKERS: dict[type, Callable[[Any, Counts], Parts]] = {
    TextBlock: _text,
    ThinkingBlock: _thought,
    CallBlock: _call,
    ResultBlock: _result,
    ImageBlock: _image,
    DocumentBlock: _document,
    OtherBlock: _other,
}


def with_output(parts: Parts, raw: Raw) -> Parts:
    """The parts with the structured result on their only tool result."""
    results = [index for index, part in enumerate(parts) if isinstance(part, ToolResult)]
    if len(results) != 1 or (output := structured(raw)) is None:
        return parts
    at = results[0]
    output = _without_picture(output, parts[at])
    return (*parts[:at], replace(parts[at], output=output), *parts[at + 1 :])


def _without_picture(output: Any, result: Part) -> Any:
    """A structured result without the bytes of a picture that the result itself has."""
    match output:
        case {"file": {"base64": str(), **told}} if isinstance(result, ToolResult) and any(
            isinstance(part, Image) and part.data for part in result.content
        ):
            return {**output, "file": told}
    return output


_PATH = ("file_path", "notebook_path", "path")
_TASK = ("description", "subject", "task_id", "taskId", "prompt")

TOOLS = {
    "Read": Tool("read", "Read", _PATH),
    "NotebookRead": Tool("read", "Read", _PATH),
    "LSP": Tool("read", "Look up", ("operation", "filePath")),
    "ReadMcpResource": Tool("read", "Read", ("uri",)),
    "ReadMcpResourceTool": Tool("read", "Read", ("uri",)),
    "Write": Tool("edit", "Write", _PATH),
    "Edit": Tool("edit", "Edit", _PATH),
    "MultiEdit": Tool("edit", "Edit", _PATH),
    "NotebookEdit": Tool("edit", "Edit", _PATH),
    "Bash": Tool("execute", "", ("command",)),
    "PowerShell": Tool("execute", "", ("command",)),
    "BashOutput": Tool("execute", "Output of", ("bash_id",)),
    "TaskOutput": Tool("execute", "Output of", ("task_id",)),
    "KillShell": Tool("execute", "Stop", ("shell_id",)),
    "KillBash": Tool("execute", "Stop", ("shell_id",)),
    "TaskStop": Tool("execute", "Stop", ("task_id",)),
    "Monitor": Tool("execute", "Watch", ("description", "command")),
    "Grep": Tool("search", "Search for", ("pattern",)),
    "Glob": Tool("search", "Find", ("pattern",)),
    "LS": Tool("search", "List", ("path",)),
    "ToolSearch": Tool("search", "Find tools for", ("query",)),
    "WebFetch": Tool("fetch", "Fetch", ("url",)),
    "WebSearch": Tool("fetch", "Search the web for", ("query",)),
    "web_search": Tool("fetch", "Search the web for", ("query",)),
    "web_fetch": Tool("fetch", "Fetch", ("url",)),
    "Task": Tool("think", "", _TASK),
    "Agent": Tool("think", "", _TASK),
    "TaskCreate": Tool("think", "Plan", _TASK),
    "TaskUpdate": Tool("think", "Update task", ("taskId",)),
    "TodoWrite": Tool("think", "Plan the work"),
    "EnterPlanMode": Tool("think", "Make a plan"),
    "ExitPlanMode": Tool("think", "Present the plan"),
    "Skill": Tool("other", "Use the skill", ("skill", "command")),
    "SlashCommand": Tool("other", "Run", ("command",)),
    "AskUserQuestion": Tool("other", "Ask the user"),
}
_UNKNOWN = Tool("other")
_LOCATED = (("file_path", "offset"), ("notebook_path", ""), ("filePath", "line"), ("path", ""))


def kind_of(name: str) -> str:
    """What the tool does: read, edit, execute, search, fetch, think or other."""
    return TOOLS.get(name, _UNKNOWN).kind


def title_of(name: str, given: Any) -> str | None:
    """The call in one line; None if the name alone says all there is."""
    tool = TOOLS.get(name)
    if tool is None:
        server, _, inner = name.removeprefix("mcp__").partition("__")
        return f"{server}: {inner}"[:TITLE_CHARS] if name.startswith("mcp__") and inner else None
    return title_of_call(tool, given)


def locations_of(given: Any) -> tuple[Json, ...]:
    """The file that the call is about, with its line if that is known."""
    for name, line in _LOCATED:
        if path := text_of(given, name):
            number = given.get(line)
            known = isinstance(number, int) and not isinstance(number, bool) and number > 0
            return ({"path": path, "line": number} if known else {"path": path},)
    return ()
