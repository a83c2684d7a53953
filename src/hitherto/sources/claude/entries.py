"""Records of a conversation as entries, in order. Pure.

An answer of the model is written block by block and becomes one entry. A transcript may be read while an answer is being
written; when the answer grows afterwards, its entry is *amended*.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from hitherto.limits import ENTRY_BYTES, is_storable
from hitherto.model import Entry, Json, Role, Text, ToolResult, Unknown, Usage, Value
from hitherto.sources.claude.attachments import attached_file, hook_output, hook_report
from hitherto.sources.claude.metadata import Child, Facts, count
from hitherto.sources.claude.parts import Parts, parts_of, with_output
from hitherto.sources.claude.program_text import is_interruption, program_text
from hitherto.sources.claude.records import (
    Attachment,
    CompactMetadata,
    Message,
    Record,
    blocks_of,
    milliseconds,
    usage_of,
    value_of,
)
from hitherto.sources.shared.depth import is_deep
from hitherto.sources.shared.size import shortened
from hitherto.sources.shared.usage import latest, tokens_of, total

LONGEST = ENTRY_BYTES // 2
"""A longer record is shortened: as an entry it might exceed the limit."""
KEPT_KNOWN = 32
"""How many of a compaction's kept records are remembered: answers of more blocks are rare."""
SYNTHETIC = "<synthetic>"
"""The model of messages that the program wrote itself."""
TOO_DEEP = Text(text="[left out: nested too deeply]")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
# Long records that are usually left out: their nesting is checked only if they are kept.
_SELDOM_KEPT = frozenset({"attachment", "progress"})
_ID_CHARS = 200
_REMINDER = ("<system-reminder>", "</system-reminder>")
_NOTIFICATION = "task-notification"
"""The origin of what a subagent in the background reports when it has ended."""
_HOOKS = frozenset(
    {
        "hook_success", "hook_additional_context", "hook_non_blocking_error", "hook_blocking_error", "hook_cancelled",
        "hook_system_message",
    }
)  # fmt: skip

# System records that are bookkeeping only.
_BOOKKEEPING = frozenset(
    {
        "turn_duration", "file_snapshot", "bridge_status", "cloud_session_status",
        "permission_retry", "memory_saved", "agents_killed", "scheduled_task_fire", "voice_call_talk",
    }
)  # fmt: skip
# Context that the program gives the model about itself, its tools and its surroundings.
_CONTEXT = frozenset(
    {
        "prompt_snapshot", "environment", "model", "deferred_tools_delta", "deferred_tools_record",
        "agent_listing_delta", "skill_listing", "session_context", "date", "date_change", "remote_session_change",
        "auto_mode", "auto_mode_exit", "fork_briefing", "task_reminder", "todo_reminder", "todo", "task_status",
        "edited_text_file", "edited_image_file", "read_truncation_notice", "compact_file_reference",
        "command_permissions", "async_hook_response", "hook_permission_decision", "nested_memory", "relevant_memories", "diagnostics", "plan_mode",
        "plan_mode_reentry", "plan_mode_exit", "plan_file_reference", "output_style", "critical_system_reminder",
        "opened_file_in_ide", "selected_lines_in_ide", "invoked_skills", "dynamic_skill", "mcp_instructions_delta",
        "already_read_file", "token_usage", "total_tokens_reminder", "budget_usd", "ultrathink_effort",
    }
)  # fmt: skip


class Answer(Value, frozen=True):
    """The newest answer: its entry so far, and the length of its records."""

    response: str
    entry: Entry
    size: int


class Compacted(Value, frozen=True):
    """A compaction, by entries: the `boundary`, the `summary` after it (None: not written yet), and the first of the kept
    entries, as far as known; of what was kept in front of the summary (`prefix`) the last ones, from the end on."""

    boundary: str | None = None
    summary: str | None = None
    kept: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()


class _Started(msgspec.Struct, frozen=True, rename="camel"):
    agent_id: str


_started = msgspec.json.Decoder(_Started)


