"""An agent as a child process, spoken to over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from hitherto.acp.pipes import Pipes, Take
from hitherto.errors import EngineError
from hitherto.rpc.errors import Gone
from hitherto.rpc.transport import Lines

LEAVE_SECONDS = 5.0
CHUNK = 256 * 1024


class ProcessLine:
    """See `rpc.transport.Transport`: the two pipes of a child."""

    def __init__(self, source: int, target: int) -> None:
        self._target = target
        self._pipes = Pipes(source, target)
        self._hung_up = False

    async def receive(self) -> bytes | None:
        return await self._pipes.receive()

    async def deliver(self, take: Take) -> None:
        """See `Pipes`."""
        await self._pipes.deliver(take)

    async def send(self, data: bytes) -> None:
        if self._hung_up:
            raise Gone
        await self._pipes.send(data)

    async def hang_up(self) -> None:
        """Let the child see the end of its input; what it still says can be received."""
        self._hung_up = True
        asyncio.get_running_loop().remove_writer(self._target)
        # The number stays ours: whoever opened the next file would otherwise get what is still being sent.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._target)
        os.close(nothing)

    def close(self) -> None:
        self._pipes.close()


class StreamLine:
    """See `rpc.transport.Transport`: a reader and a writer of asyncio, such as those of a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._lines = Lines()

    async def receive(self) -> bytes | None:
        return await self._lines.next_line(self._read)

    async def send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (OSError, RuntimeError) as error:
            raise Gone from error

    async def hang_up(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError:
            return b""


@asynccontextmanager
async def start_agent(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: str | None,
    stderr: int | None,
) -> AsyncIterator[ProcessLine]:
    """Start an agent. When the block ends, so does its input; an agent that does not exit is terminated, then killed."""
    source, child_output = os.pipe()
    child_input, target = os.pipe()
    try:
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *args,
                stdin=child_input,
                stdout=child_output,
                stderr=stderr,
                env=env,
                cwd=cwd,
                start_new_session=True,  # ^C is for this program, which then lets the agent go
            )
        except OSError as error:
            raise EngineError(f"cannot start the agent {command!r}: {error.strerror}") from error
        finally:
            os.close(child_input)
            os.close(child_output)
        line = ProcessLine(source, target)
        try:
            yield line
        finally:
            await line.hang_up()
            await asyncio.shield(_end(process))
            line.close()
    finally:
        os.close(source)
        os.close(target)


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), LEAVE_SECONDS)
            return
