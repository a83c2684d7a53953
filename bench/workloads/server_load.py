"""Measures `hitherto serve` under load, in the environment that Hitherto runs in: `python -m bench.workloads.server_load FOLDER SIZES`.

`SIZES` is JSON: rounds, slice, writers, idle, silent, calls, sessions, history. Prints figures as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any

import hitherto
from bench.workloads.messages import MESSAGE_CHARACTERS, message, messages
from bench.workloads.websocket import Wire, request
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions

Json = dict[str, Any]
NOWHERE = "qqqqqq"
"""No message has this word: searching for it only brings the index up to date."""
SILENT_BYTES = 4_096
TICKS = os.sysconf("SC_CLK_TCK")
END_SECONDS = 60
LARGE, FILLING = 20_000, 40
"""So many messages of that size are more than is kept on its way to anybody."""


class Server:
    """A server in a process of its own, with a store of its own."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, token: str) -> None:
        self._process, self.port, self.token = process, port, token

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        fields = (
            Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> int:
        """Bytes of memory that it has."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def address_space(self) -> int:
        """Bytes of memory that it could use without asking for more."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmSize:")[1].split()[0]) * 1024

    def ended(self, seconds: float) -> int:
        """How it ends, within this time."""
        return self._process.wait(seconds)

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def sockets(self) -> int:
        """How many sockets it serves."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            asked.request("GET", "/metrics", headers={"Authorization": f"Bearer {self.token}"})
            return int(asked.getresponse().read().split(b"\nhitherto_sockets ")[1].split()[0])
        finally:
            asked.close()

    async def wire(self, receive_bytes: int | None = None) -> Wire:
        """A connection to it."""
        return await Wire.open(self.port, self.token, receive_bytes=receive_bytes)


@contextmanager
def served(
    folder: Path,
    changed: Mapping[str, str] | None = None,
    log: IO[bytes] | None = None,
    under: Sequence[str] = (),
) -> Iterator[Server]:
    """The server of the store in a folder, with these changes of the environment; what it logs goes to `log`.

    `under` is a command that becomes the server, having changed what is around it.
    """
    own = {name: value for name, value in os.environ.items() if name != "HITHERTO_STORE"}
    environ = {**own, "HITHERTO_DATA_DIR": str(folder), **(changed or {})}
    command = (
        sys.executable,
        "-m",
        "hitherto",
        "serve",
        "--port",
        "0",
        "--grace",
        "1",
        "--json",
        "--no-sync",
    )
    with subprocess.Popen((*under, *command), stdout=subprocess.PIPE, stderr=log, env=environ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        try:
            port = int(told["address"].rpartition(":")[2])
            yield Server(process, port, Path(told["token_file"]).read_text(encoding="ascii").strip())
        finally:
            _end(process, log)


def _end(process: subprocess.Popen[bytes], log: IO[bytes] | None) -> None:
    """End a server; that it had to be killed is told in its log."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        if log is None:
            raise
        log.write(b"the server does not end when it is told to\n")
        log.flush()


@asynccontextmanager
async def wires(server: Server, count: int, receive_bytes: int | None = None) -> AsyncIterator[list[Wire]]:
    """So many connections."""
    made: list[Wire] = []
    try:
        for _ in range(count):
            made.append(await server.wire(receive_bytes))  # noqa: PERF401 - what is made is closed, whatever happens
        yield made
    finally:
        for each in made:
            each.close()


async def in_turns(count: int, work: Callable[[int], Awaitable[None]]) -> float:
    """Seconds that it takes until all have done their share, at the same time."""
    gc.collect()
    began = time.perf_counter()
    await asyncio.gather(*map(work, range(count)))
    return time.perf_counter() - began


# Appending


