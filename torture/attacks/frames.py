"""Hostile frames: two thousand that never change, to every door that takes messages."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from websockets.exceptions import ConnectionClosed

from hitherto.acp.agent.methods import NOTIFICATIONS, REQUESTS
from hitherto.gateway.methods import METHODS
from tests.acp.agent.test_hostile_input import FRAMES, SILENT
from tests.acp.wire import Agent, running
from tests.gateway.methods.test_access import request
from tests.gateway.servers import Client, Server
from tests.support.waits import LIMIT
from torture.trial.commands import served
from torture.trial.program import Environment

SEED = 6
"""The frames are the same in every run, whatever the seed of the run."""
MEGABYTES = 1 << 20
AT_ONCE = 25
CLOSED_POLITELY = (1003, 1007, 1008, 1009)
INTERNAL = "-32603"
ENDS = (b"", b" ", b"\r", b"\0", b"}", b"\xef\xbb\xbf", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80")
NUMBERS = (b"1e999", b"-0", b"9" * 400, b"1" + b"0" * 5_000, b"NaN", b"Infinity", b"0x10", b"1.", b".5", b"-1e-400", b"18446744073709551616")  # fmt: skip
STRINGS = (b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b'"\xff"', b'"\\x"', b'"', b'"' + b"x" * 100_000 + b'"', b'"../../etc/passwd"', b'"\' OR 1=1 --"', b'"{{7*7}}"')  # fmt: skip
NESTED = (b"[" * 1_100 + b"]" * 1_100, b'{"a":' * 1_100 + b"1" + b"}" * 1_100, b"[" * 50_000, b"[{}," * 3_000 + b"{}" + b"]" * 3_000, b"[" + b"{}," * 50_000 + b"{}]")  # fmt: skip
VALUES = (*NUMBERS, *STRINGS, *NESTED, b"null", b"true", b"[]", b"{}", b'{"":{}}', b'{"a":1,"a":2}', b"{\"handed_over\":\"x\"}")  # fmt: skip


def frames(count: int) -> list[bytes]:
    """The first so many. None has a line end in it, none is a request with the id of a good one."""
    dice, found = random.Random(SEED), dict.fromkeys([*(each[0] for each in FRAMES), *SILENT])
    while len(found) < count:
        found[_frame(dice).replace(b"\n", b" ")] = None
    return list(found)[:count]


def _frame(dice: random.Random) -> bytes:
    name = dice.choice([*METHODS, *REQUESTS, *NOTIFICATIONS])
    params = json.dumps(request(name) if name in METHODS else {"sessionId": "x", "cwd": "/"}).encode()
    line = b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}'
    kind = dice.randrange(6)
    if kind == 0:  # a value of another kind
        return line % (b'"q"', name.encode(), _replaced(params, dice))
    if kind == 1:  # parameters of another kind
        return line % (b'"q"', name.encode(), dice.choice(VALUES))
    if kind == 2:  # an id of another kind
        return line % (dice.choice(VALUES), name.encode(), params)
    whole = line % (b'"q"', name.encode(), params)
    if kind == 3:  # cut off
        return whole[: dice.randrange(len(whole))] + dice.choice(ENDS)
    if kind == 4:  # bytes changed
        changed = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        return bytes(changed)
    return dice.randbytes(dice.randrange(1, 200))


def _replaced(params: bytes, dice: random.Random) -> bytes:
    """The same with one of its values replaced."""
    given = json.loads(params)
    if not given:
        return b'{"%b":%b}' % (dice.choice([b"limit", b"cursor", b"session_key"]), dice.choice(VALUES))
    name = dice.choice(sorted(given))
    rest = b"".join(
        b',"%b":%b' % (key.encode(), json.dumps(value).encode())
        for key, value in given.items()
        if key != name
    )
    return b'{"%b":%b%b}' % (name.encode(), dice.choice(VALUES), rest)


def parsed(text: str | bytes) -> Any:
    """An answer; its whole numbers stay texts, since an id of ours comes back with all its digits."""
    return json.loads(text, parse_int=str)


@dataclass
class Found:
    """What came of it."""

    sent: int = 0
    crashes: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    grown: int = 0

    def look(self, told: Any) -> None:
        error = told.get("error") if isinstance(told, dict) else None
        if isinstance(error, dict) and (error.get("code") == INTERNAL or "Traceback" in str(error)):
            self.internal.append(str(told)[:300])


def sent(folder: Path, environment: Environment, count: int) -> Found:
    """Send each frame over HTTP, on a socket, as an editor on a socket, and as an editor on standard input."""
    given, found = frames(count), Found()
    warm, rest = given[: len(given) // 10], given[len(given) // 10 :]
    home = folder / "home"
    home.mkdir()
    with served(home, environment) as server:
        process = psutil.Process(server.process.pid)
        for part in (warm, rest):
            before = process.memory_info().rss
            _post(server, part, found)
            for path in ("/ws", "/acp"):
                asyncio.run(_stream(server, path, part, found))
            grown = process.memory_info().rss - before
        found.grown = max(found.grown, grown // MEGABYTES)
        if server.process.poll() is not None:
            found.crashes.append("the server ended")
    if server.logged:
        found.internal.append(server.logged.decode(errors="replace")[-2000:])
    asyncio.run(_typed(home, environment, warm, rest, found))
    return found


def _post(server: Server, given: Sequence[bytes], found: Found) -> None:
    for frame in given:
        found.sent += 1
        try:
            reply = server.post(frame)
        except OSError as error:
            found.crashes.append(f"HTTP {error!r}: {frame[:100]!r}")
            continue
        if reply.status >= 500:
            found.internal.append(f"{reply.status}: {frame[:100]!r}")
        elif reply.body:
            found.look(parsed(reply.body))


async def _stream(server: Server, path: str, given: Sequence[bytes], found: Found) -> None:
    """All frames on sockets; one that closes politely is followed by another."""
    left = list(_pieces(given))
    while left:
        async with server.socket("ann", path) as client:
            try:
                while left:
                    piece = left.pop()
                    found.sent += len(piece)
                    await _on_socket(client, piece, found)
            except ConnectionClosed:
                if client.connection.close_code not in CLOSED_POLITELY:
                    found.crashes.append(f"{path} closed with {client.connection.close_code}")


def _pieces(given: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Frames that may close a socket stand alone."""
    plain = [frame for frame in given if _is_text(frame)]
    for at in range(0, len(plain), AT_ONCE):
        yield plain[at : at + AT_ONCE]
    yield from ([frame] for frame in given if not _is_text(frame))


