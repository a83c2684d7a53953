"""What is kept about the sessions of an agent that stand behind ours. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hitherto.model import OWN, Entry, Json, Session

KEPT = f"{OWN}behind"
"""The key of a session's meta: for each agent, by its name, its session and the last entry of ours that it knows."""
AGENTS = 16


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's session, and the one of ours (`of`) that it stands behind: a fork inherits what is kept of its source,
    and must not go on in the same place. `known` is None if it knows nothing of ours yet."""

    id: str
    of: str
    known: str | None = None


def kept_of(session: Session, agent: str) -> Kept | None:
    """The session of this agent that stands behind one of ours; what makes no sense there counts for nothing."""
    try:
        kept = msgspec.convert(_all(session).get(agent), Kept)
    except msgspec.ValidationError:
        return None
    return kept if kept.of == session.id else None


def keeping(session: Session, agent: str, kept: Kept | None) -> Json:
    """What to merge into a session's meta; of many agents those that were there last."""
    others = {name: value for name, value in _all(session).items() if name != agent}
    named = {} if kept is None else {agent: msgspec.to_builtins(kept)}
    rest = dict(list(others.items())[-(AGENTS - 1) :])
    return {KEPT: {**rest, **named} or None}


def unknown_to(kept: Kept | None, history: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
    """What was said that the agent's session does not know; None if it knows what is no longer said."""
    if kept is None or kept.known is None:
        return history
    for at in range(len(history) - 1, -1, -1):
        if history[at].id == kept.known:
            return history[at + 1 :]
    return None


def _all(session: Session) -> dict[str, Any]:
    value = session.meta.get(KEPT)
    return value if isinstance(value, dict) else {}
