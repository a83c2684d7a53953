"""`hitherto acp` is killed in the middle of prompts: what it has answered is there, prompt and answer."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import hitherto
from hitherto.model import LOCAL
from tests.acp.protocol_models import checked
from tests.acp.wire import LINE_BYTES, Talk, environment
from tests.engines import provider
from tests.engines.provider import Provider, Step
from tests.mutants import ROOT
from tests.support.waits import LIMIT
from torture.clients import agent_starter
from torture.kills.outcome import AcknowledgementLog, KillTally, Message, compare_with_store
from torture.kills.server import now
from torture.trial.program import Environment
from torture.trial.row import Setting
from torture.trial.stores import FILES, StoreProvider, examined

Json = dict[str, Any]
MODEL = "anthropic:claude-sonnet-5"
KILLS_OF_A_SESSION = 20
"""Then there are new ones: a model gets all that was said."""
TALKS = 3
"""Sessions in which one agent is prompted at the same time."""
MOST_HEARD = 60
"""An agent is killed when it has said at most so much."""
MARK = re.compile(r"\bp\d+\b")
KINDS = {agent_starter.WARM: 9, agent_starter.COLD: 1}
"""Of ten agents, so many are of this kind."""


class Agent(Talk):
    """An agent that may be killed; `ConnectionError` when it says no more."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        super().__init__(writer, reader)
        self._pid = pid

    async def read(self) -> Json:
        line = await asyncio.wait_for(self._out.readline(), LIMIT)
        if not line.endswith(b"\n"):
            raise ConnectionError("the agent has exited or closed the connection")
        return checked(line, self.methods)

    def kill(self) -> None:
        """It ends at once."""
        os.kill(self._pid, signal.SIGKILL)

    async def rest(self) -> AsyncIterator[Json]:
        """What it had said before it was killed."""
        with suppress(ConnectionError):
            while True:
                yield await self.read()


@asynccontextmanager
async def start_agent(port: int) -> AsyncIterator[Agent]:
    """An agent of the nursery at this port, greeted. With the block it ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LINE_BYTES)
    agent = Agent(reader, writer, int(await reader.readline()))
    try:
        await agent.initialize()
        yield agent
    finally:
        agent.kill()
        with suppress(ConnectionError):
            await reader.read()  # to its end: then the process is gone
        writer.close()


@contextmanager
def nursed(
    kind: str, folder: Path, store: str, program: Environment, asked: Provider, log: IO[bytes]
) -> Iterator[int]:
    """The port of a nursery for a store. Its agents ask this provider; what they log goes to `log`."""
    with subprocess.Popen(
        [sys.executable, "-m", agent_starter.__name__, kind, store, MODEL],
        cwd=ROOT,
        env=environment(folder, {**asked.environ(), **program}),
        stdout=subprocess.PIPE,
        stderr=log,
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def agents_killed(
    setting: Setting, program: Environment, kills: int, store_provider: StoreProvider = FILES
) -> KillTally:
    """Kill so many agents while they answer prompts in several sessions at once."""
    found = KillTally()
    for kind, share in KINDS.items():
        folder = setting.folder / f"{kind} agents"
        folder.mkdir(mode=0o700)
        dice = setting.dice(f"kills of {kind} agents")
        many = -(-kills * share // sum(KINDS.values()))
        found += asyncio.run(_killed(kind, folder, program, many, dice, store_provider))
    return found


async def _killed(
    kind: str,
    folder: Path,
    program: Environment,
    kills: int,
    dice: random.Random,
    store_provider: StoreProvider,
) -> KillTally:
    store, talks, problems, book = (
        store_provider.store(folder),
        list[str](),
        list[str](),
        AcknowledgementLog(iter(())),
    )
    with provider.serving() as asked, (folder / "log").open("w+b") as log:
        asked.otherwise = _reply
        with nursed(kind, folder, store, program, asked, log) as port:
            for number in range(kills):
                if number % KILLS_OF_A_SESSION == 0:
                    talks += await _made(store, folder)
                    prompting = Prompting(folder, talks[-TALKS:], book)
                async with start_agent(port) as agent:
                    await prompting.killed(agent, dice.randint(1, MOST_HEARD))
                problems += await store_provider.left(folder)
            async with start_agent(port) as agent:
                await prompting.finished(agent)
        log.seek(0)
        problems += log.read().decode().splitlines()
    problems += await examined(store)
    found, killed = await compare_with_store(store, talks, book), Counter({f"acp ({kind})": kills})
    return found + KillTally(killed, examinations=kills + 1, problems=tuple(problems))


async def _made(store: str, folder: Path) -> list[str]:
    async with hitherto.open(store) as sessions:
        return [(await sessions.create(LOCAL, cwd=str(folder))).id for _ in range(TALKS)]


def _reply(body: Json) -> Sequence[Step]:
    """Say something that the prompt alone has as its answer."""
    # A prompt that was never answered stands in the same message, before the newest.
    text = " ".join(block["text"] for block in body["messages"][-1]["content"])
    return [f"a{MARK.findall(text)[-1]} ", "Noted."]


class Prompting:
    """A client that prompts in all of its sessions at once, in each one prompt after the other."""

    def __init__(self, folder: Path, talks: Sequence[str], book: AcknowledgementLog) -> None:
        self._folder, self._talks, self._book = folder, talks, book

    async def killed(self, agent: Agent, heard: int) -> None:
        """Prompt until the agent has said so much since it was greeted; then kill it."""
        waiting = await self._begun(agent)
        for _ in range(heard):
            done = self._answered(await agent.step(), waiting)
            if done is not None:
                await self._prompt(agent, done, waiting)
        agent.kill()
        async for message in agent.rest():
            self._answered(message, waiting)
        for prompt in waiting.values():
            self._book.unknown[prompt.mark] = self._book.unknown[f"a{prompt.mark}"] = now()

    async def finished(self, agent: Agent) -> None:
        """Prompt once in each session, and hear all answers."""
        waiting = await self._begun(agent)
        while waiting:
            self._answered(await agent.step(), waiting)

    async def _begun(self, agent: Agent) -> dict[int, Message]:
        waiting: dict[int, Message] = {}
        for talk in self._talks:
            opened = {"sessionId": talk, "cwd": str(self._folder), "mcpServers": []}
            await agent.call("session/resume", opened)
            await self._prompt(agent, talk, waiting)
        return waiting

    async def _prompt(self, agent: Agent, talk: str, waiting: dict[int, Message]) -> None:
        mark = f"p{len(self._book.said)}"
        prompt = Message(mark, talk, f"{mark} Please note this.")
        answer = Message(f"a{mark}", talk, f"a{mark} Noted.")
        self._book.said |= {mark: prompt, answer.mark: answer}
        waiting[await agent.begin_prompt(talk, prompt.text)] = prompt

    def _answered(self, message: Json, waiting: dict[int, Message]) -> str | None:
        """The session whose prompt this answers."""
        if "method" in message or message["id"] not in waiting:
            return None
        prompt = waiting.pop(message["id"])
        if message.get("result", {}).get("stopReason") == "end_turn":
            self._book.acknowledged |= {prompt.mark: "acp", f"a{prompt.mark}": "acp"}
        else:
            self._book.refused.append(f"{prompt.mark}: {message}")
        return prompt.session_id
