"""`/inbox`: what waits for you, of all agents; `/waiting`: how much waits for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.list_query import ListQuery
from hitherto.gateway.page.render.rows import Row, row
from hitherto.gateway.page.views.permission import Question, question_of
from hitherto.gateway.server.workers import Run
from hitherto.ids import now_ms
from hitherto.model import Filter, Session, Status
from hitherto.values.days import DAY_MS

MOST, RECENT = 50, 200
NEW_MS = 2 * DAY_MS
"""A session that was never read is new for so long."""


class Waiting(msgspec.Struct, frozen=True):
    """A session that waits for an answer."""

    id: str
    title: str


class Item(NamedTuple):
    """A row of the inbox, with what it asks."""

    row: Row
    question: Question | None = None


class Section(NamedTuple):
    """What is in the inbox for one reason."""

    title: str
    items: tuple[Item, ...]


async def inbox(caller: Caller, query: Mapping[str, str], run: Run, answers: bool) -> bytes:  # noqa: ARG001 - a view
    """Render the inbox: what waits for an answer, runs, failed or was interrupted, or is new; each session once."""
    newest = await caller.sessions.changes.newest(caller.who)
    found = {status: await _found(caller, status) for status in ("running", "failed", "interrupted")}
    page = await caller.sessions.find(caller.who, Filter(subagents=False), limit=RECENT)
    known = {each.id: each for each in (*page.sessions, *(s for listed in found.values() for s in listed))}
    used = await caller.sessions.spending.numbers(caller.who, list(known))
    rows = [row(session, now_ms(), used.get(session.id)) for session in known.values()]
    asked = await asyncio.gather(
        *(question_of(caller.sessions, caller.who, each.session) for each in rows if _waits(each.session))
    )
    questions = dict(zip((each.session.id for each in rows if _waits(each.session)), asked, strict=True))
    return templates.page(
        "inbox.html",
        sections=list(_sections(rows, questions)),
        newest=newest,
        query=ListQuery(),
        writes=False,
        permits=caller.may("commands"),
    )


async def waiting(caller: Caller) -> list[Waiting]:
    """The sessions that wait for an answer, newest first. One whose turn is gone waits no longer."""
    found = await _found(caller, "waiting")
    return [Waiting(each.id, row(each, now_ms()).title) for each in found if _waits(each)]


async def _found(caller: Caller, status: Status) -> Sequence[Session]:
    return (await caller.sessions.find(caller.who, Filter(status=status), limit=MOST)).sessions


def _sections(rows: Sequence[Row], questions: Mapping[str, Question | None]) -> Iterator[Section]:
    newest = sorted(rows, key=lambda each: -each.session.updated_at)
    left = {each.session.id: each for each in newest}
    for title, belongs in (
        ("Waiting for your answer", lambda each: _waits(each.session)),
        ("Running", lambda each: each.session.status == "running"),
        ("Failed or interrupted", lambda each: _ended_badly(each) and not _is_read(each.session)),
        ("New", _is_new),
    ):
        chosen = [each for each in left.values() if belongs(each)][:MOST]
        for each in chosen:
            del left[each.session.id]
        if chosen:
            yield Section(title, tuple(Item(each, questions.get(each.session.id)) for each in chosen))


def _waits(session: Session) -> bool:
    return session.status == "waiting"


def _ended_badly(row: Row) -> bool:
    return row.failed or row.session.status in ("failed", "interrupted")


def _is_read(session: Session) -> bool:
    return session.read_at is not None and session.read_at >= session.updated_at


def _is_new(row: Row) -> bool:
    """Whether something was said since it was read; of what was never read, whether that was lately."""
    never = row.session.read_at is None and now_ms() - row.session.updated_at < NEW_MS
    return not row.session.archived and (row.unread or never)
