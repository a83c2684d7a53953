"""How long others wait while one owner asks for as much as possible, next to how long they wait when it is quiet."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

import hitherto
from hitherto.model import Draft, Principal, Text
from tests.gateway.servers import Server, serving
from torture.load.attackers import Target
from torture.trial.program import store_in

ANN = Principal(owner="ann")
OURS = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
TOGETHER = 5_000
SETTLED = 5
GIVEN_UP = 20.0
"""Seconds: what others wait for longer counts as that long."""
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


class _Neighbour:
    """Another owner, who appends and reads in turn."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def p99(self, requests: int) -> float:
        """Of so many requests, one after the other."""
        took = list[float]()
        async with self._server.socket("bob") as client:
            named = {"session_id": (await client.call("session.create"))["session_id"]}
            said = {**named, "messages": [{"role": "user", "content": "x" * 200}]}
            ways = (("session.append", said), ("session.get", named))
            for number in range(requests):
                method, params = ways[number % 2]
                began = time.perf_counter()
                try:
                    async with asyncio.timeout(GIVEN_UP):
                        await client.rpc(method, params)
                except TimeoutError:
                    return GIVEN_UP
                took.append(time.perf_counter() - began)
        return statistics.quantiles(took, n=100)[98]


@contextmanager
def _attacked(target: Target) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "torture.load.attackers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    try:
        process.stdin.write(msgspec.json.encode(target) + b"\n")
        process.stdin.flush()
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"no attack of {target.attack}")
        yield
        if process.poll() is not None:
            raise RuntimeError(f"the attack of {target.attack} was refused")
    finally:
        process.kill()
        process.communicate()


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
        asyncio.run(neighbour.p99(plan.requests))  # warm
        if plan.rounds > 1:  # whatever is started or imported once is there from now on
            with _attacked(target):
                asyncio.run(neighbour.p99(plan.requests // 4))
        for number in range(plan.rounds):
            for _ in range(SETTLED):
                server.request("GET", "/health")
            quiet.append(asyncio.run(neighbour.p99(plan.requests)))
            if attack == "a first search":
                asyncio.run(_said(store, session, [f"{text} v{number}" for text in _texts(attack, plan)]))
            before = process.memory_info().rss
            with _attacked(target):
                beside.append(asyncio.run(neighbour.p99(plan.requests)))
                memory.append(process.memory_info().rss - before)
    return Waits(attack, statistics.median(quiet), statistics.median(beside), max(memory))
