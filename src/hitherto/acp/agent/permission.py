"""`session/request_permission`: the user decides about a tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hitherto.acp.protocol.entry_bytes import Call, read_stored
from hitherto.acp.protocol.tool_calls import call_fields
from hitherto.model import Json, ToolCall, encode
from hitherto.permissions import CHOICES, Choice, Verdict
from hitherto.rpc.errors import Refused
from hitherto.rpc.peer import Peer

NAMES: dict[Choice, str] = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}
OPTIONS = [{"optionId": choice, "name": NAMES[choice], "kind": choice} for choice in CHOICES]
UNANSWERED = "refused: the permission request was not answered"


Read = Callable[[str], Awaitable[str | None]]


class _Outcome(msgspec.Struct, rename="camel"):
    outcome: str
    option_id: str | None = None


class _Answer(msgspec.Struct):
    outcome: _Outcome


async def ask_permission(peer: Peer[Any], session_id: str, call: ToolCall, read: Read) -> Choice | Verdict:
    """The user's answer; anything that is not one of the options means no. `read` returns the text of a file, so that a
    request to replace a whole file shows the current text. Raises `Gone` if the client has left."""
    rendered = _render_call(call)
    for block in rendered.get("content", ()):
        if block["type"] == "diff" and block["oldText"] is None:
            block["oldText"] = await read(block["path"])
    params = {"sessionId": session_id, "toolCall": rendered, "options": OPTIONS}
    try:
        result = await peer.ask("session/request_permission", params)
        outcome = msgspec.json.decode(result, type=_Answer).outcome
    except (Refused, msgspec.MsgspecError):
        return Verdict(allowed=False, reason=UNANSWERED)
    for choice in CHOICES:
        if outcome.outcome == "selected" and outcome.option_id == choice:
            return choice
    return Verdict(allowed=False, reason=UNANSWERED)


def _render_call(call: ToolCall) -> Json:
    (stored,) = read_stored(encode({"id": "", "at": 0, "role": "assistant", "parts": [call]})).parts
    assert isinstance(stored, Call)  # noqa: S101 - it was one before it was written and read
    return call_fields(stored)
