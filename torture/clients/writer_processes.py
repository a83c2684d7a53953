"""Many processes that append to one store at the same time, and note what was acknowledged to each.

`python -m torture.clients.writer_processes JSON` loads the program once and becomes as many processes as it is told; all begin together.
Each says a message in the common session and one in its own, in turn, and writes a line about it to a file of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import hitherto
from hitherto.errors import HithertoError
from hitherto.model import LOCAL, Draft, Text
from tests.mutants import ROOT
from torture.trial.program import Environment

COMMON = "common"
LONGEST = 600
PATIENCE = 1_800
READY_SECONDS = 120


class Acknowledged(NamedTuple):
    """A message that was acknowledged: where, and how long that took."""

    session: str
    entry: str
    micros: int


class Notes(NamedTuple):
    """What the processes noted until now."""

    acknowledged: list[Acknowledged]
    errors: list[str]

    def entries(self, session_id: str) -> list[str]:
        """The entries of a session that were acknowledged."""
        return [each.entry for each in self.acknowledged if each.session == session_id]


class WriterProcesses:
    """The processes at work."""

    def __init__(self, process: subprocess.Popen[bytes], files: Sequence[Path]) -> None:
        self._process, self._files = process, files

    def notes(self) -> Notes:
        """What was noted until now. A line that is not whole was not noted yet."""
        lines = [line for file in self._files for line in file.read_text().rpartition("\n")[0].splitlines()]
        words = [line.split(" ") for line in lines]
        told = [Acknowledged(word[1], word[2], int(word[3])) for word in words if word[0] == "ok"]
        return Notes(told, [word[1] for word in words if word[0] == "error"])

    def ended(self) -> Notes:
        """Wait for all to come to their end."""
        if self._process.wait(PATIENCE) != 0:
            raise RuntimeError("a process that appends has died")
        return self.notes()


def own(number: int) -> str:
    """The session that one process has for itself."""
    return f"own-{number}"


async def prepare(url: str, many: int) -> None:
    """Make the sessions of so many processes."""
    async with hitherto.open(url) as sessions:
        for session_id in (COMMON, *map(own, range(many))):
            await sessions.create(LOCAL, session_id=session_id)


@contextmanager
def writing(
    folder: Path, url: str, many: int, environment: Environment, *, appends: int = 10**9, rest: float = 0
) -> Iterator[WriterProcesses]:
    """So many processes, which append so often each and rest so many seconds after each; they are at work from here on,
    and gone in the end."""
    files = [folder / f"notes-{number}" for number in range(many)]
    for file in files:
        file.write_bytes(b"")
    told = json.dumps({"url": url, "files": list(map(str, files)), "appends": appends, "rest": rest})
    process = subprocess.Popen(
        [sys.executable, "-m", "torture.clients.writer_processes", told],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"all begin\n":
            raise RuntimeError("the processes that append did not begin")
        yield WriterProcesses(process, files)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Task(NamedTuple):
    """What every process is to do."""

    url: str
    appends: int
    rest: float


async def _append(task: Task, number: int, notes: int, ready: int, begin: int) -> None:
    dice = random.Random(number)
    async with hitherto.open(task.url) as sessions:
        os.write(ready, b".")
        os.read(begin, 1)
        for count in range(task.appends):
            for session_id in (COMMON, own(number)):
                said = f"{number} {count} {'x' * dice.randrange(LONGEST)}"
                began = time.perf_counter()
                try:
                    done = await sessions.append(
                        LOCAL, session_id, Draft(role="user", parts=(Text(text=said),))
                    )
                except HithertoError as error:
                    os.write(notes, f"error {error.code}\n".encode())
                else:
                    micros = int((time.perf_counter() - began) * 1e6)
                    os.write(notes, f"ok {session_id} {done.entries[0]} {micros}\n".encode())
            await asyncio.sleep(task.rest)


def main(files: list[str], **task: Any) -> int:
    """Become the processes, let them begin together, and wait for them."""
    (is_ready, ready), (begin, may_begin) = os.pipe(), os.pipe()
    children = []
    for number, file in enumerate(files):
        child = os.fork()
        if not child:
            notes = os.open(file, os.O_WRONLY | os.O_APPEND)
            asyncio.run(_append(Task(**task), number, notes, ready, begin))
            os._exit(0)
        children.append(child)
    os.close(ready)
    for _ in files:
        # One that has died says nothing, and the others would wait for it for ever.
        if not select.select([is_ready], [], [], READY_SECONDS)[0]:
            return 1
        os.read(is_ready, 1)
    os.write(may_begin, b"." * len(files))
    sys.stdout.write("all begin\n")
    sys.stdout.flush()
    outcomes = [os.waitpid(child, 0)[1] for child in children]
    return int(any(outcomes))


if __name__ == "__main__":
    sys.exit(main(**json.loads(sys.argv[1])))
