"""A client that follows one session. Its messages are numbered: the client notices one that is missing or comes twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from bench.workloads.server_load import Server
from bench.workloads.websocket import Wire

_decode = msgspec.json.Decoder().decode


@dataclass(slots=True)
class Follower:
    """One socket that is told what is said in one session. It can leave and come back to where it was."""

    server: Server
    session_id: str
    wire: Wire
    cursor: str = ""
    last: int | None = None
    """The number of the message that it was told last."""
    told: int = 0
    errors: int = 0
    lost: bool = False
    """Whether the server has closed its socket."""
    _task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Subscribe, from where it was, and read."""
        asked = {"session_id": self.session_id, "events": ["entries"]}
        if self.cursor:
            asked["cursor"] = self.cursor
        self.cursor = (await self.wire.call("session.subscribe", asked))["cursor"]
        self.lost = False
        self._task = asyncio.create_task(self._read(self.wire))

    async def ended(self) -> None:
        """Wait until the server has closed its socket, having read what was on its way."""
        if self._task is not None:
            await self._task

    async def leave(self) -> None:
        """Close the socket."""
        if self._task is not None:
            self._task.cancel()
            await self._task
        self.wire.close()

    async def come_back(self) -> None:
        """Leave, and go on from the last cursor on another socket."""
        await self.leave()
        self.wire = await self.server.wire()
        await self.begin()

    async def _read(self, wire: Wire) -> None:
        with suppress(asyncio.CancelledError):
            try:
                while True:
                    event = _decode(await wire.receive())["params"]
                    self.cursor = event["cursor"]
                    for each in event["messages"]:
                        self._hear(int(each["content"].split(" ", 1)[0]))
            except ConnectionResetError:
                self.lost = True

    def _hear(self, number: int) -> None:
        self.errors += self.last is not None and number != self.last + 1
        self.last = number
        self.told += 1
