"""`/compare`: the sessions to compare with, and two sessions side by side from where they diverge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import Row, row
from hitherto.gateway.page.render.transcript import Message, messages, messages_of
from hitherto.gateway.page.render.window import MessageWindow, WindowRequest, read_window
from hitherto.gateway.server.workers import Run
from hitherto.ids import now_ms
from hitherto.model import Entry
from hitherto.service.history.comparison import Comparison, Side

NAMES = ("a", "b")


class Column(NamedTuple):
    """One of the two sessions: a page of the messages that only it has. `next` is the entry to continue after."""

    name: str
    side: Side
    row: Row
    messages: list[Message]
    total: int
    next: str | None


async def compare(caller: Caller, query: Mapping[str, str], run: Run, _: bool) -> bytes:
    """Render both sessions, or the choice of the second."""
    if "b" not in query:
        return await _relatives(caller, query.get("a", ""))
    home = caller.sessions
    found = await home.comparison.compare(caller.who, query.get("a", ""), query["b"])
    last = (
        None
        if found.ancestor is None
        else await home.entry(caller.who, found.sides[0].session.id, found.ancestor)
    )
    windows = [
        await read_window(
            home,
            caller.who,
            WindowRequest(
                session=side.session.id,
                after=(after := query.get(f"after_{name}", found.ancestor)),
                first=after is None,
                glance=True,
            ),
        )
        for name, side in zip(NAMES, found.sides, strict=True)
    ]
    return await run(_render, found, last, windows)


async def _relatives(caller: Caller, session_id: str) -> bytes:
    session, now = await caller.sessions.get(caller.who, session_id), now_ms()
    known = await caller.sessions.comparison.relatives(caller.who, session.id)
    return templates.page(
        "relatives.html",
        session=session,
        relatives=[(row(each.session, now), each.shared) for each in known],
    )


def _render(found: Comparison, last: Entry | None, windows: list[MessageWindow]) -> bytes:
    columns = [
        Column(
            name,
            side,
            row(side.session, now_ms()),
            messages_of(window, {}),
            window.total,
            window.entries[-1].id if window.after else None,
        )
        for name, side, window in zip(NAMES, found.sides, windows, strict=True)
    ]
    return templates.page(
        "compare.html",
        found=found,
        last=None if last is None else messages([last])[0],
        columns=columns,
    )
