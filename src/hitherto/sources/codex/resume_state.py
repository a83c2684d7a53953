"""What must be known to continue reading a rollout when it has grown. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from hitherto.claude.lines import Damage
from hitherto.model import Entry, Image, Json, Usage, Value
from hitherto.projects import remote_name
from hitherto.sources.codex.records import fields, text, whole

Call = Literal["asked", "told", "ended"]
"""The state of a call: no result yet, with the result from a model item, or with that from an event."""


class Base(Value, frozen=True):
    """The other file that a fork's history is in, and where it ends there."""

    rollout: str
    ordinal: int
    offset: int


class Meta(Value, frozen=True):
    """The first line of a rollout."""

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
    """The state to continue from. `records` counts the file's records, `ordinal` is the highest number, `last` a checksum of
    the newest. `turn`: a turn is running. The next token count belongs to the entry `answer`; `waiting` was counted before
    there was one, `counted` is the sum of all. `decided`: it is known which stream is the conversation. `copying`: a copy of
    another thread is being read. `pictures` came with a prompt that is not shown yet. `shown` and `left_out` count the file's
    records."""

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
    pictures: list[Image] = []
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
    shown: int = 0
    left_out: dict[str, int] = {}
    damage: Damage = Damage()

    def copy(self) -> Memory:
        """A copy that can be changed."""
        return replace(
            self,
            calls=dict(self.calls),
            cwds=list(self.cwds),
            models=list(self.models),
            pictures=list(self.pictures),
            unknown=dict(self.unknown),
            left_out=dict(self.left_out),
        )


def meta_of(payload: Json) -> Meta:
    """The metadata in a first line."""
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
