"""`hitherto acp --agent` in front of real agents, with the protocol's TypeScript SDK as the client: `make interop`.

opencode and goose come from npm and need no account: their model is on the loopback interface. Every line that the
client gets is held against the official schema.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import hitherto
from hitherto.model import LOCAL, RECORDS
from hitherto.sources import AGENTS
from hitherto.sources.sync.recordings import unlink_extended
from tests.acp.wire import environment, url_of
from tests.engines.provider import PAUSE, Step
from tests.interop.acp_typescript import DRIVER, EVERYTHING, Driver, check_lines, says
from tests.interop.packages import NODE, SDK, install
from tests.interop.programs import COMMAND, RUN, Goose, Json, Opencode, answered, running
from tests.sources.agent_home import House
from tests.support.waits import arrives

Behind = Opencode | Goose
TAP = Path(__file__).parent / "tap.py"
TOLD = "the earlier part of this conversation"
"""In what an agent is told that was not there."""


class Known(NamedTuple):
    """What is known of an agent: how it opens a session again, whether it can delete one, and how it is told to ask."""

    found: str
    deletes: bool
    asking: dict[str, str]


KNOWN = {
    "opencode": Known("resumed", deletes=False, asking={"OPENCODE_PERMISSION": '{"bash": "ask"}'}),
    "goose": Known("loaded", deletes=True, asking={"GOOSE_MODE": "approve"}),
}


pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    install()


@pytest.fixture(params=list(KNOWN))
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Behind]:
    with running(request.param, tmp_path) as made:
        assert isinstance(made, Behind)
        yield made


@asynccontextmanager
async def driving(agent: Behind, folder: Path, env: Mapping[str, str] | None = None) -> AsyncIterator[Driver]:
    """The client, `hitherto acp` and the agent, each a process of its own; the agent's sessions and ours outlive them."""
    lines = folder / "lines"
    lines.mkdir(exist_ok=True)
    client = [str(NODE), str(DRIVER), str(SDK / "dist" / "v1" / "unstable" / "acp.js")]
    tap = [sys.executable, str(TAP), str(lines)]
    ours = [sys.executable, "-m", "hitherto", "acp", "--store", url_of(folder)]
    behind = shlex.join([str(agent.binary), "acp"])
    process = await asyncio.create_subprocess_exec(
        *(*client, *tap, *ours, "--agent", behind),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=agent.work,
        env=environment(folder, {**agent.environment, **(env or {})}),
        limit=64 * 1024 * 1024,
    )
    made = Driver(process, agent.model, agent.work)
    try:
        greeting = await made.call("initialize", protocolVersion=1, clientCapabilities=EVERYTHING)
        assert greeting["agentInfo"]["name"].lower() == agent.name
        yield made
        assert await made.leave() == 0
    finally:
        if process.returncode is None:
            process.kill()
        await arrives(process.wait(), "the end of the client")
    assert check_lines(lines) > 1


async def rows(driver: Driver) -> dict[str, Json]:
    return {row["sessionId"]: row for row in (await driver.call("session/list"))["sessions"]}


def kept_by(agent: Behind) -> set[str]:
    """The sessions that the agent has itself; goose does not list those of editors."""
    known = AGENTS[agent.name]
    kept = {found.identity for found in known.at(known.home(agent.variables())).find()}
    assert "" not in kept, f"what {agent.name} keeps could not be read"
    return kept


def asked(driver: Driver) -> str:
    """What the model was asked last, but for titles."""
    bodies = [json.dumps(body["messages"]) for body in driver.provider.requests if body.get("tools")]
    return bodies[-1]


async def test_a_session_is_made_prompted_listed_loaded_forked_and_deleted(
    agent: Behind, tmp_path: Path
) -> None:
    async with driving(agent, tmp_path) as driver:
        session = (await driver.open())["sessionId"]
        assert (await driver.prompt(session, "Paint the barn"))["stopReason"] == "end_turn"
        first = await driver.replay(session)
        assert [kind for kind, _ in first] == ["user_message_chunk", "agent_message_chunk"]
        assert first[0][1] == "Paint the barn"
        row = (await rows(driver))[session]
        assert (row["cwd"], row["_meta"]["messageCount"]) == (str(agent.work), 2)
        (behind,) = kept_by(agent)
        assert behind != session

    async with driving(agent, tmp_path) as driver:
        before = len(driver.said)
        opened = await driver.open("session/load", sessionId=session)
        assert opened["_meta"]["hitherto/behind"] == KNOWN[agent.name].found
        assert said_in(driver.said[before:]) == first
        assert (await driver.prompt(session, "And the fence"))["stopReason"] == "end_turn"
        assert TOLD not in asked(driver)
        assert "Paint the barn" in asked(driver)
        second = await driver.replay(session)
        assert second[:2] == first
        assert len(second) == 4

        fork = (await driver.open("session/fork", sessionId=session))["sessionId"]
        assert (await driver.prompt(fork, "Mow the lawn"))["stopReason"] == "end_turn"
        assert asked(driver).count("Paint the barn") == 1
        assert (TOLD in asked(driver)) is (agent.name == "goose")
        assert (await driver.replay(fork))[:4] == second
        assert len(await driver.replay(fork)) == 6
        assert await driver.replay(session) == second
        assert len(kept_by(agent)) == 2

        assert await driver.call("session/delete", sessionId=session) == {}
        assert list(await rows(driver)) == [fork]
        assert (behind not in kept_by(agent)) is KNOWN[agent.name].deletes


