"""The metadata of a session from its transcript: titles, tags, folder, times, models, usage, counts. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from hitherto.claude.lines import Damage
from hitherto.claude.paths import is_session_id
from hitherto.limits import (
    CWD_CHARS,
    EARLIER_CWDS,
    ENTRY_SUM,
    NAME_CHARS,
    TAG_CHARS,
    TITLE_CHARS,
    is_storable,
)
from hitherto.model import Entry, Json, TitleBy, Usage, Value, plain_text
from hitherto.sources.claude.records import Record, milliseconds, value_of
from hitherto.sources.shared.depth import is_deep
from hitherto.values.titles import clean_title, opening

PROMPT_CHARS = 1_000
"""How much of the first and of the last prompt is kept."""
EXTRA_KINDS = 16
EXTRA_BYTES = 4_096
"""For how many unknown kinds of session records the newest is kept, and how long it may be."""

KINDS = 100
KIND_CHARS = 100
MODELS = 64
"""How many kinds and models are counted separately, and how much of an unknown kind's name is kept."""

REQUEST_LOG = "api-request"
"""The prefix of record kinds that repeat requests to the model, with the vendor's prompts and tools."""

# Session records that are not used.
SILENT = frozenset(
    {
        "agent-name", "agent-color", "agent-setting", "mode", "permission-mode", "queue-operation",
        "file-history-snapshot", "file-history-delta", "tools-used", "worktree-state", "pr-link", "content-replacement",
        "atis-latch", "repl-mode", "isolation-latch", "session-owner", "bridge-session", "frame-link",
        "history-suppression", "derived-from", "data-flow-records", "data-flow-incomplete", "dev-mods",
        "ended-by-model", "resume-head-vouch", "agent_metadata",
    }
)  # fmt: skip
_SILENT_PREFIX = "artifact-"


class Child(Value, frozen=True):
    """A subagent that was started, and the tool call that started it."""

    agent_id: str
    tool_use_id: str | None = None


class Info(Value, frozen=True):
    """All that is known of a session beside its entries. Times are ms; what is not known is None.

    `title_by` is who gave the title. `agent_id` and `sidechain` tell a subagent's transcript. `usage` is the sum over
    the responses of the conversation, each counted once; `cost` is what the program itself last said, after the message of `cost_at`. `unknown` counts
    records, blocks and attachments of new kinds, `left_out` the records that are no part of a conversation, `shown` all others;
    `cwds` are all folders that it has been in; `extra` holds the newest record about the session of each new kind. `continued_in` is the session that goes on where
    this ended, `forked_from` the one that it was forked from, at its record `forked_at`.
    """

    session_id: str | None = None
    title: str | None = None
    title_by: TitleBy | None = None
    tags: tuple[str, ...] = ()
    cwd: str | None = None
    cwds: tuple[str, ...] = ()
    git_branch: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    first_prompt: str | None = None
    last_prompt: str | None = None
    models: tuple[str, ...] = ()
    usage: Usage | None = None
    cost: float | None = None
    cost_at: int | None = None
    children: tuple[Child, ...] = ()
    agent_id: str | None = None
    sidechain: bool = False
    team: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    continued_in: str | None = None
    forked_from: str | None = None
    forked_at: str | None = None
    unknown: dict[str, int] = msgspec.field(default_factory=dict)
    shown: int = 0
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    damage: Damage = Damage()
    extra: Json = msgspec.field(default_factory=dict)


