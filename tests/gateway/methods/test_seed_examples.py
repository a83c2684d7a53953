"""The examples that the gateway was asked for, field by field, and what it does when a parameter is left out."""

from __future__ import annotations

import json

import pytest

from hitherto.ports import Store
from hitherto.service import Sessions
from tests.gateway.methods.asker import KEY, Asker
from tests.gateway.seed_examples import EXAMPLES, Summariser, differences, short_talk
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_is_answered_field_by_field(name: str, store: Store, clock: Clock) -> None:
    example = EXAMPLES[name]
    asker = Asker(Sessions(store, now=clock), engine=Scripted(summariser=Summariser()))
    await example.prepare(asker, clock)
    sent = json.loads(example.request)
    assert sent["method"] == name
    assert differences(json.loads(example.answer), await asker.ask(sent["method"], **sent["params"])) == []


async def test_a_list_without_parameters_has_50_sessions_from_the_first_on(
    sessions: Sessions, clock: Clock
) -> None:
    asker = Asker(sessions)
    for number in range(60):
        clock.advance()
        await asker.ask("session.create", title=f"T{number}")
    page = await asker.ask("session.list")
    assert [each["title"] for each in page["sessions"]] == [f"T{number}" for number in range(59, 9, -1)]
    assert page["total"] == 60
    for params in ({"cursor": page["cursor"]}, {"offset": 50}):
        rest = await asker.ask("session.list", **params)
        assert [each["title"] for each in rest["sessions"]] == [f"T{number}" for number in range(9, -1, -1)]
        assert "cursor" not in rest


async def test_a_history_without_a_limit_has_the_newest_100_messages(sessions: Sessions) -> None:
    asker = Asker(sessions)
    await asker.say(*(f"{number}" for number in range(150)))
    found = await asker.ask("session.history", session_key=KEY)
    assert [message["content"] for message in found["messages"]] == [f"{number}" for number in range(50, 150)]
    assert found["total"] == 150
    before = found["previous"]
    assert await asker.said(before=before, limit=10) == [f"{number}" for number in range(40, 50)]
    assert await asker.said(after=before, limit=10) == [f"{number}" for number in range(51, 61)]


async def test_markdown_is_one_text(sessions: Sessions, clock: Clock) -> None:
    asker = Asker(sessions)
    await short_talk(asker, clock)
    for format in ("markdown", "html", "jsonl"):
        answer = await asker.ask("session.export", session_key=KEY, format=format)
        assert answer["format"] == format
        assert isinstance(answer["data"], str)
        assert "What did we discuss yesterday?" in answer["data"]
