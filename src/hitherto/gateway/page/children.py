"""The sessions that calls of tools have started: which a result names, and which of those there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hitherto.errors import NotFound
from hitherto.gateway.page.rows import Row, row
from hitherto.model import Entry, Principal, Session, ToolResult
from hitherto.service import Sessions

MOST = 20
NAMED = ("session_id", "sessionId", "child_session_id")
"""Where a result says which session it comes from; Claude Code tells the agent of a session beside the parent's."""


async def children_of(
    home: Sessions, who: Principal, session: Session, entries: Sequence[Entry], now: int
) -> dict[str, Row]:
    """The sessions that were started by calls among these entries, by the id of the call."""
    found: dict[str, Row] = {}
    for call, name in named(session, entries):
        if len(found) == MOST:
            break
        try:
            child = await home.get(who, name)
        except NotFound:
            continue
        if child.parent == session.id:
            found.setdefault(call, row(child, now))
    return found


def named(session: Session, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """The calls whose results name a session, and its id. Whether it is there, and a child, is another question."""
    for entry in entries:
        for part in entry.parts:
            if isinstance(part, ToolResult) and isinstance(part.output, dict):
                for name in NAMED:
                    if isinstance(told := part.output.get(name), str):
                        yield part.id, told
                if isinstance(agent := part.output.get("agentId"), str):
                    yield part.id, f"{session.id}:agent-{agent}"
