"""How long others wait while one owner asks for as much as possible, next to how long they wait when it is quiet."""

from __future__ import annotations

import asyncio
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import psutil

import hitherto
from hitherto.model import Draft, Principal, Text
from tests.gateway.servers import Client, Server, serving
from torture.load.attackers import Target
from torture.trial.program import store_in

ANN = Principal(owner="ann")
OURS = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
TOGETHER = 5_000
SETTLED = 5
GIVEN_UP = 20.0
"""Seconds: what others wait for longer counts as that long, and whoever has waited so long in all asks no more."""
ENOUGH = 100
"""Of fewer requests the longest counts."""
SOUND_LIMITS = {"body_seconds": 30.0, "rate": 1e6, "burst": 1_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large the attacks are, how often quiet and attack alternate, and how many requests of others are in each."""

    messages: int
    newlines: int
    rounds: int
    requests: int


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds, the medians of all rounds: what 99 of 100 requests of others took at most. `memory`: the growth in bytes."""

    attack: str
    quiet: float
    beside: float
    memory: int


IsEnough = Callable[[int], bool]
"""Whether so many requests are enough."""


@contextmanager
def _quiet(requests: int) -> Iterator[IsEnough]:
    yield lambda count: count >= requests


class _Neighbour:
    """Another owner, who appends and reads in turn."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def p99(self, attack: AbstractContextManager[IsEnough]) -> float:
        """Of requests during an attack, one after the other."""
        async with self._server.socket("bob") as client:
            named = {"session_id": (await client.call("session.create"))["session_id"]}
            said = {**named, "messages": [{"role": "user", "content": "x" * 200}]}
            with attack as is_enough:
                took = await _waited(client, named, said, is_enough)
        return statistics.quantiles(took, n=100)[98] if len(took) >= ENOUGH else max(took)


async def _waited(
    client: Client, named: dict[str, Any], said: dict[str, Any], is_enough: IsEnough
) -> list[float]:
    """Seconds for each request. Whoever waits far too long gives up."""
    took = list[float]()
    for method, params in cycle((("session.append", said), ("session.get", named))):
        began = time.perf_counter()
        try:
            async with asyncio.timeout(GIVEN_UP):
                await client.rpc(method, params)
        except TimeoutError:
            return [GIVEN_UP]
        took.append(time.perf_counter() - began)
        if is_enough(len(took)) or sum(took) > GIVEN_UP:
            return took
    raise AssertionError("it asks again and again")


@contextmanager
def _attacked(target: Target, requests: int) -> Iterator[IsEnough]:
    """Others ask so often; but until what strikes once is over, and no longer if it leaves nothing behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "torture.load.attackers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    says = process.stdout

    def is_over() -> bool:
        return bool(select.select([says], [], [], 0)[0])

    enough: dict[str, IsEnough] = {
        "a first search": lambda _: is_over(),
        "half-sent bodies": lambda count: count >= requests and is_over(),
    }
    try:
        process.stdin.write(msgspec.json.encode(target) + b"\n")
        if says.readline() != b"ready\n":
            raise RuntimeError(f"no attack of {target.attack}")
        yield enough.get(target.attack, lambda count: count >= requests)
        if process.poll() is not None:
            raise RuntimeError(f"the attack of {target.attack} was refused")
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _weighed(
    attack: AbstractContextManager[IsEnough], process: psutil.Process, grown: list[int]
) -> Iterator[IsEnough]:
    """The attack; by how many bytes the process has grown at its end is added to `grown`."""
    before = process.memory_info().rss
    with attack as is_enough:
        yield is_enough
        grown.append(process.memory_info().rss - before)


async def _said(store: str, session: str | None, texts: list[str]) -> str:
    """Say this past the server; the session, which is new if none is named."""
    async with hitherto.open(store) as sessions:
        if session is None:
            session = (await sessions.create(ANN)).id
        for at in range(0, len(texts), TOGETHER):
            drafts = [Draft(role="user", parts=(Text(text=text),)) for text in texts[at : at + TOGETHER]]
            await sessions.append(ANN, session, drafts)
        return session


def _texts(attack: str, plan: Plan) -> list[str]:
    """What the attack is about."""
    match attack:
        case "views":
            return ["```c\n" + "\n" * plan.newlines + "```"]
        case "reads over MCP":
            return ["what was said, at 12:30 in /usr/lib, of key=value " * 20_000] * (plan.messages // 1_000)
        case "broad searches" | "a first search":
            return [f"w{number} w{number * 31} w{number * 97}" for number in range(plan.messages)]
    return ["something"]


def _signed_in(server: Server) -> str:
    body = b'{"token": "%s"}' % server.tokens["ann"].secret.encode()
    reply = server.request("POST", "/signin", OURS, body)
    return reply.headers["set-cookie"].partition(";")[0]


def measure(folder: Path, attack: str, plan: Plan, environment: Mapping[str, str]) -> Waits:
    """On a store of its own, of a program that may be broken."""
    store = store_in(folder)
    quiet, beside, memory = list[float](), list[float](), list[int]()
    with serving(store, environment=environment, limits=SOUND_LIMITS, noisy=True) as server:
        session = asyncio.run(_said(store, None, _texts(attack, plan)))
        server.rpc("session.search", {"query": "something"})  # the index catches up, as far as it may
        target = Target(
            port=server.port,
            token=server.tokens["ann"].secret,
            cookie=_signed_in(server),
            session=session,
            file=store.removeprefix("sqlite:///"),
            attack=attack,
        )
        neighbour, process = _Neighbour(server), psutil.Process(server.process.pid)
        asyncio.run(neighbour.p99(_quiet(plan.requests)))  # warm
        if plan.rounds > 1:  # whatever is started or imported once is there from now on
            asyncio.run(neighbour.p99(_attacked(target, plan.requests // 4)))
        for number in range(plan.rounds):
            for _ in range(SETTLED):
                server.request("GET", "/health")
            quiet.append(asyncio.run(neighbour.p99(_quiet(plan.requests))))
            if attack == "a first search":
                asyncio.run(_said(store, session, [f"{text} v{number}" for text in _texts(attack, plan)]))
            attacked = _weighed(_attacked(target, plan.requests), process, memory)
            beside.append(asyncio.run(neighbour.p99(attacked)))
    return Waits(attack, statistics.median(quiet), statistics.median(beside), max(memory))
