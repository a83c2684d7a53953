"""`/s/ID`: a session with a window of its messages; `/message`: one message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hitherto.errors import NotFound
from hitherto.exports.markdown import blocks
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.rows import Row, row
from hitherto.gateway.page.render.transcript import Transcript, messages
from hitherto.gateway.page.render.turns import feed
from hitherto.gateway.page.render.window import MessageWindow, WindowRequest, read_turns
from hitherto.gateway.page.views.permission import question_of
from hitherto.gateway.server.workers import Run
from hitherto.ids import now_ms
from hitherto.model import Entry, Live, Principal, Session, Text, ToolResult, decode_json, encode
from hitherto.service import Sessions
from hitherto.service.turns.journal import FAILURE
from hitherto.values.keys import is_ephemeral

RUNNING = ("running", "waiting")


async def session_page(caller: Caller, request: WindowRequest, run: Run, *, answers: bool = False) -> bytes:
    """Render a session page with a window of its messages, however long the session is.

    `answers`: the server has an engine.
    """
    home = caller.sessions.at(request.session)
    newest = await home.changes.newest(caller.who)
    session = await home.get(caller.who, request.session)
    window = await read_turns(home, caller.who, request)
    children = await children_of(home, caller.who, session, window.entries, now_ms())
    used = (await home.spending.numbers(caller.who, [session.id])).get(session.id)
    live = None if window.after else await _live_message(home, caller, session)
    may = {
        "writes": caller.may("write"),
        "rewinds": caller.may("write") and session.source is None,
        "runs": answers and caller.may("run") and session.source is None,
        "permits": caller.may("commands"),
        "question": await question_of(home, caller.who, session),
        "apart": is_ephemeral(session.id),
        "changes": (await home.edits.counts(caller.who, [session.id])).get(session.id),
        "branches": len(await home.branches.known(caller.who, session.id)),
        "failure": None if window.after else await _failure(home, caller, session),
    }
    return await run(_render, row(session, now_ms(), used), window, children, request, live, newest, may)


async def message(caller: Caller, session_id: str, entry_id: str, form: str, run: Run) -> bytes:
    """A message as stored, or as Markdown."""
    entry = await caller.sessions.at(session_id).entry(caller.who, session_id, entry_id)
    return await run(_shown, entry, form)


def _shown(entry: Entry, form: str) -> bytes:
    if form == "markdown":
        return _markdown(entry).encode("utf-8", "replace")
    kept = decode_json(encode(entry))
    return json.dumps(kept, ensure_ascii=False, indent=2).encode("utf-8", "replace")


async def _live_message(home: Sessions, caller: Caller, session: Session) -> Entry | None:
    """The unfinished message of a running turn."""
    data = await home.changes.live(caller.who, session.id)
    if data is None:
        return None
    live = msgspec.convert(decode_json(data), Live)
    parts = tuple(part for part in (*live.earlier, *live.parts) if getattr(part, "text", ""))
    return Entry(id=live.entry, at=now_ms(), role="assistant", parts=parts) if parts else None


async def _failure(home: Sessions, caller: Caller, session: Session) -> str | None:
    """Why the last prompt failed, unless it was rewound since."""
    failure = session.meta.get(FAILURE)
    if session.status != "failed" or not isinstance(failure, dict):
        return None
    try:
        prompt = str(failure.get("prompt"))
        await home.history(caller.who, session.id, view="conversation", around=prompt, limit=1)
    except NotFound:
        return None
    return str(failure.get("why"))


def _render(
    shown: Row,
    window: MessageWindow,
    children: dict[str, Row],
    request: WindowRequest,
    live: Entry | None,
    newest: int,
    may: dict[str, Any],
) -> bytes:
    return templates.page(
        "session.html",
        row=shown,
        session=shown.session,
        feed=feed(
            window,
            Transcript(window, children, shown.session.cwd),
            request,
            runs=shown.session.status in RUNNING,
        ),
        window=window,
        saying=None if live is None else messages([live])[0],
        request=request,
        newest=newest,
        **may,
    )


def _markdown(entry: Entry) -> str:
    """Texts as written; other parts as an export writes them."""
    pieces = [
        piece for part in entry.parts for piece in ((part.text,) if isinstance(part, Text) else blocks(part))
    ]
    return "\n\n".join(pieces)


MOST = 20
CHILD_ID_FIELDS = ("session_id", "sessionId", "child_session_id")
"""Fields of a result with the id of the session that the call started. Claude Code reports an agent id instead."""


async def children_of(
    home: Sessions, who: Principal, session: Session, entries: Sequence[Entry], now: int
) -> dict[str, Row]:
    """The sessions that calls among these entries started, by the id of the call."""
    found: dict[str, Row] = {}
    for call, name in child_ids(session, entries):
        if len(found) == MOST:
            break
        try:
            child = await home.get(who, name)
        except NotFound:
            continue
        if child.parent == session.id:
            found.setdefault(call, row(child, now))
    return found


def child_ids(session: Session, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Pairs of a call and the session id in its result. The session may be missing, or not a child."""
    for entry in entries:
        for part in entry.parts:
            if isinstance(part, ToolResult) and isinstance(part.output, dict):
                for name in CHILD_ID_FIELDS:
                    if isinstance(child := part.output.get(name), str):
                        yield part.id, child
                if isinstance(agent := part.output.get("agentId"), str):
                    yield part.id, f"{session.id}:agent-{agent}"