async def appended(server: Server, folder: Path, sizes: Json) -> Json:
    """Messages per second of the bare store and through sockets, in turns, and the CPU of a message."""
    writers, share = sizes["writers"], sizes["slice"] // sizes["writers"]
    bare, through = list[tuple[float, float]](), list[tuple[float, float]]()
    async with hitherto.open(f"sqlite:///{folder / 'bare.db'}") as sessions, wires(server, writers) as lines:
        ids = [(await sessions.create(LOCAL)).id for _ in lines]
        theirs = [(await line.call("session.create", {}))["session_id"] for line in lines]
        for number in range(sizes["rounds"] + 1):
            bare.append(await _into_store(sessions, ids, number * share, share))
            through.append(await _through(server, lines, theirs, number * share, share))
        said = (await lines[0].call("session.get", {"session_id": theirs[0]}))["message_count"]
        assert said == (sizes["rounds"] + 1) * share, said
    return {"bare": _medians(bare[1:]), "socket": _medians(through[1:])}


async def _into_store(sessions: Sessions, ids: Sequence[str], first: int, share: int) -> tuple[float, float]:
    """Seconds and CPU for each message."""
    drafts = [Draft(role="user", parts=(Text(text=each.text),)) for each in messages(first, share)]

    async def write(writer: int) -> None:
        for draft in drafts:
            await sessions.append(LOCAL, ids[writer], draft)

    cpu = time.process_time()
    took = await in_turns(len(ids), write)
    began = time.perf_counter()
    await sessions.search(LOCAL, NOWHERE)
    took += time.perf_counter() - began
    count = share * len(ids)
    return took / count, (time.process_time() - cpu) / count


async def _through(
    server: Server, lines: Sequence[Wire], ids: Sequence[str], first: int, share: int
) -> tuple[float, float]:
    """The same by requests, each sent when the one before is answered."""

    def asked(session_id: str) -> list[bytes]:
        said = ([{"role": "user", "content": each.text}] for each in messages(first, share))
        return [request("session.append", {"session_id": session_id, "messages": each}) for each in said]

    ready = list(map(asked, ids))

    async def write(writer: int) -> None:
        line = lines[writer]
        for each in ready[writer]:
            line.send(each)
            assert b'"error"' not in await line.receive()

    cpu = server.cpu()
    took = await in_turns(len(lines), write)
    began = time.perf_counter()
    await lines[0].call("session.search", {"query": NOWHERE})
    took += time.perf_counter() - began
    count = share * len(ids)
    return took / count, (server.cpu() - cpu) / count


def _medians(figures: Sequence[tuple[float, float]]) -> Json:
    return {
        "rate": 1 / statistics.median(wall for wall, _ in figures),
        "cpu": statistics.median(cpu for _, cpu in figures),
    }


# Reading


async def read(server: Server, folder: Path, sizes: Json) -> Json:
    """The CPU of a page of the list and of a history, of the bare store and of the server, and how long they take."""
    url = f"sqlite:///{folder / 'hitherto.db'}"
    async with hitherto.open(url) as sessions, wires(server, 1) as (line,):
        for number in range(sizes["sessions"]):
            await sessions.create(LOCAL, title=f"Session {number}")
        long = (await sessions.create(LOCAL, title="Long")).id
        drafts = [Draft(role="user", parts=(Text(text=each.text),)) for each in messages(0, sizes["history"])]
        await sessions.append(LOCAL, long, drafts)

        async def bare_list() -> None:
            await sessions.find(LOCAL, limit=50)
            await sessions.count(LOCAL)

        async def bare_history() -> None:
            found = await sessions.history(LOCAL, long, last=True, limit=100)
            assert len(found.entries) == 100

        asked = {
            "list": request("session.list", {}),
            "history": request("session.history", {"session_id": long}),
        }
        found: Json = {}
        for name, bare in (("list", bare_list), ("history", bare_history)):
            found[name] = {
                "bare": await _bare(bare, sizes["calls"]),
                "served": await _served(server, line, asked[name], sizes["calls"]),
            }
        return found


async def _bare(work: Callable[[], Awaitable[None]], calls: int) -> Json:
    await work()
    cpu, took = time.process_time(), list[float]()
    for _ in range(calls):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return {"cpu": (time.process_time() - cpu) / calls, "wall": statistics.median(took)}


