"""`hitherto acp` is killed while tools run: the next prompt leaves no call without its result, and no record out of reach."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hitherto
from hitherto.model import LOCAL, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.engines import provider
from tests.engines.test_killed_turns import check_request, reply
from tests.support.homes import SqliteHome
from torture.clients import agent_starter
from torture.kills.agents import KILLS_OF_A_SESSION, Agent, nursed, start_agent
from torture.kills.outcome import entries_of
from torture.trial.program import Environment, store_in
from torture.trial.row import Setting
from torture.trial.stores import FILES, examined

Json = dict[str, Any]
MOST_HEARD = 12
"""An agent is killed when it has said at most so much since it told of the first tool."""
ENDED = ("completed", "failed")


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What became of sessions whose turns were killed."""

    kills: int = 0
    """While at least one tool had been called and had not ended."""
    orphans: int = 0
    """Tool calls without a result, or results without a call, in what is stored."""
    unpaired: int = 0
    """Requests to the model in which a call did not have its result in the very next message."""
    records: int = 0
    unreachable: int = 0
    problems: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all is as it was promised."""
        return not any((self.orphans, self.unpaired, self.unreachable, self.problems))

    def told(self) -> str:
        """In words, for the scorecard."""
        reached = 100 * (1 - self.unreachable / self.records)
        wrong = f"; {len(self.problems)} problems, the first: {self.problems[0]}" if self.problems else ""
        return (
            f"{self.kills:,} kills mid-tool: {self.orphans:,} calls or results without the other, {self.unpaired:,} requests"
            f" to the model with one, {reached:g} % of {self.records:,} records reached{wrong}"
        )


def turns_killed(setting: Setting, program: Environment, kills: int) -> Interrupted:
    """Kill so many agents while tools run, and prompt the next in the same session."""
    return asyncio.run(_killed(setting.folder, program, kills, setting.dice("kills of turns")))


async def _killed(folder: Path, program: Environment, kills: int, dice: random.Random) -> Interrupted:
    talks, problems = list[str](), list[str]()
    with provider.serving() as asked, (folder / "log").open("w+b") as log:
        asked.otherwise = reply
        with nursed(agent_starter.WARM, folder, store_in(folder), program, asked, log) as port:
            for first in range(0, kills, KILLS_OF_A_SESSION):
                talks.append(await _made(folder))
                problems += await _talked(
                    port, folder, talks[-1], min(KILLS_OF_A_SESSION, kills - first), dice
                )
        log.seek(0)
        problems += log.read().decode().splitlines()
    async with hitherto.open(store_in(folder)) as sessions:
        records, orphans = await _read(sessions, talks)
    stored = SqliteHome(folder).rows()["entry"]
    return Interrupted(
        kills=kills,
        orphans=orphans,
        unpaired=sum(not _is_paired(body) for body in asked.requests),
        records=stored,
        unreachable=stored - records,
        problems=tuple(problems),
    )


async def _made(folder: Path) -> str:
    async with hitherto.open(store_in(folder)) as sessions:
        return (await sessions.create(LOCAL, cwd=str(folder), title="Killed")).id


async def _talked(port: int, folder: Path, talk: str, kills: int, dice: random.Random) -> list[str]:
    """Prompt in a session until so many turns were killed, and once more; what was wrong meanwhile."""
    problems, killed = list[str](), 0
    while killed < kills:
        async with start_agent(port) as agent:
            killed += await _killed_in_turn(agent, talk, folder, dice)
        problems += await FILES.left(folder)
    async with start_agent(port) as agent:
        await agent.load(talk, folder)
        answer = await agent.prompt(talk, "And for the last time.")
    if answer["stopReason"] != "end_turn":
        problems.append(f"the last prompt: {answer}")
    return [*problems, *(await examined(store_in(folder)))]


async def _killed_in_turn(agent: Agent, talk: str, folder: Path, dice: random.Random) -> bool:
    """Load the session, prompt, and kill the agent somewhere between the first call and the last result.

    False if no tool was running at that moment.
    """
    await agent.load(talk, folder)
    number = await agent.begin_prompt(talk, "Please do it.")
    running: set[str] = set()
    more: int | None = None
    while more != 0:
        message = await agent.step()
        if message.get("id") == number and "method" not in message:
            return False
        _note(message, running)
        if more is None and running:
            more = dice.randrange(MOST_HEARD)
        elif more is not None:
            more -= 1
    agent.kill()
    async for message in agent.rest():
        _note(message, running)
    return bool(running)


def _note(message: Json, running: set[str]) -> None:
    """Keep account of the tools that run."""
    if message.get("method") != "session/update":
        return
    update = message["params"]["update"]
    if update["sessionUpdate"] == "tool_call":
        running.add(update["toolCallId"])
    elif update["sessionUpdate"] == "tool_call_update" and update.get("status") in ENDED:
        running.discard(update["toolCallId"])


async def _read(sessions: Sessions, talks: list[str]) -> tuple[int, int]:
    """How many records the sessions hold, and how many calls and results without each other."""
    records = orphans = 0
    for talk in talks:
        entries = [entry async for entry in entries_of(sessions, talk)]
        records += len(entries)
        parts = [part for entry in entries for part in entry.parts]
        calls = Counter(part.id for part in parts if isinstance(part, ToolCall))
        results = Counter(part.id for part in parts if isinstance(part, ToolResult))
        orphans += ((calls - results) + (results - calls)).total()
    return records, orphans


def _is_paired(body: Json) -> bool:
    with suppress(AssertionError):
        check_request(body)
        return True
    return False
