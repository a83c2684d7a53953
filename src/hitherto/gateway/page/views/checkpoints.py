"""`/checkpoints`: the checkpoints of a session; `/checkpoint`: one of them, to read."""

from __future__ import annotations

from collections.abc import Mapping

from hitherto.errors import CheckpointNotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import row
from hitherto.gateway.page.render.transcript import messages_of
from hitherto.gateway.page.render.window import MessageWindow, WindowRequest, read_window
from hitherto.gateway.server.workers import Run
from hitherto.ids import now_ms
from hitherto.model import Checkpoint, Session

MOST = 200
REASONS = {
    "compaction": "Before a compaction",
    "rewind": "Before a rewind",
    "reset": "Before a reset",
    "restore": "Before a restore",
    "branch": "Another branch",
}
OTHER_REASON = "Checkpoint"


async def checkpoints(caller: Caller, query: Mapping[str, str], _: Run, __: bool) -> bytes:
    """Render the list of checkpoints, newest first."""
    home = caller.sessions.at(query.get("session", ""))
    session = await home.get(caller.who, query.get("session", ""))
    known = await home.checkpoints(caller.who, session.id)
    return templates.page(
        "checkpoints.html",
        session=session,
        checkpoints=[(each, _reason(each)) for each in known[: -MOST - 1 : -1]],
        more=max(0, len(known) - MOST),
        writes=_writes(caller, session),
        forks=caller.may("write"),
    )


async def checkpoint(caller: Caller, query: Mapping[str, str], run: Run, _: bool) -> bytes:
    """Render the messages of a checkpoint, read-only."""
    home = caller.sessions.at(query.get("session", ""))
    session = await home.get(caller.who, query.get("session", ""))
    known = await home.checkpoints(caller.who, session.id)
    found = next((each for each in known if each.id == query.get("id")), None)
    if found is None:
        raise CheckpointNotFound(query.get("id", ""))
    request = WindowRequest(
        session=session.id,
        checkpoint=found.id,
        at=query.get("at"),
        before=query.get("before"),
        after=query.get("after"),
        first="first" in query,
    )
    window = await read_window(home, caller.who, request)
    may = {"writes": _writes(caller, session), "forks": caller.may("write")}
    return await run(_render, session, found, window, may)


def _render(session: Session, found: Checkpoint, window: MessageWindow, may: Mapping[str, bool]) -> bytes:
    return templates.page(
        "checkpoint.html",
        row=row(session, now_ms()),
        session=session,
        checkpoint=found,
        reason=_reason(found),
        window=window,
        messages=messages_of(window, {}),
        **may,
    )


def _reason(given: Checkpoint) -> str:
    return REASONS.get(given.reason, OTHER_REASON)


def _writes(caller: Caller, session: Session) -> bool:
    return caller.may("write") and session.source is None
