"""Lines of Codex's rollouts, decoded only as far as needed. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from hitherto.claude.lines import decode_object, encode
from hitherto.model import Image, Json, Part, ResourceLink, Text, Unknown
from hitherto.sources.shared.conversation import moment

NO_KIND = "?"


class Record(NamedTuple):
    """A line: its kind, its time, its number in the thread if it has one, and its payload as JSON.

    `size` is the length of the line in bytes."""

    kind: str
    at: int | None
    ordinal: int | None
    data: bytes
    size: int

    @property
    def type(self) -> str:
        """The type of the payload, found without decoding the rest."""
        try:
            return _head.decode(self.data).type
        except (ValueError, RecursionError):
            return text(decode_object(self.data), "type") or NO_KIND

    def payload(self) -> Json:
        """The decoded payload."""
        return decode_object(self.data)


class _Line(msgspec.Struct):
    type: str
    payload: Raw
    timestamp: str | None = None
    ordinal: int | None = None


class _Head(msgspec.Struct):
    type: str = NO_KIND


_line = msgspec.json.Decoder(_Line)
_head = msgspec.json.Decoder(_Head)


def read(line: bytes) -> Record:
    """The record in a line that is a JSON object."""
    try:
        decoded = _line.decode(line)
    except (ValueError, RecursionError):
        return _leniently(line)
    return Record(decoded.type, moment(decoded.timestamp), decoded.ordinal, bytes(decoded.payload), len(line))


def _leniently(line: bytes) -> Record:
    """A line with a value of an unexpected type, or a bare item as the first versions wrote it."""
    value = decode_object(line)
    ordinal = value.get("ordinal")
    number = ordinal if isinstance(ordinal, int) and not isinstance(ordinal, bool) else None
    at, kind = moment(value.get("timestamp")), text(value, "type")
    if "payload" in value:
        payload = value["payload"] if isinstance(value["payload"], dict) else {}
        return Record(kind or NO_KIND, at, number, encode(payload), len(line))
    if kind is not None:
        return Record("response_item", at, number, line, len(line))
    first = "session_meta" if text(value, "id") and at is not None else NO_KIND
    return Record("bookkeeping" if "record_type" in value else first, at, number, line, len(line))


def text(value: Any, *names: str) -> str | None:
    """The first of these fields that is a non-empty text."""
    if isinstance(value, dict):
        for name in names:
            field = value.get(name)
            if isinstance(field, str) and field:
                return field
    return None


def fields(value: Any, name: str) -> Json:
    """A field that is an object, else an empty one."""
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, dict) else {}


def items(value: Any, name: str) -> list[Any]:
    """A field that is a list, else an empty one."""
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, list) else []


def whole(value: Any, name: str) -> int | None:
    """A field that is a whole number."""
    field = value.get(name) if isinstance(value, dict) else None
    return field if isinstance(field, int) and not isinstance(field, bool) else None


Unknowns = Counter[str]

TEXTS = frozenset(
    {"input_text", "output_text", "text", "Text", "inputText", "summary_text", "reasoning_text"}
)
PICTURES = frozenset({"input_image", "inputImage", "image"})
LOCAL_PICTURES = frozenset({"local_image", "localImage"})
FILES = LOCAL_PICTURES | {"skill", "mention", "resource_link"}
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^,]*)?;base64,", re.ASCII)
# Tags around a picture that mark its start and end for the model.
_AROUND = re.compile(r"\s*</?image(?:\s[^<>]*)?>\s*")


def parts_of(content: Any, unknown: Unknowns) -> Iterator[Part]:
    """The parts of a content: a text, or a list of pieces."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and not _is_empty(piece):
            yield _part(piece, unknown)


def _is_empty(piece: Json) -> bool:
    field = piece.get("text")
    return text(piece, "type") in TEXTS and (
        not isinstance(field, str) or not field or _AROUND.fullmatch(field) is not None
    )


def _part(piece: Json, unknown: Unknowns) -> Part:
    kind = text(piece, "type")
    if kind in TEXTS:
        return Text(text=piece["text"])
    if kind in PICTURES and (picture := picture_of(piece)) is not None:
        return picture
    if kind in FILES and (place := text(piece, "path", "uri")):
        return ResourceLink(uri=place, name=text(piece, "name"))
    unknown[f"content {kind}"[:80]] += 1
    return Unknown(raw=piece)


def picture_of(piece: Json) -> Image | None:
    """A picture: its data, or its address."""
    if data := text(piece, "data"):
        return Image(mime_type=text(piece, "mimeType", "mime_type") or "image/png", data=data)
    address = text(piece, "image_url", "url")
    if address is None:
        return None
    found = _DATA.match(address)
    return (
        Image(mime_type=found[1], data=address[found.end() :])
        if found
        else Image(mime_type="image/*", uri=address)
    )


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


USER_SHELL = frozenset({"user_shell", "userShell"})

QUIET = _words(
    "world_state token_usage_record security_risk_score retained_context realtime_item bookkeeping",
    "inter_agent_communication_metadata",
)
"""Lines that are not part of the conversation."""
QUIET_RESPONSES = _words(
    "compaction context_compaction compaction_summary compaction_trigger ghost_snapshot additional_tools other",
)
SHOWN_TOO = frozenset({"message", "reasoning", "web_search_call", "image_generation_call"})
"""Model items that newer rollouts also have as shown items."""
QUIET_EVENTS = _words(
    "user_message agent_message agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break",
    "context_compacted entered_review_mode exited_review_mode web_search_end image_generation_end view_image_tool_call",
    "thread_goal_updated thread_settings_applied plan_update warning guardian_warning guardian_assessment undo_completed",
    "turn_diff background_event session_configured injected_message model_reroute model_verification shutdown_complete",
    "dynamic_tool_call_request collab_agent_spawn_end collab_agent_interaction_end collab_waiting_end collab_close_end",
    "collab_resume_end hook_started hook_completed item_started turn_moderation_metadata thread_queue_changed",
)
"""Events that repeat another record, or are not part of the conversation."""
QUIET_ITEMS = frozenset({"ContextCompaction", "Sleep", "EnteredReviewMode"})

INJECTED = (
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<skill>",
    "<turn_aborted>",
    "<goal_context>",
    "<additional_context>",
    "<internal_context",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<model_switch>",
)
"""Beginnings of messages that the program gave to the model in the user's name."""
NOTES = ("<subagent_notification>", "<hook_prompt")
"""Beginnings of such messages that report an event."""
ITEMS_OF_BOTH = frozenset(
    {"UserMessage", "AgentMessage", "Reasoning", "HookPrompt", "WebSearch", "ImageGeneration"}
)
"""Shown items that older rollouts also have as model items."""
