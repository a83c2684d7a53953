"""Memory runs out: a server may not have more of it than it has, while large messages are stored, searched and imported.

A limit is put on the running process and taken away again. Each request is answered, with an error that has a code, or
the connection ends, or the process does: libraries of C that the program is built on do not examine every allocation.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.workloads.server_load import Server, served
from torture.clients.acknowledged import Client, Judged, Pages, clients, code_of, judged, mark_for
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

CLIENTS = 3
LARGE = 4_000_000
ROUNDS = 8
MOST_ROOM, LEAST_ROOM = 64 * 1024 * 1024, 1024 * 1024
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
LINES, IMPORTED = 40, "and on " * 3_000
PATIENCE = 120


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Take the memory from one server after the other; see that each store serves again, with all that was acknowledged."""
    servers, dice = setting.of(short=2, full=50), setting.dice("memory")
    told, verdict = Counter[str](), Judged()
    for number in range(servers):
        folder = setting.folder / f"life{number}"
        folder.mkdir()
        more, found = asyncio.run(_life(folder, environment, dice))
        told, verdict = told + more, verdict + found
        setting.say(f"  {dict(told)}: {verdict.told()}")
    figure = (
        f"{servers:,} servers, {told['errors']:,} requests answered with an error, {told['cut off']:,} connections and"
        f" {told['ended']:,} processes ended ({told['by signal']:,} by a signal); {verdict.acknowledged:,} acknowledged:"
        f" {verdict.lost:,} lost; {told['untyped']:,} errors without a code, {told['stuck']:,} servers not at work"
        f" afterwards; {verdict.faults()}"
    )
    faults = told["errors"] + told["cut off"]
    return Outcome(
        met=verdict.whole and faults > 0 and not told["untyped"] and not told["stuck"],
        figure=figure,
        counts={"faults": faults, "acknowledged": verdict.acknowledged, "lost": verdict.lost},
    )


async def _life(folder: Path, environment: Environment, dice: random.Random) -> tuple[Counter[str], Judged]:
    with (folder / "log").open("wb") as log, served(folder, environment, log) as server:
        async with clients(server, CLIENTS, dice) as them:
            hands = [_Hand(client) for client in them]
            room = dice.randint(LEAST_ROOM, MOST_ROOM)
            _allow(server, server.address_space() + room)
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(hand.work() for hand in hands))
            _allow(server, None)
        told = sum((hand.told for hand in hands), Counter[str]())
        try:
            told["stuck"] += await _is_stuck(server, dice)
        except ConnectionError:  # so it is ending, if it has not ended yet
            code = server.ended(PATIENCE)
            told.update({"ended": 1, "by signal": code < 0})
    # Whether or not it has ended, the next one serves.
    with (folder / "log").open("ab") as log, served(folder, environment, log) as server:
        told["stuck"] += await _is_stuck(server, dice)
    pages = [each for hand in hands for each in hand.pages]
    return told, await judged(store_in(folder), pages)


async def _is_stuck(server: Server, dice: random.Random) -> bool:
    async with clients(server, 1, dice) as (client,):
        return await client.say() is not None


class _Hand:
    """One who appends, searches, reads and imports, until there is no answer any more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.told = Counter[str]()
        self.imported: list[Pages] = []

    @property
    def pages(self) -> Sequence[Pages]:
        """What was acknowledged. An error of the server itself says nothing about what was stored: the memory may have
        run out when the answer was made."""
        return [Pages(self._client.pages.session_id, self._client.pages.acknowledged), *self.imported]

    async def work(self) -> None:
        """Do all of it, some times."""
        named = {"session_id": self._client.pages.session_id}
        try:
            for number in range(ROUNDS):
                self._note(await self._client.say(LARGE))
                self._note(code_of(await self._client.ask("session.search", {"query": "and on*"})))
                self._note(code_of(await self._client.ask("session.history", named)))
                self._note(await self._import(number))
        except ConnectionResetError:
            self.told["cut off"] += 1

    async def _import(self, number: int) -> str | None:
        marks = [mark_for(f"{self._client.name}i{number}l{line}", IMPORTED) for line in range(LINES)]
        messages = [{"role": "user", "content": f"{mark} {IMPORTED}"} for mark in marks]
        answer = await self._client.ask("session.import", {"data": {"messages": messages}})
        if "result" in answer:
            self.imported.append(Pages(answer["result"].get("session_id", ""), marks))
        return code_of(answer)

    def _note(self, code: str | None) -> None:
        self.told["errors"] += code is not None
        self.told["untyped"] += code == ""


def _allow(server: Server, size: int | None) -> None:
    """Let the server have this much address space, or any."""
    with suppress(ProcessLookupError):  # it has ended
        limit = UNLIMITED if size is None else (size, resource.RLIM_INFINITY)
        resource.prlimit(server.pid, resource.RLIMIT_AS, limit)