async def _served(server: Server, line: Wire, asked: bytes, calls: int) -> Json:
    cpu, took = server.cpu(), list[float]()
    for _ in range(calls):
        began = time.perf_counter()
        line.send(asked)
        assert b'"error"' not in (await line.receive())[:100]
        took.append(time.perf_counter() - began)
    return {"cpu": (server.cpu() - cpu) / calls, "wall": statistics.median(took)}


# Subscribers


async def waiting(server: Server, sizes: Json) -> float:
    """Bytes of the server's memory for each subscriber to whom nothing happens."""
    async with wires(server, 10) as few:
        for each in few:
            await each.call("session.subscribe", {})
        before = server.memory()
        async with wires(server, sizes["idle"]) as many:
            for each in many:
                await each.call("session.subscribe", {})
            return (server.memory() - before) / len(many)


async def silent(server: Server, sizes: Json) -> Json:
    """What those cost who never read, what becomes of them, and how long others wait meanwhile."""
    async with wires(server, 1) as (writer,), wires(server, 4) as readers:
        named = {"session_id": (await writer.call("session.create", {}))["session_id"]}
        for each in readers:
            await each.call("session.subscribe", {**named, "events": ["entries"]})
        alone = [await told(writer, readers, named, sizes["calls"]) for _ in range(sizes["rounds"])]
        async with wires(server, sizes["silent"], SILENT_BYTES) as mute:
            for each in mute:
                await each.call("session.subscribe", {**named, "events": ["entries"]})
                each.pause()
            before, most, beside = server.memory(), 0, list[float]()
            await told(writer, readers, named, FILLING, LARGE)
            while await asyncio.to_thread(server.sockets) > 1 + len(
                readers
            ):  # until all of those are given up
                beside.append(await told(writer, readers, named, sizes["calls"]))
                most = max(most, server.memory())
            closed, resumed = await _resumed(server, writer, mute, named)
        return {
            "alone": statistics.median(alone),
            "beside": statistics.median(beside),
            "bytes": (most - before) / sizes["silent"],
            "closed": closed,
            "resumed": resumed,
        }


async def told(
    writer: Wire,
    readers: Sequence[Wire],
    named: Json,
    count: int,
    size: int = MESSAGE_CHARACTERS,
    *,
    first: int = 0,
) -> float:
    """The seconds within which 99 of 100 messages of this size, from when they are sent, are with every reader.

    The messages are numbered from `first` on.
    """
    took = list[float]()
    for number in range(first, first + count):
        text = message(number, size).text
        began = time.perf_counter()
        writer.send(request("session.append", {**named, "messages": [{"role": "user", "content": text}]}))
        assert b'"error"' not in await writer.receive()
        for each in readers:
            await each.receive()
            took.append(time.perf_counter() - began)
    return sorted(took)[round(len(took) * 0.99) - 1]


async def _resumed(server: Server, writer: Wire, mute: Sequence[Wire], named: Json) -> tuple[int, int]:
    """How many were closed by the server, and how many of those go on from the last cursor that they were told."""
    total = (await writer.call("session.get", named))["message_count"]
    closed = resumed = 0
    for each in mute:
        each.resume()
        cursor, seen = "", 0
        try:
            while True:
                told = json.loads(await each.receive())["params"]
                cursor, seen = told["cursor"], seen + len(told["messages"])
        except ConnectionResetError:
            closed += 1
        resumed += await _goes_on(server, named, cursor, total - seen)
    return closed, resumed


async def _goes_on(server: Server, named: Json, cursor: str, missing: int) -> bool:
    """Whether the cursor brings some of what is missing, and no more than that."""
    async with wires(server, 1) as (line,):
        await line.call("session.subscribe", {**named, "events": ["entries"], "cursor": cursor})
        told = json.loads(await line.receive())["params"]["messages"]
        return 0 < len(told) <= missing


async def measured(folder: Path, sizes: Json) -> Json:
    """All figures."""
    with served(folder) as server:
        return {
            "append": await appended(server, folder, sizes),
            **await read(server, folder, sizes),
            "idle": await waiting(server, sizes),
            "silent": await silent(server, sizes),
        }


if __name__ == "__main__":
    json.dump(asyncio.run(measured(Path(sys.argv[1]), json.loads(sys.argv[2]))), sys.stdout)
