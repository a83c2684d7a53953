"""The proxy in the process of the test, with a real agent behind it."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import hitherto
from hitherto.acp import Pipes
from hitherto.acp.proxy.start import serve
from hitherto.model import LOCAL, Entry, Json, encode
from hitherto.service import Sessions
from tests.acp.wire import LINE_BYTES, Streams, Talk, environment, url_of
from tests.support.paths import ROOT
from tests.support.waits import arrives


def line_agent(folder: Path, **capabilities: object) -> list[str]:
    return [
        sys.executable,
        str(ROOT / "tests/acp/line_agent.py"),
        json.dumps(capabilities),
        str(folder / "heard"),
    ]


def heard(folder: Path, method: str) -> list[Json]:
    """The parameters of every message of this method that the line agent got."""
    messages = [json.loads(line) for line in (folder / "heard").read_text().splitlines()]
    return [message["params"] for message in messages if message.get("method") == method]


@asynccontextmanager
async def streams(
    folder: Path, command: Sequence[str], env: Mapping[str, str] | None = None
) -> AsyncIterator[Streams]:
    """The editor's end. The proxy must end well when the editor has nothing more to say."""
    mine, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=mine, limit=LINE_BYTES)
    pipes = Pipes(theirs.fileno(), theirs.fileno())
    environ = environment(folder, {"PYTHONPATH": str(ROOT), **(env or {})})
    async with hitherto.open(url_of(folder)) as sessions:
        proxy = asyncio.ensure_future(serve(pipes, sessions, LOCAL, command, env=environ))
        try:
            yield reader, writer
            if not writer.is_closing():
                writer.write_eof()
            rest = asyncio.ensure_future(reader.read())
            await arrives(proxy, "the proxy to end")
        finally:
            proxy.cancel()
            await arrives(asyncio.wait([proxy]), "the proxy to end")
            pipes.close()
            theirs.close()
            writer.close()
    await arrives(rest, "the rest of what the proxy said")


@asynccontextmanager
async def editor(
    folder: Path, command: Sequence[str], capabilities: Json | None = None
) -> AsyncIterator[Talk]:
    """An editor that has greeted the proxy."""
    async with streams(folder, command) as (reader, writer):
        talk = Talk(writer, reader)
        await talk.initialize(capabilities)
        yield talk


async def entries_of(sessions: Sessions, session_id: str) -> tuple[Entry, ...]:
    return (await sessions.history(LOCAL, session_id, limit=1_000)).entries


async def kept(folder: Path, session_id: str) -> list[tuple[str, Json]]:
    """What the store has of a session: roles and parts."""
    async with hitherto.open(url_of(folder)) as sessions:
        entries = await entries_of(sessions, session_id)
    return [(entry.role, part) for entry in entries for part in json.loads(encode(entry.parts))]


class Lenient(Talk):
    """An editor that takes whatever is JSON, since an agent may say what no package knows."""

    async def read(self) -> Json:
        line = await arrives(self._out.readline(), "a line of the agent")
        assert line, "the agent has exited or closed the connection"
        message: Json = json.loads(line)
        return message

    def updates(self, session_id: str) -> list[Json]:
        found = [m.get("params") for m in self.seen if m.get("method") == "session/update"]
        mine = [p for p in found if isinstance(p, dict) and p.get("sessionId") == session_id]
        return [params["update"] for params in mine if "update" in params]
