"""A server is killed under load, again and again: what it acknowledged is there, and what is asked again is there once."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

import hitherto
from bench.workloads.messages import prose
from bench.workloads.server_load import Server, served, wires
from bench.workloads.websocket import Wire, request
from hitherto.model import LOCAL
from torture.kills.outcome import AcknowledgementLog, KillTally, Message, compare_with_store
from torture.trial.program import Environment
from torture.trial.row import Setting
from torture.trial.stores import FILES, StoreProvider, examined, of

Json = dict[str, Any]
SOCKETS, WINDOW, CALLERS = 4, 4, 4
"""Clients on sockets, requests that each has on its way, and clients that speak HTTP."""
SESSIONS = 8
SIZES = ((10, 400), (10, 400), (10, 400), (10, 400), (1_000, 6_000))
LONG_ONE, LONG = 100, 70_000
"""Of so many messages one is that long, in characters."""
DELAY_SECONDS = 0.004
"""The server dies at most so long after the acknowledgement that was drawn: some commits take that long."""
LIFE_SECONDS = 120
KILLS_OF_A_STORE = 20
START_SECONDS = 0.6
START = (sys.executable, "-m", "hitherto", "serve", "--port", "0", "--json", "--no-sync")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a server is tried: how often it is killed, and after how many acknowledgements, at least and at most."""

    kills: int
    acknowledged: tuple[int, int]
    keyed: bool = True
    """Whether clients that ask again show the key that they showed before."""
    stillborn: int = 0
    """Before every so manieth life, one is killed while it starts; none if 0."""
    unheard: bool = False
    """Whether the answer at which a server is killed never reaches its client: one request, at least, that was stored and is made again."""


class Place(NamedTuple):
    """Where a server lives, its store, and what it is started with."""

    folder: Path
    url: str
    environment: Environment


def kill_repeatedly(
    setting: Setting, environment: Environment, plan: Plan, store_provider: StoreProvider = FILES
) -> KillTally:
    """Kill servers of one store after the other, and hold each store to what its clients were told."""
    found, dice = KillTally(), setting.dice("kills of servers")
    for number, first in enumerate(range(0, plan.kills, KILLS_OF_A_STORE)):
        folder = setting.folder / f"served{number}"
        folder.mkdir(mode=0o700)
        kills = min(KILLS_OF_A_STORE, plan.kills - first)
        store = Place(folder, store_provider.store(folder), of(store_provider, folder, environment))
        found += asyncio.run(_kill_repeatedly(store, plan, kills, dice))
        shutil.rmtree(folder)
        setting.say(f"{first + kills:,} kills of servers: {found.told()}")
    return found


async def _kill_repeatedly(place: Place, plan: Plan, kills: int, dice: random.Random) -> KillTally:
    (folder, url, environment), problems, stillborn = place, list[str](), 0
    async with hitherto.open(url) as sessions:
        talks = [(await sessions.create(LOCAL)).id for _ in range(SESSIONS)]
    book = AcknowledgementLog(_messages(talks, dice), keyed=plan.keyed)
    with (folder / "log").open("w+b") as log:
        for number in range(kills):
            if plan.stillborn and number % plan.stillborn == 0:
                _killed_at_start(folder, environment, log, dice.uniform(0, START_SECONDS))
                stillborn += 1
            with served(folder, environment, log) as server:
                problems += await examined(url)
                last, delay = dice.randint(*plan.acknowledged), dice.uniform(0, DELAY_SECONDS)
                problems += await ServerRun(book, server, last, delay, unheard=plan.unheard).run()
        with served(folder, environment, log) as server:
            problems += await ServerRun(book, server).run()
        log.seek(0)
        problems += log.read().decode().splitlines()
    problems += await examined(url)
    killed = Counter({"serve": kills, "serve while it starts": stillborn})
    found = await compare_with_store(url, talks, book)
    return found + KillTally(killed, examinations=kills + 1, problems=tuple(problems))


