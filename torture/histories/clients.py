"""Clients that do things to the same sessions at the same time, each a process with a store of its own opened, and write down
what they asked, when, and what they were answered.

`python -m torture.histories.clients JSON` becomes the clients. They begin each history together. A history has an owner of its own.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import IO, Any, NamedTuple

import hitherto
from hitherto.model import Principal
from hitherto.service import Sessions
from tests.mutants import ROOT
from tests.support.homes import Clock
from torture.histories.calls import FIRST, Call, Event, Named, begin, first_messages, make, spelled
from torture.trial.program import Environment

CLIENTS = 8
PATIENCE = 1_800
TOGETHER_SECONDS = 120
WEIGHTS = {
    "append": 8,
    "fork": 3,
    "rewind": 3,
    "compact": 2,
    "restore": 3,
    "erase": 2,
    "delete": 1,
    "create": 1,
    "acquire": 2,
    "release": 2,
    "get": 2,
    "history": 3,
    "context": 2,
    "checkpoints": 2,
}
"""How often each kind of call is made, compared with the others."""


class Task(NamedTuple):
    """What all clients are to do."""

    url: str
    seed: int
    histories: int
    calls: int


def owner_of(history: int) -> Principal:
    """Whose sessions a history is about."""
    return Principal(owner=f"history-{history}")


class Client:
    """Chooses what to do next, by chance and by what it has seen."""

    def __init__(self, dice: random.Random, name: str) -> None:
        self._dice, self._name = dice, name
        self._made = 0
        self._sessions = [*FIRST, *FIRST]
        self._messages = {session: first_messages(session) for session in FIRST}
        self._checkpoints = {session: list[str]() for session in FIRST}
        self._fences: dict[str, int] = {}

    def next(self) -> Call:
        """The next call."""
        self._made += 1
        name = f"{self._name}x{self._made}"
        kind = self._dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        session = self._dice.choice(self._sessions)
        if kind == "create":
            session = self._dice.choice(FIRST)
        if kind == "delete":  # more often what somebody has made than what all use
            session = self._dice.choice(self._sessions[2:])
        if kind == "release":
            session = next(iter(self._fences), session)
        fence = self._fences.get(session)
        return Call(name, kind, session, self._given(kind, session, name), fence)

    def _given(self, kind: str, session: str, name: str) -> str:
        if kind in ("rewind", "erase") or (kind == "fork" and self._dice.random() < 0.5):
            return self._dice.choice(self._messages[session])
        if kind == "restore":
            return self._dice.choice(self._checkpoints[session] or ["nothing"])
        return f"holder-{name}" if kind == "acquire" else ""

    def heard(self, call: Call, answer: Any) -> None:
        """Remember what an answer tells: messages, checkpoints, forks and leases to use later."""
        if call.kind == "release":
            self._fences.pop(call.session, None)
        if is_error(answer):
            return
        if call.kind == "append":
            self._messages[call.session].append(call.name)
        elif call.kind in ("rewind", "compact", "restore"):
            self._checkpoints[call.session].append(f"of-{call.name}")
        elif call.kind == "checkpoints":
            self._checkpoints[call.session] += [each.id for each in answer]
        elif call.kind == "acquire":
            self._fences[call.session] = answer.fence
        elif call.kind == "fork":
            self._add_fork(call)

    def _add_fork(self, call: Call) -> None:
        fork = f"fork-{call.name}"
        self._sessions.append(fork)
        self._messages[fork] = self._messages[call.session][:]
        self._checkpoints[fork] = []


def is_error(answer: Any) -> bool:
    """Whether an answer is one: its class, code and words."""
    return isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[0], str)


async def observe(sessions: Sessions, ids: Named, history: int, events: Sequence[Event]) -> list[Event]:
    """Ask for everything after the last call of a history."""
    who, names = (
        owner_of(history),
        {*FIRST, *(f"fork-{e.call.name}" for e in events if e.call.kind == "fork")},
    )
    seen: list[Event] = []
    for session in sorted(names):
        for kind in ("get", "context", "history", "checkpoints"):
            call = Call(f"last-{session}-{kind}", kind, session)
            began = time.monotonic_ns()
            answer = spelled(await make(sessions, ids, who, call))
            seen.append(Event(call, began, time.monotonic_ns(), answer))
    return seen


async def record(url: str, folder: Path, task: Task, environment: Environment) -> list[list[Event]]:
    """Have the clients do their histories on a store; what they wrote down, and what is there in the end."""
    async with hitherto.open(url, now=Clock(), new_id=Named()) as sessions:
        for history in range(task.histories):
            await begin(sessions, owner_of(history))
    files = [folder / f"client-{number}" for number in range(CLIENTS)]
    told = json.dumps({"files": [str(file) for file in files], **task._asdict()})
    await asyncio.to_thread(_run, told, environment)
    histories: list[list[Event]] = [[] for _ in range(task.histories)]
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            history, call, began, ended, answer = json.loads(line)
            histories[history].append(Event(Call(*call), began, ended, answer))
    ids = Named()
    async with hitherto.open(url, now=Clock(), new_id=ids) as sessions:
        return [
            [*events, *await observe(sessions, ids, number, events)]
            for number, events in enumerate(histories)
        ]


def _run(told: str, environment: Environment) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "torture.histories.clients", told],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"a client has died: {ran.stderr[-2000:]}")


async def _act(task: Task, number: int, notes: IO[str], together: Barrier) -> None:
    ids = Named()
    async with hitherto.open(task.url, now=Clock(), new_id=ids) as sessions:
        for history in range(task.histories):
            dice = random.Random(f"{task.seed}:{history}:{number}")
            client = Client(dice, f"c{number}")
            together.wait(TOGETHER_SECONDS)
            for _ in range(task.calls):
                call = client.next()
                began = time.monotonic_ns()
                answer = await make(sessions, ids, owner_of(history), call)
                ended = time.monotonic_ns()
                notes.write(json.dumps([history, call, began, ended, spelled(answer)]) + "\n")
                client.heard(call, answer)


def _client(task: Task, number: int, file: str, together: Barrier) -> None:
    with Path(file).open("w", encoding="utf-8") as notes:
        asyncio.run(_act(task, number, notes, together))


def main(files: Sequence[str], **task: Any) -> int:
    """Become the clients, and wait for them."""
    context = multiprocessing.get_context("fork")
    together = context.Barrier(len(files))
    clients = [
        context.Process(target=_client, args=(Task(**task), number, file, together))
        for number, file in enumerate(files)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join(PATIENCE)
    return int(any(client.exitcode != 0 for client in clients))


if __name__ == "__main__":
    sys.exit(main(**json.loads(sys.argv[1])))
