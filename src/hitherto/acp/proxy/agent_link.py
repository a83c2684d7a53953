"""What is kept about the sessions of an agent that stand behind ours. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto.model import OWN, Entry, Json, Session

META_KEY = f"{OWN}behind"
"""The key of a session's meta: for each agent, by its name, its session and the last entry of ours that it knows."""
AGENTS = 16


class AgentLink(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's session, and the one of ours (`of`) that it stands behind: a fork inherits what is kept of its source,
    and must not go on in the same place. `known` is None if it knows nothing of ours yet."""

    id: str
    of: str
    known: str | None = None


def link_of(session: Session, agent: str) -> AgentLink | None:
    """The session of this agent that stands behind one of ours; what makes no sense there counts for nothing."""
    try:
        link = msgspec.convert(_all(session).get(agent), AgentLink)
    except msgspec.ValidationError:
        return None
    return link if link.of == session.id else None


def link_meta(session: Session, agent: str, link: AgentLink | None) -> Json:
    """What to merge into a session's meta; of many agents those that were there last."""
    others = {name: value for name, value in _all(session).items() if name != agent}
    named = {} if link is None else {agent: msgspec.to_builtins(link)}
    rest = dict(list(others.items())[-(AGENTS - 1) :])
    return {META_KEY: {**rest, **named} or None}


def entries_unknown_to(link: AgentLink | None, history: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
    """What was said that the agent's session does not know; None if it knows what is no longer said."""
    if link is None or link.known is None:
        return history
    for at in range(len(history) - 1, -1, -1):
        if history[at].id == link.known:
            return history[at + 1 :]
    return None


def _all(session: Session) -> dict[str, Any]:
    value = session.meta.get(META_KEY)
    return value if isinstance(value, dict) else {}
