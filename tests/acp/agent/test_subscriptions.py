"""Subscriptions to the list of sessions, as one connection has them."""

from __future__ import annotations

import asyncio

import pytest

from hitherto.acp.agent import extensions
from hitherto.model import LOCAL
from tests.acp.agent.in_process import Json, Line, quiet, serving
from tests.support.scripted_engine import Scripted
from tests.support.waits import until

CHANGES = "_hitherto/session/list/changes"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "COALESCED_SECONDS", 0)


def told(line: Line) -> list[Json]:
    return [message["params"] for message in line.seen if message.get("method") == CHANGES]


async def test_a_filtered_list_is_told_nothing_of_sessions_that_never_were_in_it() -> None:
    async with serving(Scripted()) as (line, sessions):
        within = await sessions.create(LOCAL, cwd="/p")
        beside = await sessions.create(LOCAL, cwd="/q")
        await line.call("_hitherto/session/list/subscribe", cwd="/p")
        await sessions.create(LOCAL, cwd="/q")
        await sessions.rename(LOCAL, beside.id, "Beside")
        await quiet()
        assert told(line) == []
        await sessions.archive(LOCAL, within.id)
        await line.until(lambda message: message.get("method") == CHANGES)
        await sessions.move(LOCAL, beside.id, "/p")
        await line.until(lambda message: bool(message.get("params", {}).get("sessions")))
        seen = [([row["sessionId"] for row in each["sessions"]], each["removed"]) for each in told(line)]
        assert seen == [([], [within.id]), ([beside.id], [])]


async def test_what_was_subscribed_to_and_is_no_more_leaves_nothing_running() -> None:
    async with serving(Scripted()) as (line, _):
        asked = await line.call("_hitherto/session/list/subscribe")
        await quiet()
        before = len(asyncio.all_tasks())
        for _ in range(5):
            await line.call("_hitherto/session/list/unsubscribe", **asked)
            asked = await line.call("_hitherto/session/list/subscribe")
        await until(lambda: len(asyncio.all_tasks()) == before, "what is subscribed to no more to end")
        both = line.begin("_hitherto/session/list/unsubscribe", **asked)
        asked = await line.call("_hitherto/session/list/subscribe")
        await line.answer(both)
        await until(lambda: len(asyncio.all_tasks()) == before, "what is subscribed to no more to end")