class Facts(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is collected while a transcript is read, and kept until it grows."""

    session_id: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None
    summary_of: str | None = None
    tag: str | None = None
    leaf: str | None = None
    relocated: str | None = None
    cwd: str | None = None
    cwds: list[str] = []
    git_branch: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    first_prompt: str | None = None
    first_command: str | None = None
    last_prompt: str | None = None
    models: list[str] = []
    cost: float | None = None
    cost_at: int | None = None
    read_at: int | None = None
    children: list[Child] = []
    agent_id: str | None = None
    team: str | None = None
    version: str | None = None
    entrypoint: str | None = None
    continued_in: str | None = None
    forked_from: str | None = None
    forked_at: str | None = None
    unknown: dict[str, int] = {}
    shown: int = 0
    left_out: dict[str, int] = {}
    damage: Damage = Damage()
    extra: dict[str, Any] = {}

    def copy(self) -> Facts:
        """A copy that can be changed independently."""
        return msgspec.structs.replace(
            self,
            cwds=list(self.cwds),
            models=list(self.models),
            children=list(self.children),
            unknown=dict(self.unknown),
            left_out=dict(self.left_out),
            extra=dict(self.extra),
        )

    def joined(self, aside: Facts) -> Facts:
        """These, with what was said beside the conversation."""
        joined = self.copy()
        joined.updated_at = max(
            (at for at in (self.updated_at, aside.updated_at) if at is not None), default=None
        )
        joined.first_prompt = self.first_prompt or aside.first_prompt
        joined.first_command = self.first_command or aside.first_command
        joined.models += [each for each in aside.models if each not in self.models]
        joined.children += [each for each in aside.children if each not in self.children]
        joined.shown += aside.shown
        for counts, more in ((joined.unknown, aside.unknown), (joined.left_out, aside.left_out)):
            for kind, number in more.items():
                counts[kind] = counts.get(kind, 0) + number
        return joined

    def observe(self, record: Record) -> None:
        """Note what a record of the conversation says beside its message."""
        self._begin(record)
        if record.timestamp is not None:
            self.read_at = max(self.read_at or 0, milliseconds(record.timestamp))
        self.cwd = self.cwd or _folder(record.cwd)
        if record.cwd != self.cwd and (folder := _folder(record.cwd)) is not None:
            self._note_folder(folder)
        self.agent_id = self.agent_id or _name(record.agent_id)
        self.team = self.team or _name(record.team_name)
        self.entrypoint = self.entrypoint or _name(record.entrypoint)
        self.git_branch = _name(record.git_branch) or self.git_branch
        self.version = _name(record.version) or self.version
        if record.forked_from is not None and (origin := _session(record.forked_from.session_id)):
            self.forked_from, self.forked_at = origin, _name(record.forked_from.message_uuid)

    def observe_session_record(self, record: Record, line: memoryview) -> None:
        """Note a record about the session; `line` is all of it."""
        self._begin(record)
        kind = record.type[:KIND_CHARS] or "?"
        count(self.left_out, kind)
        if observe := ABOUT.get(record.type):
            observe(self, record)
        elif record.type not in SILENT and not record.type.startswith((_SILENT_PREFIX, REQUEST_LOG)):
            count(self.unknown, kind)
            room = kind in self.extra or len(self.extra) < EXTRA_KINDS
            if room and len(line) <= EXTRA_BYTES and not is_deep(line):
                self.extra[kind] = value_of(msgspec.Raw(bytes(line)))

    def _begin(self, record: Record) -> None:
        """Note what the first record with a time or a session id says."""
        if self.created_at is None and record.timestamp is not None:
            self.created_at = milliseconds(record.timestamp)
        if self.session_id is None:
            self.session_id = _session(record.session_id)

    def observe_entry(self, entry: Entry) -> None:
        """Note a new entry of the conversation."""
        if self.updated_at is None or entry.at > self.updated_at:
            self.updated_at = entry.at
        if entry.role == "user" and self.first_prompt is None and not entry.meta.get("meta"):
            self._prompt(plain_text(entry), typed="command" in entry.meta)

    def note_model(self, model: str | None) -> None:
        """Note that a model answered."""
        name = _name(model)
        if name is not None and name not in self.models and len(self.models) < MODELS:
            self.models.append(name)

    def _note_folder(self, folder: str) -> None:
        """Note a folder beside the first one."""
        if folder not in self.cwds and len(self.cwds) < EARLIER_CWDS:
            self.cwds.append(folder)

    def _prompt(self, text: str, *, typed: bool) -> None:
        self.first_prompt = opening(text, PROMPT_CHARS)
        if self.first_prompt is None and self.first_command is None and typed:
            self.first_command = text[:PROMPT_CHARS]

    def info(self, usage: Usage | None, sidechain: bool, has: Callable[[str], bool]) -> Info:
        """The metadata so far. `has` says whether the conversation has a record with a uuid."""
        title, by = self._named(has)
        return Info(
            session_id=self.session_id,
            title=title,
            title_by=by,
            tags=tuple(filter(None, [clean_title(self.tag or "")[:TAG_CHARS].strip()])),
            cwd=self.relocated or self.cwd,
            cwds=tuple(filter(None, [self.cwd])) + tuple(self.cwds),
            git_branch=self.git_branch,
            created_at=self.created_at,
            updated_at=self.updated_at if self.updated_at is not None else self.created_at,
            first_prompt=self.first_prompt or self.first_command,
            last_prompt=self.last_prompt,
            models=tuple(self.models),
            usage=usage,
            cost=self.cost,
            cost_at=self.cost_at,
            children=tuple(self.children),
            agent_id=self.agent_id if sidechain else None,
            sidechain=sidechain,
            team=self.team,
            version=self.version,
            entrypoint=self.entrypoint,
            continued_in=self.continued_in,
            forked_from=self.forked_from,
            forked_at=self.forked_at,
            unknown=dict(self.unknown),
            shown=self.shown,
            left_out=dict(self.left_out),
            damage=self.damage,
            extra=dict(self.extra),
        )

    def _named(self, has: Callable[[str], bool]) -> tuple[str | None, TitleBy | None]:
        if title := _title(self.custom_title):
            return title, "user"
        # Old versions wrote summaries into files of other sessions.
        own = self.summary_of is None or has(self.summary_of)
        title = _title(self.ai_title) or (_title(self.summary) if own else None)
        return (title, "source") if title else (None, None)


def count(counts: dict[str, int], kind: str, more: int = 1) -> None:
    """Count more of a kind; kinds beyond a limit are counted together."""
    if more:
        kind = kind if kind in counts or len(counts) < KINDS else "other kinds"
        counts[kind] = counts.get(kind, 0) + more


# Texts that others wrote, cut to what every store can keep.


def _name(text: str | None) -> str | None:
    return text[:NAME_CHARS] if text else None


def _session(text: str | None) -> str | None:
    return text if text and is_session_id(text) else None


def _folder(text: str | None) -> str | None:
    return text if text and len(text) <= CWD_CHARS and is_storable(text) else None


def _title(text: str | None) -> str | None:
    return clean_title((text or "")[: 2 * TITLE_CHARS])[:TITLE_CHARS].strip() or None


def _custom_title(facts: Facts, record: Record) -> None:
    facts.custom_title = record.custom_title


def _ai_title(facts: Facts, record: Record) -> None:
    facts.ai_title = record.ai_title or facts.ai_title


def _summary(facts: Facts, record: Record) -> None:
    facts.summary, facts.summary_of = record.summary, record.leaf_uuid


def _tag(facts: Facts, record: Record) -> None:
    facts.tag = record.tag


def _last_prompt(facts: Facts, record: Record) -> None:
    # A null leaf says that the conversation is empty; what was said is kept.
    facts.leaf = record.leaf_uuid or facts.leaf
    if record.last_prompt:
        facts.last_prompt = record.last_prompt[:PROMPT_CHARS]


def _cost(facts: Facts, record: Record) -> None:
    cost = record.total_cost
    if cost is not None and math.isfinite(cost) and 0 <= cost <= ENTRY_SUM:
        facts.cost, facts.cost_at = cost, facts.read_at


def _relocated(facts: Facts, record: Record) -> None:
    facts.relocated = _folder(record.relocated_cwd) or facts.relocated


def _continued(facts: Facts, record: Record) -> None:
    facts.continued_in = _name(record.continued_in_session_id)


ABOUT: dict[str, Callable[[Facts, Record], None]] = {
    "custom-title": _custom_title,
    "ai-title": _ai_title,
    "summary": _summary,
    "tag": _tag,
    "last-prompt": _last_prompt,
    "cost-state": _cost,
    "relocated": _relocated,
    "continued-in": _continued,
}
"""Kind of session record → the function that notes it; the last one of a kind counts."""