def _messages(session_ids: Sequence[str], dice: random.Random) -> Iterator[Message]:
    """Messages without end, short and long ones, for any of these sessions."""
    long = prose(dice, LONG)
    for number in itertools.count():
        size = dice.randint(*dice.choice(SIZES))
        text = long if number % LONG_ONE == LONG_ONE - 1 else prose(dice, size)
        yield Message(f"m{number}", dice.choice(session_ids), f"m{number} {text}")


def _killed_at_start(folder: Path, environment: Environment, log: IO[bytes], seconds: float) -> None:
    environ = {**os.environ, "HITHERTO_DATA_DIR": str(folder), **environment}
    with subprocess.Popen(START, env=environ, stdout=subprocess.DEVNULL, stderr=log) as process:
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        finally:
            process.kill()


@dataclass(slots=True)
class ServerRun:
    """One life of a server. Clients talk to it until `last` messages are acknowledged, and `delay` seconds later it dies.

    Without `last` it lives until everything is acknowledged that was said before.
    """

    book: AcknowledgementLog
    server: Server
    last: int | None = None
    delay: float = 0.0
    unheard: bool = False
    """Whether the client does not hear of the last one."""
    _answers: int = field(default=0, init=False)
    _over: bool = field(default=False, init=False)

    async def run(self) -> list[str]:
        """All clients have left, or been left; what was wrong if they could not even come."""
        try:
            async with asyncio.timeout(LIFE_SECONDS), wires(self.server, SOCKETS) as lines:
                callers = [self._by_calls() for _ in range(CALLERS)]
                await asyncio.gather(*(self._by_socket(line) for line in lines), *callers)
        except ConnectionRefusedError as refused:
            return [f"a server refuses the token that it has told ({refused})"]
        return []

    async def _by_socket(self, line: Wire) -> None:
        flying: dict[int, Message] = {}
        numbers = itertools.count(1)
        try:
            while True:
                while len(flying) < WINDOW and (message := self._next()) is not None:
                    number = next(numbers)
                    flying[number] = message
                    line.send(request("session.append", self.book.params(message), number))
                if not flying:
                    return
                answer = msgspec.json.decode(await line.receive())
                self._answered(flying.pop(answer["id"]), answer, "socket")
        except ConnectionError:
            for message in flying.values():
                self.book.unanswered(message, now())

    async def _by_calls(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=LIFE_SECONDS)
        try:
            while (message := self._next()) is not None:
                asked = {"jsonrpc": "2.0", "id": 1, "method": "session.append"}
                body = msgspec.json.encode({**asked, "params": self.book.params(message)})
                try:
                    answer = await asyncio.to_thread(_posted, connection, self.server.token, body)
                except (OSError, http.client.HTTPException):
                    self.book.unanswered(message, now())
                    return
                self._answered(message, answer, "HTTP")
        finally:
            connection.close()

    def _next(self) -> Message | None:
        if self._over:
            return None
        return self.book.next(fresh=self.last is not None)

    def _answered(self, message: Message, answer: Json, door: str) -> None:
        if "error" in answer:
            self.book.refused.append(f"{message.mark}: {answer['error']}")
            return
        self._answers += 1
        if self.unheard and self._answers == self.last:
            self.book.unanswered(message, now())
        else:
            self.book.acknowledged[message.mark] = door
        if self._answers == self.last:
            asyncio.get_running_loop().call_later(self.delay, self._die)

    def _die(self) -> None:
        os.kill(self.server.pid, signal.SIGKILL)
        self._over = True


def now() -> int:
    """The time in milliseconds, as stores count it."""
    return time.time_ns() // 1_000_000


def _posted(connection: http.client.HTTPConnection, token: str, body: bytes) -> Json:
    """The answer to a request over a connection that stays."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    connection.request("POST", "/rpc", body, headers)
    answer: Json = msgspec.json.decode(connection.getresponse().read())
    return answer
