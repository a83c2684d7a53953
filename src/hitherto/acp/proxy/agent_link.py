"""Links from our sessions to those of the proxied agents. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto.acp.protocol.session_rows import BEHIND
from hitherto.model import Entry, Json, Session

AGENTS = 16
"""How many agents are remembered for a session, in its meta: agent name → its session, and the last entry that it knows."""


class AgentLink(msgspec.Struct, frozen=True, omit_defaults=True):
    """The agent's session (`id`) for one of ours (`of`): a fork inherits the links of its source, but must not continue in
    the same session of the agent. `known` is the last entry that the agent knows; None if it knows nothing yet. `mode`,
    `options` and `usage` are the last that the agent reported, or the user chose."""

    id: str
    of: str
    known: str | None = None
    mode: str | None = None
    options: dict[str, str | bool] = {}
    usage: Json | None = None


def link_of(session: Session, agent: str) -> AgentLink | None:
    """The link of a session to this agent; None if there is none, or it is invalid."""
    try:
        link = msgspec.convert(_all(session).get(agent), AgentLink)
    except msgspec.ValidationError:
        return None
    return link if link.of == session.id else None


def link_meta(session: Session, agent: str, link: AgentLink | None) -> Json:
    """What to merge into a session's meta; the most recent agents are kept."""
    others = {name: value for name, value in _all(session).items() if name != agent}
    named = {} if link is None else {agent: msgspec.to_builtins(link)}
    rest = dict(list(others.items())[-(AGENTS - 1) :])
    return {BEHIND: {**rest, **named} or None}


def entries_unknown_to(link: AgentLink | None, history: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
    """The entries that the agent's session lacks; None if the last entry it knows is no longer in the history."""
    if link is None or link.known is None:
        return history
    for at in range(len(history) - 1, -1, -1):
        if history[at].id == link.known:
            return history[at + 1 :]
    return None


def _all(session: Session) -> dict[str, Any]:
    value = session.meta.get(BEHIND)
    return value if isinstance(value, dict) else {}