class ConversationBuilder:
    """Makes entries from records, in order."""

    def __init__(
        self,
        facts: Facts,
        answer: Answer | None,
        spent: Usage | None,
        at: int,
        begun: Compacted | None = None,
    ) -> None:
        self.facts = facts
        self.entries: list[Entry] = []
        self.compactions: list[Compacted] = []
        self.begun = begun
        self.amended: Entry | None = None
        self.answer = answer
        self.at = at
        self.newest: str | None = None
        self._spent = [spent]
        self._place: int | None = None

    @property
    def spent(self) -> Usage | None:
        """The usage of all answers but the newest."""
        return total(self._spent)

    @property
    def usage(self) -> Usage | None:
        """The sum over all answers."""
        return total([*self._spent, self.answer.entry.usage if self.answer else None])

    def add(self, record: Record, line: memoryview) -> None:
        """Add a record; `line` is its bytes. `newest` is then the entry that it has become part of, if it has."""
        self.newest = None
        self.at = milliseconds(record.timestamp) if record.timestamp is not None else self.at
        if record.type not in _SELDOM_KEPT and is_deep(line):
            self._put(self.too_deep(record))
        elif record.type == "assistant":
            self._add_answer(record, len(line))
        elif (entry := _MAKERS.get(record.type, _unknown)(record, line, self)) is not None:
            self._put(entry if len(line) <= LONGEST else _cut(entry))
        if self.newest is not None:
            self.facts.shown += 1

    def too_deep(self, record: Record) -> Entry:
        """An entry in place of a record that is nested too deeply to be stored."""
        return self.entry(record, _ROLES.get(record.type, "system"), (TOO_DEEP,), {"cut": True})

    def entry(self, record: Record, role: Role, parts: Parts, meta: Json) -> Entry:
        """An entry with this record's id."""
        return Entry(id=entry_id(record.uuid or ""), at=self.at, role=role, parts=parts, meta=meta)

    def begin_compaction(self, begun: Compacted) -> None:
        """Start a compaction at its boundary; the summary follows."""
        self.begun = begun

    def end_compaction(self, summary: str) -> None:
        """End a compaction with its summary, usually after its boundary."""
        self.compactions.append(replace(self.begun or Compacted(), summary=summary))
        self.begun = None

    def _put(self, entry: Entry) -> None:
        self.newest = entry.id
        self.entries.append(entry)
        self.facts.observe_entry(entry)

    def _add_answer(self, record: Record, size: int) -> None:
        message = record.message or Message()
        response = message.id or record.uuid or ""
        known = self.answer
        if known is not None and known.response == response and known.size + size <= LONGEST:
            self._amend(known, record, message, size)
            return
        model = None if message.model == SYNTHETIC else message.model
        usage = usage_of(message, record.request_id)
        entry = Entry(
            id=entry_id(record.uuid or ""),
            at=self.at,
            role="assistant",
            parts=parts_of(message.content, self.facts.unknown),
            model=model,
            usage=usage,
            tokens=tokens_of(usage),
            meta=_assistant_meta(record, message),
        )
        entry = entry if size <= LONGEST else _cut(entry)
        if known is not None:
            self._spent.append(known.entry.usage)
        self.answer = Answer(response=response, entry=entry, size=size)
        self._place = len(self.entries)
        self.facts.note_model(model)
        self._put(entry)

    def _amend(self, known: Answer, record: Record, message: Message, size: int) -> None:
        """Extend the newest answer."""
        self.newest = known.entry.id
        usage = latest(known.entry.usage, usage_of(message, record.request_id))
        entry = replace(
            known.entry,
            parts=known.entry.parts + parts_of(message.content, self.facts.unknown),
            usage=usage,
            tokens=tokens_of(usage),
            meta={**known.entry.meta, **_assistant_meta(record, message)},
        )
        self.answer = Answer(response=known.response, entry=entry, size=known.size + size)
        if self._place is None:
            self.amended = entry
        else:
            self.entries[self._place] = entry
        self.facts.updated_at = max(self.facts.updated_at or 0, self.at)