async def test_a_session_is_listed_once_however_it_came(agent: Behind, tmp_path: Path) -> None:
    async with driving(agent, tmp_path) as driver:
        session = (await driver.open())["sessionId"]
        await driver.prompt(session, "Paint the barn")
        said = await driver.replay(session)
    known = AGENTS[agent.name]
    source = known.at(known.home(agent.variables()))
    async with hitherto.open(url_of(tmp_path)) as sessions:
        since = await sessions.changes.newest(LOCAL)
        assert (await House(tmp_path, sessions, source).sync()).failed == ()
        await unlink_extended(sessions, LOCAL, since)
        assert [each.id for each in (await sessions.find(LOCAL)).sessions] == [session]
        (copy,) = (await sessions.get(LOCAL, session)).meta[RECORDS]
        assert (await sessions.get(LOCAL, copy)).message_count >= 2  # goose notes more for itself
    elsewhere = tmp_path / "elsewhere"  # a store that knows nothing of it
    elsewhere.mkdir()
    async with driving(agent, elsewhere) as driver:
        assert list(await rows(driver)) == [copy]
        assert await driver.replay(copy) == said
        await driver.prompt(copy, "And the fence")
        assert TOLD not in asked(driver)
        assert "Paint the barn" in asked(driver)
        (goes_on,) = await rows(driver)
        assert len(await driver.replay(goes_on)) == 4
    assert len(kept_by(agent)) == 1


async def test_a_tool_is_passed_on_and_kept(agent: Behind, tmp_path: Path) -> None:
    async with driving(agent, tmp_path) as driver:
        session = (await driver.open())["sessionId"]
        await driver.prompt(session, "Paint the barn")
        assert (await driver.prompt(session, RUN))["stopReason"] == "end_turn"
        seen = calls(driver.said)
    async with driving(agent, tmp_path) as driver:
        await driver.open("session/load", sessionId=session)
        kept = calls(driver.said)
    assert set(kept) == set(seen)
    (call,) = kept.values()
    assert call["status"] == "completed"
    assert call["rawInput"]["command"] == COMMAND
    assert "grass" in json.dumps(call["content"])


async def test_the_agent_asks_the_editor_before_it_runs_something(agent: Behind, tmp_path: Path) -> None:
    async with driving(agent, tmp_path, KNOWN[agent.name].asking) as driver:
        session = (await driver.open())["sessionId"]
        await driver.prompt(session, "Paint the barn")
        assert (await driver.prompt(session, RUN))["stopReason"] == "end_turn"
        (question,) = [message["asked"] for message in driver.said if "asked" in message]
        assert question["sessionId"] == session
        assert list(calls(driver.said)) == [question["toolCall"]["toolCallId"]]


async def test_a_running_prompt_is_cancelled_and_the_session_goes_on(agent: Behind, tmp_path: Path) -> None:
    async with driving(agent, tmp_path) as driver:
        session = (await driver.open())["sessionId"]
        await driver.prompt(session, "Paint the barn")
        driver.provider.otherwise = halting
        prompt = await driver.begin_prompt(session, "Go")
        await driver.until(says("Half"))
        await driver.tell(notify="session/cancel", params={"sessionId": session})
        assert (await driver.end(prompt))["stopReason"] == "cancelled"
        driver.provider.go.set()
        driver.provider.otherwise = answered
        assert [text for _, text in await driver.replay(session)][2:] == ["Go", "Half"]
        assert (await driver.prompt(session, "And the fence"))["stopReason"] == "end_turn"


async def test_a_title_that_the_agent_finds_is_in_the_list(agent: Behind, tmp_path: Path) -> None:
    async with driving(agent, tmp_path) as driver:
        session = (await driver.open())["sessionId"]
        await driver.prompt(session, "Paint the barn")
        title = (await rows(driver))[session]["title"]
        assert title == {"goose": "About the barn", "opencode": "Paint the barn"}[agent.name]
        await driver.call("session/set_title", sessionId=session, title="Colours")
        await driver.prompt(session, "And the fence")
        assert (await rows(driver))[session]["title"] == "Colours"


def halting(body: Json) -> Sequence[Step]:
    """A model that says half of what it has to say, and waits."""
    return ["Half", PAUSE, "whole"] if body.get("tools") else answered(body)


def said_in(messages: list[Json]) -> list[tuple[str, str]]:
    """The chunks among what the client told."""
    updates = [message["update"]["update"] for message in messages if "update" in message]
    chunks = [update for update in updates if update["sessionUpdate"].endswith("_chunk")]
    return [(chunk["sessionUpdate"], chunk["content"]["text"]) for chunk in chunks]


def calls(messages: list[Json]) -> dict[str, Json]:
    """The calls among what the client told, as they are after all updates."""
    found: dict[str, Json] = {}
    for message in messages:
        update = message.get("update", {}).get("update", {})
        if update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            known = found.setdefault(update["toolCallId"], {})
            known.update((name, value) for name, value in update.items() if value is not None)
    return found
