"""What is known of a rollout behind the part of it that was read: small, and kept until it has grown. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from hitherto.claude.lines import Damage
from hitherto.model import Entry, Json, Usage, Value
from hitherto.projects import remote_name
from hitherto.sources.codex.records import fields, text, whole

Call = Literal["asked", "told", "ended"]
"""A call: of which nothing more is known, whose outcome the model was told, or the program told."""


class Base(Value, frozen=True):
    """Where a fork's history begins: in another file, up to here."""

    rollout: str
    ordinal: int
    offset: int


class Meta(Value, frozen=True):
    """What the first line of a rollout says."""

    id: str | None = None
    cwd: str | None = None
    version: str | None = None
    source: str | None = None
    provider: str | None = None
    branch: str | None = None
    commit: str | None = None
    remote: str | None = None
    parent: str | None = None
    forked_from: str | None = None
    nickname: str | None = None
    agent_role: str | None = None
    base: Base | None = None
    own_from: int | None = None
    subagent: bool = False
    paginated: bool = False


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What must be known to go on. `records` counts those of the file, `ordinal` is the highest of them, `last` a checksum
    of the newest. `turn` says that one was begun and has not ended; `answer` is the entry that the next count of tokens is
    for, `waiting` what was counted before there was one, `counted` the sum of all. `decided` says that it is known which
    of the two streams is the conversation; `copying`, that what is being read is a copy of another thread."""

    meta: Meta | None = None
    decided: bool = False
    paginated: bool = False
    copying: bool = False
    records: int = 0
    ordinal: int = -1
    last: int = 0
    at: int = 0
    turn: bool = False
    model: str | None = None
    calls: dict[str, Call] = {}
    answer: Entry | None = None
    waiting: Usage | None = None
    counted: int | None = None
    spent: Usage | None = None
    entries: int = 0
    created_at: int | None = None
    updated_at: int | None = None
    first_prompt: str | None = None
    name: str | None = None
    cwds: list[str] = []
    models: list[str] = []
    unknown: dict[str, int] = {}
    damage: Damage = Damage()

    def copy(self) -> Memory:
        """The same, to be changed."""
        return replace(
            self,
            calls=dict(self.calls),
            cwds=list(self.cwds),
            models=list(self.models),
            unknown=dict(self.unknown),
        )


def meta_of(payload: Json) -> Meta:
    """What a first line says."""
    git, source = fields(payload, "git"), payload.get("source")
    spawned = fields(fields(source, "subagent"), "thread_spawn")
    subagent = isinstance(source, dict) and "subagent" in source
    return Meta(
        id=text(payload, "id", "session_id"),
        cwd=text(payload, "cwd"),
        version=text(payload, "cli_version"),
        source="subagent" if subagent else source if isinstance(source, str) else None,
        provider=text(payload, "model_provider"),
        branch=text(git, "branch"),
        commit=text(git, "commit_hash"),
        remote=remote_name(text(git, "repository_url") or ""),
        parent=text(payload, "parent_thread_id") or text(spawned, "parent_thread_id"),
        forked_from=text(payload, "forked_from_id"),
        nickname=text(payload, "agent_nickname") or text(spawned, "agent_nickname"),
        agent_role=text(payload, "agent_role") or text(spawned, "agent_role"),
        base=_base(fields(payload, "history_base")),
        own_from=whole(payload, "subagent_history_start_ordinal"),
        subagent=subagent or text(payload, "thread_source") == "subagent",
        paginated=text(payload, "history_mode") == "paginated",
    )


def _base(payload: Json) -> Base | None:
    rollout, ordinal, offset = (
        text(payload, "thread_id"),
        whole(payload, "end_ordinal_exclusive"),
        whole(payload, "end_byte_offset"),
    )
    if rollout is None or ordinal is None or offset is None or offset < 0:
        return None
    return Base(rollout=rollout, ordinal=ordinal, offset=offset)