def entry_id(uuid: str) -> str:
    """The uuid if every store can keep it, else an id made from it."""
    if uuid and len(uuid) <= _ID_CHARS and is_storable(uuid):
        return uuid
    return "id-" + hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _user(record: Record, _: memoryview, builder: ConversationBuilder) -> Entry | None:
    message = record.message or Message()
    parts = parts_of(message.content, builder.facts.unknown)
    role: Role = "user"
    if any(isinstance(part, ToolResult) for part in parts):
        role = "tool"
        parts = with_output(parts, record.tool_use_result)
        _note_child(record.tool_use_result, parts, builder.facts)
    meta: Json = {}
    sender = record.origin.kind if record.origin else None
    if sender is not None and sender != "human":
        meta["origin"] = sender
    if record.is_compact_summary:
        meta["compact_summary"] = True
        builder.end_compaction(entry_id(record.uuid or ""))
        return builder.entry(record, "system", parts, meta)
    if role == "user":
        role, parts, meta = _by_origin(parts, meta, is_meta=record.is_meta)
    elif record.is_meta:
        meta["meta"] = True
    return builder.entry(record, role, parts, meta)


def _by_origin(parts: Parts, meta: Json, *, is_meta: bool) -> tuple[Role, Parts, Json]:
    """Whose words these are: the user's, or the program's own."""
    only = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else None
    written = None if only is None else program_text(only)
    if written is not None and written.origin == "typed" and not is_meta:
        return "user", (Text(text=written.text),), {**meta, "command": written.text.partition(" ")[0]}
    if written is not None and written.origin == "output":
        return "system", (Text(text=written.text),), {**meta, "command_output": True}
    if only is not None and is_interruption(only):
        return "system", parts, {**meta, "meta": True, "interrupted": True}
    if meta.get("origin") == _NOTIFICATION:
        return "system", parts, meta
    if is_meta or written is not None or _is_reminder(parts):
        # What is only text is the program's; a picture beside it is the user's.
        role: Role = "system" if all(isinstance(part, Text) for part in parts) else "user"
        # The body of a command or a skill is what the model works by: another agent needs it too.
        body = {"body": True} if only is not None and written is None and not _is_reminder(parts) else {}
        return role, parts, {**meta, "meta": True, **body}
    return "user", parts, meta


def _system(record: Record, line: memoryview, builder: ConversationBuilder) -> Entry | None:
    said = value_of(record.content)
    meta: Json = {"subtype": record.subtype} if record.subtype else {}
    if record.subtype == "compact_boundary":
        meta = _boundary_meta(record)
        builder.begin_compaction(_begun(record))
    if record.is_meta:
        meta["meta"] = True
    if record.level == "error" or record.subtype == "api_error":
        meta["error"] = True
    if isinstance(said, str) and said:
        return builder.entry(record, "system", (Text(text=said),), meta)
    if record.subtype == "compact_boundary":
        return builder.entry(record, "system", (), meta)
    if record.subtype == "stop_hook_summary" and (report := hook_report(line)):
        return builder.entry(record, "system", (Text(text=report),), {**meta, "meta": True})
    if record.subtype is None or record.subtype in _BOOKKEEPING or record.subtype == "stop_hook_summary":
        count(builder.facts.left_out, f"system {record.subtype or ''}".strip())
        return None
    return builder.entry(record, "system", _raw(line), meta)


def _boundary_meta(record: Record) -> Json:
    meta: Json = {"compaction_boundary": True}
    if (said := record.compact_metadata) is not None:
        facts = {"trigger": said.trigger, "pre_tokens": said.pre_tokens, "post_tokens": said.post_tokens}
        meta |= {name: value for name, value in facts.items() if value is not None}
    return meta


def _begun(boundary: Record) -> Compacted:
    """A compaction at its boundary, with some of the records that it kept, for not every one starts an entry."""
    said = boundary.compact_metadata or CompactMetadata()
    uuids: tuple[str | None, ...] = ()
    anchor = ends = None
    if (kept := said.preserved_messages) is not None:
        anchor, uuids = kept.anchor_uuid, kept.uuids
    elif (ends := said.preserved_segment) is not None:
        anchor, uuids = ends.anchor_uuid, (ends.head_uuid,)
    own = entry_id(boundary.uuid or "")
    if anchor is not None and anchor == boundary.uuid:
        last = (ends.tail_uuid,) if ends is not None else uuids[: -KEPT_KNOWN - 1 : -1]
        return Compacted(boundary=own, prefix=tuple(entry_id(uuid) for uuid in last if uuid))
    return Compacted(boundary=own, kept=tuple(entry_id(uuid) for uuid in uuids[:KEPT_KNOWN] if uuid))


