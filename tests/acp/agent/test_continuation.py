"""Sessions of other agents, which go on in a fork while the client keeps the id it has."""

from __future__ import annotations

import pytest

from hitherto.engine import Choices
from hitherto.errors import ModelMissing, ModelUnreachable
from hitherto.model import LOCAL, Entry, Text
from hitherto.service import Imported, Sessions
from tests.acp.agent.in_process import Json, Line, is_told, quiet, serving
from tests.support.scripted_engine import Scripted, says

NOON = 1_700_000_000_000
THEIRS = "claude:1"
OPENING = {"sessionId": THEIRS, "cwd": "/p", "mcpServers": []}


class Picky(Scripted):
    """Needs a model to be chosen."""

    async def window(self, choices: Choices) -> int | None:
        if choices.model is None:
            raise ModelMissing("no model")
        return None


async def take_in(sessions: Sessions, *said: str) -> None:
    entries = [
        Entry(id=f"e{at}", at=NOON + at, role="user", parts=(Text(text=text),))
        for at, text in enumerate(said)
    ]
    given = Imported(
        id=THEIRS, source="claude", created_at=NOON, updated_at=NOON + len(said), cwd="/p", title="Theirs"
    )
    await sessions.transfer.sync(LOCAL, given, entries)


async def prompt(line: Line, text: str) -> Json:
    return await line.call("session/prompt", sessionId=THEIRS, prompt=[{"type": "text", "text": text}])


def texts(messages: list[Json]) -> str:
    """All that was said in messages about the session."""
    told = [message["params"] for message in messages if message.get("method") == "session/update"]
    assert {each["sessionId"] for each in told} <= {THEIRS}
    return "".join(each["update"].get("content", {}).get("text", "") for each in told)


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
async def test_a_session_that_was_continued_is_opened_as_it_was_left(method: str) -> None:
    async with serving(Scripted(says("Fine."), says("Still fine."))) as (line, sessions):
        await take_in(sessions, "Before. ")
        await line.call("session/load", **OPENING)
        await prompt(line, "How now?")
        await line.call("session/set_mode", sessionId=THEIRS, modeId="plan")
        await line.call("session/close", sessionId=THEIRS)
        before = len(line.seen)
        answer = await line.call(method, **OPENING)
        assert answer["modes"]["currentModeId"] == "plan"
        replayed = "Before. How now?Fine." if method == "session/load" else ""
        assert texts(line.seen[before:]) == replayed
        await quiet()
        await prompt(line, "And now?")
        assert texts(line.seen[before:]) == replayed + "Still fine."
        fork = (await sessions.turns.continuation(LOCAL, THEIRS)).id
        assert (await line.call("session/resume", **{**OPENING, "sessionId": fork}))["modes"][
            "currentModeId"
        ] == "plan"


async def test_a_prompt_that_nothing_could_answer_leaves_no_fork_behind() -> None:
    async with serving(Picky()) as (line, sessions):
        await take_in(sessions, "Before. ")
        await line.call("session/load", **OPENING)
        asked = {"sessionId": THEIRS, "prompt": [{"type": "text", "text": "How now?"}]}
        assert (await line.refusal("session/prompt", **asked))["data"]["code"] == "model_missing"
        await quiet()
        assert [session.id for session in (await sessions.find(LOCAL)).sessions] == [THEIRS]
        told = [
            message["params"]["update"] for message in line.seen if is_told(message, "session_info_update")
        ]
        assert not any("hitherto/continuedAs" in update.get("_meta", {}) for update in told)


async def test_the_fork_is_named_also_when_the_answer_is_an_error_and_is_told_as_nothing_else() -> None:
    async def fails(_: object) -> object:
        raise ModelUnreachable("no connection")
        yield

    async with serving(Scripted(fails)) as (line, sessions):
        await take_in(sessions, "Before. ")
        await line.call("session/load", **OPENING)
        asked = {"sessionId": THEIRS, "prompt": [{"type": "text", "text": "How now?"}]}
        assert (await line.refusal("session/prompt", **asked))["data"]["code"] == "model_unreachable"
        fork = await sessions.turns.continued(LOCAL, THEIRS)
        assert fork is not None
        told = [
            message["params"]["update"].get("_meta")
            for message in line.seen
            if is_told(message, "session_info_update")
        ]
        assert [meta for meta in told if meta] == [{"hitherto/continuedAs": fork.id}]


async def test_what_the_other_agent_said_since_is_told_to_be_left_out() -> None:
    capabilities: Json = {"session": {"notices": {}}}
    async with serving(Scripted(says("Fine.")), capabilities=capabilities) as (line, sessions):
        await take_in(sessions, "Before. ")
        await line.call("session/load", **OPENING)
        await prompt(line, "How now?")
        fork = await sessions.turns.continuation(LOCAL, THEIRS)
        assert not any(is_told(message, "notice") for message in line.seen)
        given = Imported(
            id=THEIRS, source="claude", created_at=NOON, updated_at=fork.created_at + 1, cwd="/p"
        )
        entries = [Entry(id=name, at=NOON, role="user", parts=(Text(text=name),)) for name in ("e0", "since")]
        await sessions.transfer.sync(LOCAL, given, entries)
        await line.call("session/load", **OPENING)
        at = await line.until(lambda message: is_told(message, "notice"))
        assert "claude" in line.seen[at]["params"]["update"]["title"]
