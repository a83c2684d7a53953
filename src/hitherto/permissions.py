"""What a tool may do without asking: a table of modes, and the answers that a session remembers. Pure."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from hitherto.model import OWN, Json, Session, ToolCall, Value, encode

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]
MODES: tuple[Mode, ...] = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")

Kind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
KINDS: tuple[Kind, ...] = (
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other",
)  # fmt: skip
"""What tools do, in the words of the Agent Client Protocol; a tool of no known kind is `other`."""

Ruling = Literal["allow", "ask", "refuse"]
Choice = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
CHOICES: tuple[Choice, ...] = ("allow_once", "allow_always", "reject_once", "reject_always")

SERVED = "mcp__"
"""How the names of tools begin that come from a tool server; anybody can give a server another one's name."""
HARMLESS = frozenset(("read", "search", "think"))
EDITING = frozenset(("edit", "delete", "move"))

REMEMBERED = f"{OWN}permissions"
"""The key of a session's meta under which its standing answers are kept."""


class Verdict(Value, frozen=True):
    """Whether a tool may run; `reason` is sent to the model if not, `input` replaces the call's if given."""

    allowed: bool
    reason: str = ""
    input: Any = None


def ruling(mode: Mode, kind: str | None) -> Ruling:
    """What a mode says of a tool of this kind, before anybody is asked."""
    if mode == "bypassPermissions" or kind in HARMLESS:
        return "allow"
    if mode == "plan":
        return "refuse"
    if mode == "acceptEdits" and kind in EDITING:
        return "allow"
    return "refuse" if mode == "dontAsk" else "ask"


def decide(mode: Mode, session: Session, call: ToolCall, servers: str = "") -> Ruling:
    """What holds for this call: the mode's ruling, and what the session remembers where the mode leaves room.

    `servers` stands for the tool servers that the session is open with. A standing rejection holds in every mode but `bypassPermissions`; a standing permission in every mode but `plan`.
    """
    known, rule = remembered_answer(session, call, servers), ruling(mode, call.kind)
    if mode == "bypassPermissions" or known is None:
        return rule
    if not known:
        return "refuse"
    return rule if mode == "plan" else "allow"


def answer_key(session: Session, call: ToolCall, servers: str) -> str:
    """What an "always" covers: of a command exactly this one in this folder, of a server's tool the tool for as long as
    the servers are the same, for any other tool the tool."""
    if call.kind != "execute":
        return f"{call.name}:{servers}" if call.name.startswith(SERVED) else call.name
    given = call.input.get("command", call.input) if isinstance(call.input, dict) else call.input
    return f"{call.name}:{hashlib.sha256(encode([given, session.cwd])).hexdigest()[:32]}"


def remembered_answer(session: Session, call: ToolCall, servers: str) -> bool | None:
    """What the session remembers about this call: allowed, rejected, or nothing."""
    known = session.meta.get(REMEMBERED)
    answer = known.get(answer_key(session, call, servers)) if isinstance(known, dict) else None
    return answer if isinstance(answer, bool) else None


def remember(session: Session, call: ToolCall, choice: Choice, servers: str = "") -> Json:
    """The meta of the session once it remembers this answer, if it was one for always."""
    if not choice.endswith("_always"):
        return session.meta
    known = session.meta.get(REMEMBERED)
    kept = dict(known) if isinstance(known, dict) else {}
    key = answer_key(session, call, servers)
    return {**session.meta, REMEMBERED: {**kept, key: choice == "allow_always"}}
