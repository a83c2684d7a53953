"""Ways to PostgreSQL that can be cut: packets are dropped between two machines, or a relay falls silent.

Nothing is told to either side. Who waits for an answer waits on, and what was on its way may or may not arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from tests.support.postgres_server import PORT, PostgresServer

T = TypeVar("T")
PIECE = 1 << 16
_numbers = itertools.count(1)


class NetworkLink(Protocol):
    """One way to PostgreSQL."""

    host: str
    port: int

    async def cut(self) -> None:
        """From now on nothing arrives, in either direction."""

    async def heal(self) -> None:
        """What is sent from now on arrives."""


class Connected(NamedTuple):
    """A PostgreSQL that keeps what it has committed, and the ways to it."""

    server: PostgresServer
    cables: Sequence[NetworkLink]


def address(link: NetworkLink, database: str = "postgres", *, careless: bool = False) -> str:
    """Where the database is for who comes by this link."""
    options = "&options=-c%20synchronous_commit%3Doff" if careless else ""
    return f"postgresql://postgres@{link.host}:{link.port}/{database}?sslmode=disable{options}"


@asynccontextmanager
async def connected(count: int, *, apart: bool) -> AsyncIterator[Connected]:
    """PostgreSQL with so many ways to it: on a machine `apart`, which needs root, or behind relays."""
    if apart:
        with (
            machine(count) as (under, links),
            PostgresServer(fast=False, listens=[link.host for link in links], under=under) as server,
        ):
            yield Connected(server, links)
        return
    with PostgresServer(fast=False) as server:
        async with contextlib.AsyncExitStack() as stack:
            relays = [await stack.enter_async_context(relayed(server)) for _ in range(count)]
            yield Connected(server, relays)


@asynccontextmanager
async def aside(blocking: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave what blocks in a thread: a relay must be able to work meanwhile."""
    entered = await asyncio.to_thread(blocking.__enter__)
    try:
        yield entered
    finally:
        await asyncio.to_thread(blocking.__exit__, None, None, None)


# A machine apart: a network of its own, with an address for each way to it


class Link:
    """An address of the other machine; cut, it drops every packet to and from it."""

    port = PORT

    def __init__(self, space: str, host: str) -> None:
        self._space, self.host = space, host

    async def cut(self) -> None:
        for chain, side in (("input", "daddr"), ("output", "saddr")):
            await self._nft(f"add rule inet cut {chain} ip {side} {self.host} drop")

    async def heal(self) -> None:
        # No other link is cut meanwhile: a trial cuts one at a time.
        await self._nft("flush table inet cut")

    async def _nft(self, command: str) -> None:
        await asyncio.to_thread(_run, "ip", "netns", "exec", self._space, "nft", *command.split())


@contextmanager
def machine(count: int) -> Iterator[tuple[Sequence[str], list[Link]]]:
    """A network of its own with so many addresses, the command that starts a program in it as `nobody`, and its links."""
    name = f"hitherto{os.getpid() % 10_000}x{next(_numbers)}"
    net = f"10.203.{os.getpid() % 250}"
    inside, outside = f"{name[9:]}i", f"{name[9:]}o"
    hosts = [f"{net}.{number + 2}" for number in range(count)]
    _run("ip", "netns", "add", name)
    try:
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        _run("ip", "address", "add", f"{net}.1/24", "dev", outside)
        _run("ip", "link", "set", outside, "up")
        for host in hosts:
            _run("ip", "-n", name, "address", "add", f"{host}/24", "dev", inside)
        for device in ("lo", inside):
            _run("ip", "-n", name, "link", "set", device, "up")
        for rule in _CHAINS:
            _run("ip", "netns", "exec", name, "nft", rule)
        yield (
            (_program("ip"), "netns", "exec", name, _program("setpriv"), *_NOBODY),
            [Link(name, host) for host in hosts],
        )
    finally:
        _run("ip", "netns", "delete", name)


_CHAINS = (
    "add table inet cut",
    "add chain inet cut input { type filter hook input priority 0 ; }",
    "add chain inet cut output { type filter hook output priority 0 ; }",
)
_NOBODY = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(name)
    return found


def _run(*words: str) -> None:
    ran = subprocess.run([_program(words[0]), *words[1:]], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {ran.stderr.strip()}")


# A relay on this machine


class Relay:
    """Passes on what comes; cut, it takes nothing any more. Healed, it has forgotten the connections of before."""

    host = "127.0.0.1"

    def __init__(self, target: Path) -> None:
        self._target = target
        self._open = asyncio.Event()
        self._open.set()
        self._pairs: set[asyncio.Task[None]] = set()
        self.port = 0

    async def cut(self) -> None:
        self._open.clear()

    async def heal(self) -> None:
        await self.forget()
        self._open.set()

    async def forget(self) -> None:
        """Break every connection."""
        for pair in tuple(self._pairs):
            pair.cancel()
        await asyncio.gather(*self._pairs, return_exceptions=True)

    async def met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._pairs.add(task)
        try:
            await self._open.wait()
            there, back = await asyncio.open_unix_connection(self._target)
            try:
                await first_of(self._pass(reader, back), self._pass(there, writer))
            finally:
                back.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass  # the other side is not there, or the connection was broken on purpose
        finally:
            writer.transport.abort()
            self._pairs.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            await self._open.wait()
            writer.write(data)
            await writer.drain()


async def first_of(*works: Awaitable[None]) -> None:
    """Wait for the first of these to end, and end the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def relayed(server: PostgresServer) -> AsyncIterator[Relay]:
    """A relay before PostgreSQL's own socket."""
    relay = Relay(server.folder / f".s.PGSQL.{PORT}")
    listener = await asyncio.start_server(relay.met, relay.host, 0)
    relay.port = listener.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        listener.close()
        await relay.forget()
