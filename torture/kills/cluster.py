"""Three servers on one PostgreSQL in partitions, each as on a machine of its own: one is killed, one is cut off.

Clients that write go on at the others and say again what was not acknowledged. Clients that listen go on with their
cursors. Turns of the two servers are taken over when their leases are over, and what a late turn says is refused.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import hitherto
from bench.workloads.websocket import Wire, request
from hitherto.model import LOCAL, Lease, plain_text
from hitherto.service import Sessions
from hitherto.values.scopes import SCOPES
from tests.gateway.servers import go
from tests.mutants import ROOT
from torture.clients.acknowledged import Judged, code_of, judged
from torture.clients.persistent import Connection, Stubborn, Writer, at_work
from torture.trial.network import Connected, address, aside, connected
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

KILLED, CUT, LEFT = range(3)
"""The servers: what becomes of each."""
WRITERS = 6
PARTITIONS = 16
LATE_MS = 3_000
"""So long after the end of a lease a client that keeps asking must have it."""
SILENT_SECONDS = 2.0
"""A client that listens and hears nothing for so long goes elsewhere."""
PATIENCE = 60.0
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""In a space of process numbers of its own: like a server on another machine, it cannot see whether others run."""
Json = dict[str, Any]


class Wrong(NamedTuple):
    """What must not be, and how it was seen."""

    what: str
    seen: str


@dataclass
class Tally:
    """What was seen in all rounds."""

    rounds: int = 0
    missed: int = 0
    """Messages that a client with a cursor was not told of."""
    repeated: int = 0
    """Messages that it was told of twice, or out of order."""
    turns: int = 0
    taken: int = 0
    """Turns that were taken over in time, once, with nothing said by the late one."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the fault to the turn that was taken over."""
    moved: list[float] = field(default_factory=list)
    """Seconds from the faults until every writer was acknowledged elsewhere."""
    wrong: list[Wrong] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.missed or self.repeated or self.wrong) and self.taken == self.turns

    def faults(self) -> str:
        """What is wrong with leases and late turns."""
        counts = Counter(each.what for each in self.wrong)
        return "; ".join(f"{count} × {what}" for what, count in counts.items()) or "no late turn was heard"


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """All rounds, or as many as it takes until something is wrong."""
    tally, found = asyncio.run(_run_trial(setting, environment))
    for each in tally.wrong:
        setting.say(f"{each.what}: {each.seen}")
    figure = (
        f"{tally.rounds} × one of three servers killed and one cut off; {found.told()}; clients with cursors missed"
        f" {tally.missed} and were told {tally.repeated} twice; {tally.taken} of {tally.turns} turns taken over when their"
        f" lease was over ({max(tally.waits, default=0):.1f} s at most); writers went on elsewhere within"
        f" {max(tally.moved, default=0):.1f} s; {tally.faults()}"
    )
    counts = {"faults": 2 * tally.rounds, "acknowledged": found.acknowledged, "lost": found.lost}
    return Outcome(met=found.whole and tally.whole, figure=figure, counts=counts)


async def _run_trial(setting: Setting, environment: Environment) -> tuple[Tally, Judged]:
    tally, pages = Tally(), []
    async with connected(3, apart=True) as postgres:
        at_home = postgres.server.uri()
        async with hitherto.open(f"{at_home}&partitions={PARTITIONS}") as sessions:
            for number in range(setting.of(short=1, full=20)):
                with (setting.folder / f"log-{number}").open("wb") as log:
                    round_ = Round(number, setting, postgres, sessions, tally)
                    pages += await round_.run(environment, log)
                if not tally.whole:
                    break
        return tally, await judged(at_home, pages)


