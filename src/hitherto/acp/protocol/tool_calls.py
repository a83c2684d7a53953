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


def call_fields(call: Call) -> Json:
    """The fields of a `tool_call`, and of the call in a permission request. It is `pending` until it is permitted, then in
    progress, then ended: never back."""
    fields: Json = {
        "toolCallId": call.id,
        "title": call.title or call.name,
        "name": call.name,
        "kind": call.kind if call.kind in KINDS else "other",
        "status": "pending",
    }
    if locations := _locations(value_of(call.locations)):
        fields["locations"] = locations
    if diffs := list(_edits(call, locations)):
        fields["content"] = diffs
    if memoryview(call.input):
        fields["rawInput"] = call.input
    return fields


def result_fields(result: Result, *, shows_edit: bool) -> Json:
    """The fields of the `tool_call_update` with a result.

    Content replaces earlier content, so an edit that its call already shows as a diff gets none.
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
    """Output of a tool as the content of its call."""
    return [item for part in _flat(parts) if (item := _item(part))]


def _item(part: Piece) -> Block | None:
    """A part as content of a call; a diff of another agent is kept unchanged."""
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
    """The valid locations: a path, and a line if it is valid."""
    found: list[Json] = []
    for place in known if isinstance(known, list) else ():
        if isinstance(place, dict) and isinstance(place.get("path"), str):
            line = place.get("line")
            lined = isinstance(line, int) and not isinstance(line, bool) and 0 <= line < 1 << 32
            found.append({"path": place["path"], "line": line} if lined else {"path": place["path"]})
    return found


def _edits(call: Call, locations: Sequence[Json]) -> Iterator[Block]:
    """The diffs of an editing tool, if its input has them: old and new text, or a whole file. Each of several changes may
    name its own file."""
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
    """The absolute path: that of the call's location that ends with this path, or of its only location."""
    if path.startswith("/"):
        return path
    places: list[str] = [place["path"] for place in locations]
    named = next((place for place in places if place.endswith(f"/{path}")), None)
    return named or (places[0] if len(places) == 1 else path)


def _reported_diff(result: Result) -> Block | None:
    """The diff that a tool of this program reports."""
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
