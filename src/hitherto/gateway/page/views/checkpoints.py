"""`/checkpoints`: what a session was once; `/checkpoint`: one of them, to look at."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hitherto.errors import CheckpointNotFound
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import row
from hitherto.gateway.page.render.transcript import messages_of
from hitherto.gateway.page.render.window import WindowRequest, MessageWindow, read_window
from hitherto.ids import now_ms
from hitherto.model import Checkpoint, Session

MOST = 200
REASONS = {
    "compaction": "Before a compaction",
    "rewind": "Before a rewind",
    "reset": "Before a reset",
    "restore": "Before a restore",
}
OTHERWISE = "Checkpoint"


async def checkpoints(caller: Caller, told: Mapping[str, str], _: bool) -> bytes:
    """The newest first."""
    home = caller.sessions.at(told.get("session", ""))
    session = await home.get(caller.who, told.get("session", ""))
    known = await home.checkpoints(caller.who, session.id)
    return templates.page(
        "checkpoints.html",
        session=session,
        checkpoints=[(each, _reason(each)) for each in known[: -MOST - 1 : -1]],
        more=max(0, len(known) - MOST),
        writes=_writes(caller, session),
        forks=caller.may("write"),
    )


async def checkpoint(caller: Caller, told: Mapping[str, str], _: bool) -> bytes:
    """A page of what was said then. It is only read."""
    home = caller.sessions.at(told.get("session", ""))
    session = await home.get(caller.who, told.get("session", ""))
    known = await home.checkpoints(caller.who, session.id)
    found = next((each for each in known if each.id == told.get("id")), None)
    if found is None:
        raise CheckpointNotFound(told.get("id", ""))
    request = WindowRequest(
        session=session.id,
        checkpoint=found.id,
        at=told.get("at"),
        before=told.get("before"),
        after=told.get("after"),
        first="first" in told,
    )
    window = await read_window(home, caller.who, request)
    may = {"writes": _writes(caller, session), "forks": caller.may("write")}
    return await asyncio.to_thread(_rendered, session, found, window, may)


def _rendered(session: Session, found: Checkpoint, window: MessageWindow, may: Mapping[str, bool]) -> bytes:
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
    return REASONS.get(given.reason, OTHERWISE)


def _writes(caller: Caller, session: Session) -> bool:
    return caller.may("write") and session.source is None