@contextmanager
def server(store: str, environment: Environment, log: Any) -> Iterator[tuple[int, Connection]]:
    """A server, as on a machine of its own; its process, and how a client knows it."""
    asked = json.dumps({"store": store, "tokens": {"local": ("local", SCOPES)}})
    process = subprocess.Popen(
        [*ALONE, sys.executable, "-m", "tests.gateway.server_worker", asked],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=log,
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield process.pid, Connection(told["port"], told["tokens"]["local"]["secret"])
    finally:
        process.kill()
        process.communicate()


class Round:
    """Three servers, from their start to their end."""

    def __init__(
        self, number: int, setting: Setting, postgres: Connected, sessions: Sessions, tally: Tally
    ) -> None:
        self._name, self._folder = f"r{number}", setting.folder
        self._dice = setting.dice(f"round {number}")
        self._postgres, self._sessions, self._tally = postgres, sessions, tally

    async def run(self, environment: Environment, log: Any) -> list[Any]:
        """Returns what the writers were told."""
        async with AsyncExitStack() as stack:
            starting = [
                stack.enter_async_context(aside(server(address(link), environment, log)))
                for link in self._postgres.cables
            ]
            (self._pid, first), second, third = [await each for each in starting]
            self._doors = [first, second[1], third[1]]
            writers = [Writer(self._doors, f"{self._name}w{n}", first=n) for n in range(WRITERS)]
            await at_work(writers, lambda: self._faults(writers))
        self._tally.rounds += 1
        return [writer.pages for writer in writers]

    async def _faults(self, writers: Sequence[Writer]) -> None:
        watchers = [Watcher(self._doors, writer, first=n + 1) for n, writer in enumerate(writers)]
        async with asyncio.TaskGroup() as tasks:
            listening = [tasks.create_task(watcher.listen()) for watcher in watchers]
            await asyncio.gather(*(writer.more(self._dice.randint(5, 40)) for writer in writers))
            turns = [await self._turn(where) for where in (KILLED, CUT)]
            os.kill(self._pid, signal.SIGKILL)
            await self._postgres.cables[CUT].cut()
            fault = time.monotonic()
            ends = await asyncio.gather(*(writer.after(fault) for writer in writers))
            self._tally.moved.append(max(ends) - fault)
            await asyncio.gather(*(turn.take_over(self._doors[LEFT], fault) for turn in turns))
            go(turns[CUT].pipe)
            await self._postgres.cables[CUT].heal()
            await turns[CUT].ended()
            for turn in turns:
                await turn.finish(self._doors[LEFT])
            await asyncio.gather(*(writer.rest() for writer in writers))
            await asyncio.gather(*(watcher.complete() for watcher in watchers))
            for task in listening:
                task.cancel()
        for watcher in watchers:
            self._tally.missed += watcher.missed()
            self._tally.repeated += watcher.repeated()

    async def _turn(self, where: int) -> Turn:
        turn = Turn(f"{self._name}t{where}", self._folder, self._sessions, self._tally)
        await turn.begin(self._doors[where])
        return turn


class Watcher:
    """Listens to what a writer says, at whichever server answers."""

    def __init__(self, doors: Sequence[Connection], writer: Writer, first: int) -> None:
        self._client, self._writer = Stubborn(doors, first), writer
        self._cursor: str | None = None
        self._due = 0
        """From which message on it must be told."""
        self._news = asyncio.Condition()
        self.told: list[str] = []

    async def listen(self) -> None:
        """Until it is cancelled; cut off or left in silence, it goes on elsewhere with its cursor."""
        while True:
            given: Json = {"session_id": self._writer.pages.session_id, "events": ["entries"]}
            try:
                if self._cursor is not None:
                    given["cursor"] = self._cursor
                answer = await self._client.ask("session.subscribe", given)
                if self._cursor is None:
                    self.subscribed(answer["cursor"])
                await self._hear(await self._client.wire())
            except (OSError, TimeoutError):
                self._client.turn_away()
            finally:
                self._client.close()

    def subscribed(self, cursor: str) -> None:
        """From now on it must be told, but for one message that may have been stored and not acknowledged yet."""
        self._cursor, self._due = cursor, len(self._writer.pages.acknowledged) + 1

    async def _hear(self, wire: Wire) -> None:
        while True:
            async with asyncio.timeout(SILENT_SECONDS):
                event = msgspec.json.decode(await wire.receive())["params"]
            async with self._news:
                self.told += [message["content"].partition(" ")[0] for message in event["messages"]]
                self._cursor = event["cursor"]
                self._news.notify_all()

    async def complete(self) -> None:
        """Wait until the last message has been told, or for a while."""
        wanted = self._writer.pages.acknowledged
        try:
            async with asyncio.timeout(PATIENCE), self._news:
                await self._news.wait_for(lambda: self.told[-1:] == wanted[-1:])
        except TimeoutError:
            pass  # then some are missed, and counted so

    def missed(self) -> int:
        """How many messages it was not told of that were said after it had subscribed; all, if it never had."""
        wanted = self._writer.pages.acknowledged[self._due :]
        return len(set(wanted) - set(self.told))

    def repeated(self) -> int:
        """How many it was told of twice, or out of order."""
        order = {mark: at for at, mark in enumerate(self._writer.pages.acknowledged)}
        places = [order.get(mark, -1) for mark in self.told]
        return sum(later <= earlier for earlier, later in itertools.pairwise(places))


class Turn:
    """A turn that waits for a pipe, and the one that takes its place."""

    def __init__(self, name: str, folder: Path, sessions: Sessions, tally: Tally) -> None:
        self._name, self._sessions, self._tally = name, sessions, tally
        self.pipe, self._second = folder / f"{name}-pipe", folder / f"{name}-second"
        os.mkfifo(self.pipe)
        os.mkfifo(self._second)

    async def begin(self, door: Connection) -> None:
        """Say something in a new session, and see its answer begin."""
        self._wire = await Wire.open(*door)
        self._id = (await self._sessions.create(LOCAL)).id
        self._first = {"session_id": self._id, "content": f"wait {self.pipe}", "idempotency_key": self._name}
        self._wire.send(request("session.send", self._first))
        await _until(lambda: self._lease(), "the turn has begun")

    async def take_over(self, door: Connection, fault: float) -> None:
        """Ask another server until it begins a turn in the same session."""
        lease = await self._lease()
        assert lease is not None, "the lease was given up before its time"
        client = Stubborn([door])
        asked = {
            "session_id": self._id,
            "content": f"wait {self._second}",
            "wait": False,
            "idempotency_key": f"{self._name}-second",
        }
        await client.ask("session.send", asked)
        client.close()
        self._tally.waits.append(time.monotonic() - fault)
        taken = await self._lease()
        assert taken is not None, "the turn that took over holds no lease"
        late = taken.acquired_at - lease.expires_at
        self._tally.turns += 1
        if taken.fence > lease.fence and 0 <= late <= LATE_MS:
            self._tally.taken += 1
        else:
            self._wrong("taken over too early or too late", f"{late} ms after its end: {lease}, {taken}")

    async def ended(self) -> None:
        """Wait for the answer about the first turn, which must be an error."""
        async with asyncio.timeout(PATIENCE):
            answer = msgspec.json.decode(await self._wire.receive())
        if code_of(answer) is None:
            self._wrong("a turn that had lost its lease was answered as done", str(answer))

    async def finish(self, door: Connection) -> None:
        """Let the second turn come to its end, and look at what is there."""
        self._wire.close()
        go(self._second)
        await _until(lambda: self._is_idle(), "the turn has ended")
        said = [
            (entry.role, plain_text(entry))
            for entry in (await self._sessions.history(LOCAL, self._id)).entries
        ]
        wanted = [
            ("user", f"wait {self.pipe}"),
            ("user", f"wait {self._second}"),
            ("assistant", "Waiting. Done."),
        ]
        if said != wanted:
            self._wrong("words of a late turn stored, or others missing", f"the session holds {said}")
        again = await Wire.open(*door)
        again.send(request("session.send", self._first))
        code = code_of(msgspec.json.decode(await again.receive()))
        again.close()
        if code != "interrupted":
            self._wrong("a turn that was cut off, asked for again, is not told as interrupted", str(code))

    def _wrong(self, what: str, seen: str) -> None:
        self._tally.wrong.append(Wrong(what, f"{self._name}: {seen}"))

    async def _lease(self) -> Lease | None:
        return await self._sessions.leases.current(LOCAL, self._id)

    async def _is_idle(self) -> bool:
        return await self._lease() is None


async def _until(happened: Callable[[], Awaitable[object]], what: str) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            while not await happened():  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:g} s: {what}") from None
