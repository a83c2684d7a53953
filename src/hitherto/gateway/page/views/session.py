"""`/s/ID`: a session and a page of what was said in it; `/message`: one message by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hitherto.errors import NotFound
from hitherto.exports.markdown import blocks
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import Row, row
from hitherto.gateway.page.render.transcript import messages, messages_of
from hitherto.gateway.page.render.window import WindowRequest, MessageWindow, read_window
from hitherto.gateway.page.views.permission import question_of
from hitherto.ids import now_ms
from hitherto.model import Entry, Live, Principal, Session, Text, ToolResult, decode_json, encode
from hitherto.service import Sessions
from hitherto.service.turns.journal import FAILURE
from hitherto.values.keys import is_ephemeral

RUNNING = ("running", "waiting")


async def session_page(caller: Caller, request: WindowRequest, *, answers: bool = False) -> bytes:
    """Render a session page with a window of its messages, however long the session is.

    `answers`: the server has an engine.
    """
    home = caller.sessions.at(request.session)
    newest = await home.changes.newest(caller.who)
    session = await home.get(caller.who, request.session)
    window = await read_window(home, caller.who, request)
    children = await children_of(home, caller.who, session, window.entries, now_ms())
    live = None if window.after else await _saying(home, caller, session)
    may = {
        "writes": caller.may("write"),
        "rewinds": caller.may("write") and session.source is None,
        "runs": answers and caller.may("run") and session.source is None,
        "permits": caller.may("commands"),
        "question": await question_of(home, caller.who, session),
        "apart": is_ephemeral(session.id),
        "failure": None if window.after else await _failure(home, caller, session),
    }
    return await asyncio.to_thread(_rendered, session, window, children, request, live, newest, may)


async def message(caller: Caller, session_id: str, entry_id: str, form: str) -> bytes:
    """A message as it is kept, or as the Markdown that its texts are."""
    entry = await caller.sessions.at(session_id).entry(caller.who, session_id, entry_id)
    if form == "markdown":
        return _markdown(entry).encode("utf-8", "replace")
    kept = decode_json(encode(entry))
    return json.dumps(kept, ensure_ascii=False, indent=2).encode("utf-8", "replace")


async def _saying(home: Sessions, caller: Caller, session: Session) -> Entry | None:
    """What a running turn has said so far of its next message."""
    data = await home.changes.live(caller.who, session.id)
    if data is None:
        return None
    live = msgspec.convert(decode_json(data), Live)
    return Entry(id=live.entry, at=now_ms(), role="assistant", parts=live.parts)


async def _failure(home: Sessions, caller: Caller, session: Session) -> str | None:
    """Why the last prompt was not answered, unless it was taken back."""
    told = session.meta.get(FAILURE)
    if session.status != "failed" or not isinstance(told, dict):
        return None
    try:
        prompt = str(told.get("prompt"))
        await home.history(caller.who, session.id, view="conversation", around=prompt, limit=1)
    except NotFound:
        return None
    return str(told.get("why"))


def _rendered(
    session: Session,
    window: MessageWindow,
    children: dict[str, Row],
    request: WindowRequest,
    live: Entry | None,
    newest: int,
    may: dict[str, Any],
) -> bytes:
    return templates.page(
        "session.html",
        row=row(session, now_ms()),
        session=session,
        messages=messages_of(window, children, runs=session.status in RUNNING),
        window=window,
        saying=None if live is None else messages([live])[0],
        request=request,
        newest=newest,
        **may,
    )


def _markdown(entry: Entry) -> str:
    """Texts as they were written; what is no text as an export writes it."""
    pieces = [
        piece for part in entry.parts for piece in ((part.text,) if isinstance(part, Text) else blocks(part))
    ]
    return "\n\n".join(pieces)


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
