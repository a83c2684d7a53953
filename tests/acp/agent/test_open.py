"""Sessions that are opened: what their tools may touch, and how many there may be."""

from __future__ import annotations

import pytest

from hitherto.acp.agent import connection
from hitherto.model import LOCAL
from tests.acp.agent.in_process import made as made_in
from tests.acp.agent.in_process import serving
from tests.support.scripted_engine import Scripted


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
@pytest.mark.parametrize(("cwd", "given"), [("/", ()), ("/p", ("/p",))])
async def test_a_session_without_a_folder_is_given_none_by_the_folder_that_lists_show(
    method: str, cwd: str, given: tuple[str, ...]
) -> None:
    engine = Scripted()
    async with serving(engine) as (line, sessions):
        session = await sessions.create(LOCAL)
        (row,) = (await line.call("session/list"))["sessions"]
        assert row["cwd"] == "/"
        answer = await line.call(method, sessionId=session.id, cwd=cwd, mcpServers=[])
        opened = answer.get("sessionId", session.id)
        await line.call("session/prompt", sessionId=opened, prompt=[{"type": "text", "text": "Go"}])
        (setup,) = engine.setups
        assert setup.roots == given


async def test_what_cannot_be_opened_because_too_many_are_is_not_made_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "OPEN_SESSIONS", 3)
    async with serving(Scripted()) as (line, sessions):
        asked = {"cwd": "/p", "mcpServers": []}
        numbers = [line.begin("session/new", **asked) for _ in range(6)]  # all at once
        places = [await line.until(lambda message, at=at: message.get("id") == at) for at in numbers]  # type: ignore[misc]
        answers = [line.seen[place] for place in places]
        made = [answer["result"]["sessionId"] for answer in answers if "result" in answer]
        assert len(made) == 3
        assert {answer["error"]["code"] for answer in answers if "error" in answer} == {-32050}
        for method in ("session/new", "session/fork"):
            assert (await line.refusal(method, sessionId=made[0], **asked))["code"] == -32050
        assert await made_in(sessions) == set(made)
        await line.call("session/load", sessionId=made[0], **asked)  # it is open already
        await line.call("session/close", sessionId=made[1])
        await line.call("session/new", **asked)
