"""Running a shell command to its end, and its whole process group with it.

A command leads a process group of its own. When it has ended, by itself, by its time limit or because whoever waits
for it was cancelled, the rest of the group is asked to end, then killed; if this process is killed, a guard
does it. Only what has left the group on purpose (`setsid`) stays.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from hitherto.engine import Finished
from hitherto.engines.tools.run_command import without_secrets
from hitherto.tasks import finish_or_stop

CHUNK = 64 * 1024
SHOW_EVERY = 0.1
SETTLE = 0.2
"""How long what the command leaves behind, such as the last `tee` of a pipe, has to finish its output."""
DRAIN = 0.5
"""How long the output may stay open after the group has ended: for what has left the group with it."""


async def run_command(
    command: str, cwd: str, *, seconds: float, output_bytes: int, show: Callable[[str], None]
) -> Finished:
    """Run a shell command. However this ends, the group has ended before it does."""
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    work = asyncio.create_task(_run(command, cwd, seconds, lambda: Output(output_bytes, show), stop))
    return await finish_or_stop(work, lambda: stop.set_result(None))


class Output:
    """The end of what a command prints, in bounded memory, shown now and then."""

    def __init__(self, most: int, show: Callable[[str], None]) -> None:
        self._most = most
        self._show = show
        self._tail = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self.cut = False
        self._reads, self.writes = os.pipe()
        os.set_blocking(self._reads, False)
        self._loop.add_reader(self._reads, self._readable)

    def text(self) -> str:
        """All of it, or its end."""
        tail = bytes(self._tail[-self._most :])
        # Not to begin in the middle of a character.
        start = next((at for at, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0) if self.cut else 0
        return tail[start:].decode("utf-8", "replace")

    async def drained(self, seconds: float) -> None:
        """Wait for so long, or until nobody can print any more and all of it is here."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def close(self) -> None:
        """Take no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._reads)
        os.close(self._reads)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._reads, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._loop.remove_reader(self._reads)
            self._ended.set()
            return
        self._tail += chunk
        self.cut = self.cut or len(self._tail) > self._most
        if len(self._tail) > 2 * self._most:
            del self._tail[: -self._most]
        if self._timer is None:
            self._timer = self._loop.call_later(SHOW_EVERY, self._shown)

    def _shown(self) -> None:
        self._timer = None
        self._show(self.text())


async def _run(
    command: str, cwd: str, seconds: float, listen: Callable[[], Output], stop: asyncio.Future[None]
) -> Finished:
    """Never cancelled by a caller, but perhaps by the end of the loop: then the group is killed on the spot."""
    async with guard() as watch_over:
        output = listen()
        try:
            process = await _started(command, cwd, output)
            watch_over(process.pid)
            try:
                timed_out = await _over(process, seconds, output, stop)
            except BaseException:
                signal_group(process.pid, signal.SIGKILL)
                await process.wait()
                raise
        finally:
            output.close()
    return _finished(process.returncode, output, timed_out=timed_out)


async def _over(process: Process, seconds: float, output: Output, stop: asyncio.Future[None]) -> bool:
    """Wait for the command to end, or end it, and then all of its group; whether its time was over."""
    exit_ = asyncio.create_task(process.wait())
    await asyncio.wait((exit_, stop), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    by_itself = exit_.done()
    if by_itself:
        await output.drained(SETTLE)
    await end_group(process.pid)
    await asyncio.wait((exit_,), timeout=LAST)
    await output.drained(DRAIN)
    return not by_itself and not stop.done()


async def _started(command: str, cwd: str, output: Output) -> Process:
    """The shell that runs the command. Models write for bash, if it is there."""
    try:
        return await asyncio.create_subprocess_exec(
            shutil.which("bash") or "/bin/sh",
            "-c",
            command,
            cwd=cwd,
            env=without_secrets(os.environ),
            stdin=DEVNULL,
            stdout=output.writes,
            stderr=output.writes,
            start_new_session=True,
        )
    finally:
        os.close(output.writes)


def _finished(code: int | None, output: Output, *, timed_out: bool) -> Finished:
    by_signal = code is not None and code < 0
    return Finished(
        output=output.text(),
        exit_code=None if by_signal else code,
        signal=_signal_name(-code) if code is not None and by_signal else None,
        cut=output.cut,
        timed_out=timed_out,
    )


def _signal_name(number: int) -> str:
    """Not every number has a name."""
    return next((known.name for known in signal.Signals if known == number), f"SIG{number}")


POLL = 0.01
GRACE = 2.0
"""How long a group has to end after it was asked to."""
LAST = 2.0
"""How long it has after being made to."""
PROCESSES = Path("/proc")
OVER = frozenset("ZX")
"""The states of a process that has ended and waits to be collected."""


async def end_group(group: int) -> None:
    """Ask a process group to end, then kill it; returns at once if no process is left."""
    loop = asyncio.get_running_loop()
    for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, LAST)):
        until = loop.time() + seconds
        signal_group(group, number)
        while is_running(group):
            if loop.time() >= until:
                break
            await asyncio.sleep(POLL)
        else:
            return


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; whether there is one that is ours to end."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_running(group: int) -> bool:
    """Whether something of a group still runs.

    What has ended counts as a part of the group until it is collected, and in many a container nobody collects; where
    the system shows the states of processes, they decide.
    """
    if not signal_group(group, 0):
        return False
    return not PROCESSES.joinpath("self/stat").exists() or any(state not in OVER for state in _states(group))


def _states(group: int) -> Iterator[str]:
    for process in PROCESSES.iterdir():
        with suppress(OSError):
            if process.name.isdigit():
                # The name, in brackets, may hold anything; behind it come state, parent and group.
                state, _, of = process.joinpath("stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(of) == group:
                    yield state.decode()


# A guard beside a command: if this process is killed, the command does not outlive it

GUARD_SCRIPT = """\
read -r group || exit 0
read -r over && exit 0
kill -s TERM -- "-$group"
sleep 2
kill -s KILL -- "-$group"
"""
"""Waits for the number of a group, and then for the word that all is over. If its input ends without it, we are gone."""


@asynccontextmanager
async def guard() -> AsyncIterator[Callable[[int], None]]:
    """A small shell, in a session of its own, that guards the given group until the block ends."""
    reads, writes = os.pipe()
    try:
        watching = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", GUARD_SCRIPT, stdin=reads, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
    except BaseException:
        os.close(writes)
        raise
    finally:
        os.close(reads)
    try:
        yield lambda group: _tell_guard(writes, str(group))
    finally:
        _tell_guard(writes, "over")
        os.close(writes)
        await watching.wait()


def _tell_guard(writes: int, word: str) -> None:
    with suppress(BrokenPipeError):  # somebody has killed the guard
        os.write(writes, f"{word}\n".encode())