def _is_text(frame: bytes) -> bool:
    try:
        frame.decode()
    except UnicodeDecodeError:
        return False
    return True


async def _on_socket(client: Client, piece: Sequence[bytes], found: Found) -> None:
    """Send them, then something good, and see what comes before its answer."""
    for frame in piece:
        if _is_text(frame):
            await client.send(frame.decode())
        else:
            await client.connection.send(frame)
    number = await client.begin("session.list")
    while True:
        told = parsed(await asyncio.wait_for(client.connection.recv(), LIMIT))
        if told.get("id") == str(number):
            return
        found.look(told)


async def _typed(
    folder: Path, environment: Environment, warm: Sequence[bytes], rest: Sequence[bytes], found: Found
) -> None:
    try:
        async with running(folder, "-m", "hitherto", "acp", env=environment) as agent:
            process = psutil.Process(agent.process.pid)
            await agent.call("initialize", {"protocolVersion": 1})
            for part in (warm, rest):
                before = process.memory_info().rss
                await _on_input(agent, part, found)
                grown = process.memory_info().rss - before
            found.grown = max(found.grown, grown // MEGABYTES)
    except (AssertionError, OSError) as error:
        found.crashes.append(f"the agent: {error!r}"[:300])


async def _on_input(agent: Agent, given: Sequence[bytes], found: Found) -> None:
    for at in range(0, len(given), AT_ONCE):
        piece = given[at : at + AT_ONCE]
        found.sent += len(piece)
        await agent.write(b"".join(frame + b"\n" for frame in piece))
        number = await agent.begin("session/list")
        while True:
            line = await asyncio.wait_for(agent._out.readline(), LIMIT)
            assert line, "the agent has exited or closed the connection"
            told = parsed(line)
            if told.get("id") == str(number):
                break
            found.look(told)