def _attachment_entry(record: Record, line: memoryview, builder: ConversationBuilder) -> Entry | None:
    attachment = record.attachment or Attachment()
    if attachment.type in _CONTEXT:
        count(builder.facts.left_out, f"attachment {attachment.type}")
        return None
    if is_deep(line):
        return builder.too_deep(record)
    meta: Json = {"attachment": attachment.type}
    if attachment.type == "queued_command":
        return _queued(record, attachment, builder)
    if attachment.type == "file":
        return builder.entry(record, "user", (attached_file(attachment),), {**meta, "meta": True})
    if attachment.type in _HOOKS:
        if said := hook_output(attachment):
            return builder.entry(record, "system", (Text(text=said),), {**meta, "meta": True})
        count(builder.facts.left_out, f"attachment {attachment.type}")
        return None
    count(builder.facts.unknown, f"attachment {attachment.type or '?'}"[:100])
    return builder.entry(record, "system", _raw(line), {**meta, "meta": True})


def _queued(record: Record, attachment: Attachment, builder: ConversationBuilder) -> Entry | None:
    """A prompt that was given while the model was at work, or what a subagent reported then."""
    meta: Json = {"attachment": attachment.type}
    if attachment.command_mode == _NOTIFICATION:
        meta["origin"] = _NOTIFICATION
    parts = parts_of(blocks_of(attachment.prompt), builder.facts.unknown)
    role, parts, meta = _by_origin(parts, meta, is_meta=False)
    if parts:
        return builder.entry(record, role, parts, meta)
    count(builder.facts.left_out, f"attachment {attachment.type}")
    return None


def _progress(_record: Record, _line: memoryview, builder: ConversationBuilder) -> None:
    count(builder.facts.left_out, "progress")


def _unknown(record: Record, line: memoryview, builder: ConversationBuilder) -> Entry:
    count(builder.facts.unknown, record.type[:100] or "?")
    return builder.entry(record, "system", _raw(line), {"meta": True, "type": record.type[:100]})


_MAKERS: dict[str, Callable[[Record, memoryview, ConversationBuilder], Entry | None]] = {
    "user": _user,
    "system": _system,
    "attachment": _attachment_entry,
    "progress": _progress,
}
"""Kind of record → the function that makes its entry."""

LINKED = frozenset({"assistant", *_MAKERS})
"""The kinds of record that are linked to each other."""


def _raw(line: memoryview) -> Parts:
    value: Any = value_of(Raw(bytes(line)))
    return (Unknown(raw=value),)


def _is_reminder(parts: Parts) -> bool:
    """Whether the program inserted all of this text."""
    start, end = _REMINDER
    return bool(parts) and all(
        isinstance(part, Text) and part.text.lstrip().startswith(start) and part.text.rstrip().endswith(end)
        for part in parts
    )


def _note_child(raw: Raw, parts: Parts, facts: Facts) -> None:
    """Note the subagent that a tool result names."""
    if b'"agentId"' not in bytes(raw):
        return
    try:
        started = _started.decode(raw)
    except (ValueError, RecursionError):
        return
    call = next((part.id for part in parts if isinstance(part, ToolResult)), None)
    child = Child(agent_id=started.agent_id, tool_use_id=call)
    if child not in facts.children:
        facts.children.append(child)


def _assistant_meta(record: Record, message: Message) -> Json:
    meta: Json = {}
    if message.model == SYNTHETIC:
        meta["synthetic"] = True
    if record.is_api_error_message:
        meta["error"] = True
    return meta


def _cut(entry: Entry) -> Entry:
    return replace(entry, parts=shortened(entry.parts, LONGEST // 8), meta={**entry.meta, "cut": True})
