"""Tool calls and their results as updates of the protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hitherto.acp.protocol.content import Block, block_of
from hitherto.acp.protocol.entry_bytes import Call, Piece, Result, value_of
from hitherto.model import Json, Plan, Unknown
from hitherto.permissions import KINDS

EDITED = ("file_path", "notebook_path", "path")
PRIORITIES = ("high", "medium", "low")
STATUSES = ("pending", "in_progress", "completed")


def call_fields(call: Call, status: str = "in_progress") -> Json:
    """The call of a tool: the fields of a `tool_call`, and of the one that a permission is asked for."""
    fields: Json = {
        "toolCallId": call.id,
        "title": call.title or call.name,
        "name": call.name,
        "kind": call.kind if call.kind in KINDS else "other",
        "status": status,
    }
    if locations := _locations(value_of(call.locations)):
        fields["locations"] = locations
    if diffs := list(_edits(call, locations)):
        fields["content"] = diffs
    if memoryview(call.input):
        fields["rawInput"] = call.input
    return fields


def result_fields(result: Result, *, shows_edit: bool) -> Json:
    """The end of a tool: the fields of a `tool_call_update`.

    Content replaces what was there before; so an edit that its call shows as a diff already is left as it is.
    """
    fields: Json = {"toolCallId": result.id, "status": "failed" if result.is_error else "completed"}
    changed = _reported_diff(result)
    if changed is not None:
        fields["content"] = [changed, *(content_of(result.content) if result.is_error else ())]
        return fields
    content = content_of(result.content)
    if content and (result.is_error or not shows_edit):
        fields["content"] = content
    if memoryview(result.output):
        fields["rawOutput"] = result.output
    return fields


def content_of(parts: Sequence[Piece]) -> list[Block]:
    """What a tool says, as the content of its call."""
    return [item for part in _flat(parts) if (item := _item(part))]


def _item(part: Piece) -> Block | None:
    """A part as content of a call; a change that another agent has shown as it showed it."""
    if isinstance(part, Unknown) and isinstance(part.raw, dict) and part.raw.get("type") == "diff":
        return part.raw
    block = block_of(part)
    return None if block is None else {"type": "content", "content": block}


def plan_fields(plan: Plan) -> Json:
    """A plan: always all of its steps."""
    return {"entries": [_step(step) for step in plan.steps]}


def _step(step: Json) -> Json:
    priority, status = step.get("priority"), step.get("status")
    return {
        "content": str(step.get("content", "")),
        "priority": priority if priority in PRIORITIES else "medium",
        "status": status if status in STATUSES else "pending",
    }


def _flat(parts: Sequence[Piece]) -> Iterator[Piece]:
    for part in parts:
        if isinstance(part, Result):
            yield from _flat(part.content)
        else:
            yield part


def _locations(known: Any) -> list[Json]:
    """The places that are ones: a path, and a line if it can be one."""
    found: list[Json] = []
    for place in known if isinstance(known, list) else ():
        if isinstance(place, dict) and isinstance(place.get("path"), str):
            line = place.get("line")
            lined = isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 1 << 32
            found.append({"path": place["path"], "line": line} if lined else {"path": place["path"]})
    return found


def _edits(call: Call, locations: Sequence[Json]) -> Iterator[Block]:
    """The changes that an editing tool was asked for, if its input says them: old and new text, or a whole file. One of
    several changes may be to a file of its own."""
    given = value_of(call.input) if call.kind == "edit" else None
    if not isinstance(given, dict):
        return
    whole, edits = _path(given), given.get("edits")
    for edit in edits if isinstance(edits, list) else (given,):
        path = (_path(edit) if isinstance(edit, dict) else None) or whole
        if path is None:
            continue
        path = _absolute(path, locations)
        match edit:
            case {"old_string": str(old), "new_string": str(new)} | {"old": str(old), "new": str(new)}:
                yield {"type": "diff", "path": path, "oldText": old, "newText": new}
            case {"content": str(new)}:
                yield {"type": "diff", "path": path, "oldText": None, "newText": new}


def _path(edit: Json) -> str | None:
    return next((edit[name] for name in EDITED if isinstance(edit.get(name), str)), None)


def _absolute(path: str, locations: Sequence[Json]) -> str:
    """A path that is not absolute is the place of the call that ends so, or the only one that there is."""
    if path.startswith("/"):
        return path
    places: list[str] = [place["path"] for place in locations]
    named = next((place for place in places if place.endswith(f"/{path}")), None)
    return named or (places[0] if len(places) == 1 else path)


def _reported_diff(result: Result) -> Block | None:
    """The change that a tool of ours has made."""
    if b'"diff"' not in bytes(result.output):
        return None
    match value_of(result.output):
        case {"diff": {"path": str(path), "newText": str(new), **rest}}:
            old = rest.get("oldText")
            return {
                "type": "diff",
                "path": path,
                "oldText": old if isinstance(old, str) else None,
                "newText": new,
            }
    return None
