"""The messages of a session: what happens in a turn, up to its result. Frozen; fields also by `message["name"]`.

Names and shapes are those that programs around Claude Code know; what is not known is None, never 0.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from hitherto.engine import StopReason
from hitherto.model import Json
from hitherto.permissions import Mode

Subtype = Literal["success", "error_max_turns", "error_during_execution"]
"""How a turn may end."""


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a session."""

    session_id: str

    def __contains__(self, name: object) -> bool:
        return name in self.__struct_fields__

    def __getitem__(self, name: str) -> Any:
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """The field of this name, `default` if there is no such field."""
        return getattr(self, name) if name in self.__struct_fields__ else default


class SDKSystemMessage(_Message, frozen=True, kw_only=True):
    """What the turn is run with; the first message of each.

    `tools` are those known when it begins. `forked_from` is the session of another agent that this one continues.
    """

    type: Literal["system"] = "system"
    subtype: Literal["init"] = "init"
    model: str | None = None
    cwd: str | None = None
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[Json, ...] = ()
    permission_mode: Mode = "default"
    forked_from: str | None = None


class SDKNoticeMessage(_Message, frozen=True, kw_only=True):
    """Something you should know, such as that a tool server failed or a request is tried again."""

    type: Literal["system"] = "system"
    subtype: Literal["notice"] = "notice"
    text: str
    severity: Literal["info", "warning", "error"] = "info"


class SDKCompactBoundaryMessage(_Message, frozen=True, kw_only=True):
    """The context was made smaller, since it neared the model's window."""

    type: Literal["system"] = "system"
    subtype: Literal["compact_boundary"] = "compact_boundary"
    compact_metadata: Json


class SDKAssistantMessage(_Message, frozen=True, kw_only=True):
    """A complete message of the model; `uuid` is the id of the entry that it is stored as."""

    type: Literal["assistant"] = "assistant"
    uuid: str
    message: Json


class SDKUserMessage(_Message, frozen=True, kw_only=True):
    """The result of a tool, which the model sees as the user's; `uuid` is the id of its entry."""

    type: Literal["user"] = "user"
    uuid: str
    message: Json


class SDKPartialAssistantMessage(_Message, frozen=True, kw_only=True):
    """Some more of the message that will be stored as `uuid`: `event` is a `content_block_delta`."""

    type: Literal["stream_event"] = "stream_event"
    uuid: str
    event: Json


class SDKResultMessage(_Message, frozen=True, kw_only=True):
    """How a turn ended; its last message.

    `result` is the last text of the model, or what went wrong. `num_turns` counts the model's answers, `usage` and
    `total_cost_usd` are about this turn alone. `error_code` is the stable code of the error behind it, if one was.
    `notices` are the warnings during the turn, such as that a tool server failed.
    """

    type: Literal["result"] = "result"
    subtype: Subtype
    is_error: bool
    result: str
    stop_reason: StopReason | None
    usage: dict[str, int | None]
    total_cost_usd: float | None
    num_turns: int
    duration_ms: int
    errors: tuple[str, ...] = ()
    error_code: str | None = None
    notices: tuple[str, ...] = ()


SDKMessage = (
    SDKSystemMessage
    | SDKNoticeMessage
    | SDKCompactBoundaryMessage
    | SDKAssistantMessage
    | SDKUserMessage
    | SDKPartialAssistantMessage
    | SDKResultMessage
)
