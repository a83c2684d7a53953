"""The ways of an append, a list, a load, a sync and a page through the modules, as the running program goes them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

import hitherto
from hitherto.model import LOCAL
from tests.support.conversations import talk
from tests.support.paths import ROOT
from tests.support.waits import LIMIT, block_until, ended, line_of

ROUNDS = 4
"""What runs each time belongs to the way; what ran once, as a schedule does, only came between."""
SESSION = "019a8a3e-0000-7000-8000-000000000001"
QUIET = 20
"""So often nothing new has run when it is asked again: what followed an answer is over."""
LOOKS = 1_000
"""So often is looked for what runs unasked: longer than the schedules that can come between take, however busy the machine is."""
OPENED = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
SAID = {"type": "user", "uuid": "u1", "sessionId": SESSION, "cwd": "/w", "timestamp": "2026-11-15T10:00:00Z"}


Ways = Mapping[str, Sequence[str]]
"""Modules in their order, by the name of the way."""


class Command:
    """A traced command that runs."""

    def __init__(self, process: subprocess.Popen[bytes], file: Path) -> None:
        self.process, self._file, self._numbers = process, file, itertools.count(1)

    def ran(self) -> list[str]:
        """The modules that ran since this was last asked."""
        self.process.send_signal(signal.SIGUSR1)
        return self._next()

    def ran_until_quiet(self) -> list[str]:
        """The same, with what ran on after an answer."""
        found: dict[str, None] = {}
        quiet = 0
        while quiet < QUIET:
            before = len(found)
            found.update(dict.fromkeys(self.ran()))
            quiet = quiet + 1 if len(found) == before else 0
        return list(found)

    def ran_to_its_end(self) -> list[str]:
        """The modules that ran, of a command that ends by itself."""
        assert ended(self.process, "the end of the command") == 0
        return self._next()

    def _next(self) -> list[str]:
        file = Path(f"{self._file}.{next(self._numbers)}")
        block_until(file.exists, "the modules that ran")
        return file.read_text().split()

    def way(self, act: Callable[[], None], ran: Callable[[], list[str]]) -> list[str]:
        """The modules that run whenever this is done."""
        act()
        rounds = []
        for _ in range(ROUNDS):
            ran()
            act()
            rounds.append(ran())
        return [module for module in rounds[0] if all(module in each for each in rounds)]

    def without_schedules(self, found: Ways, known: Ways) -> dict[str, list[str]]:
        """The ways without what a schedule ran in every round, as it does on a busy machine: what is not `known` of a way,
        and runs unasked too, is not of it."""
        unasked = self._runs_unasked({module for name in found for module in {*found[name]} - {*known[name]}})
        return {
            name: [module for module in way if module in known[name] or module not in unasked]
            for name, way in found.items()
        }

    def _runs_unasked(self, modules: set[str]) -> set[str]:
        """Those of these modules that run while nothing is asked."""
        seen: set[str] = set()
        for _ in range(LOOKS):
            if seen == modules:
                break
            seen |= modules & {*self.ran()}
        return seen


@contextlib.contextmanager
def command(folder: Path, *arguments: str) -> Iterator[Command]:
    """Run a command with an empty home, traced."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    file = folder / f"trace-{arguments[0]}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.project.traced_command", str(file), *arguments],
        env={**os.environ, "HOME": str(home), "HITHERTO_DATA_DIR": str(folder / "data")},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Command(process, file)
    finally:
        with process:
            process.terminate()
            ended(process, "the end of the command")


def over_the_gateway(folder: Path, known: Ways) -> dict[str, list[str]]:
    """An append and a list over HTTP, and a view of the page."""
    with command(folder, "serve", "--port", "0", "--json") as serving:
        started = json.loads(line_of(serving.process, "the address of the server"))
        address = started["address"].removeprefix("http://")
        token = Path(started["token_file"]).read_text().strip()
        with contextlib.closing(http.client.HTTPConnection(address, timeout=LIMIT)) as connection:
            return _ways(serving, connection, token, known)


def _ways(
    serving: Command, connection: http.client.HTTPConnection, token: str, known: Ways
) -> dict[str, list[str]]:
    bearer = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(method: str, **params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/rpc", body, bearer)
        return json.loads(connection.getresponse().read())["result"]

    def append() -> None:
        ask("session.append", session_id=session, messages=[{"role": "user", "content": "Where is it?"}])

    def page() -> None:
        connection.request("GET", "/", headers={"Cookie": cookie, **OPENED})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()

    session = ask("session.create", title="A way")["session_id"]
    cookie = _signed_in(connection, token)
    found = {
        "append": serving.way(append, serving.ran),
        "list": serving.way(lambda: ask("session.list"), serving.ran),
        "page": serving.way(page, serving.ran),
    }
    return serving.without_schedules(found, known)


def in_an_editor(folder: Path, known: Ways) -> list[str]:
    """A session that an editor loads, over ACP: each time another."""
    sessions = iter(asyncio.run(_conversations(folder)))
    with command(folder, "acp") as agent:
        numbers = itertools.count(1)

        def read() -> Any:
            return json.loads(line_of(agent.process, "a message of the agent"))

        def ask(method: str, **params: Any) -> Any:
            number = next(numbers)
            line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            to_agent = cast("IO[bytes]", agent.process.stdin)
            to_agent.write(line.encode() + b"\n")
            to_agent.flush()
            while (answer := read()).get("id") != number:
                pass
            return answer["result"]

        def load() -> None:
            ask("session/load", sessionId=next(sessions), cwd=str(folder), mcpServers=[])
            while read()["params"]["update"]["sessionUpdate"] != "available_commands_update":
                pass  # the last that follows the answer

        ask("initialize", protocolVersion=1, clientCapabilities={})
        found = {"load": agent.way(load, agent.ran_until_quiet)}
        return agent.without_schedules(found, known)["load"]


async def _conversations(folder: Path) -> list[str]:
    """Sessions in which something was said, by id."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    async with hitherto.open(f"sqlite:///{data / 'hitherto.db'}") as sessions:
        made = [await sessions.create(LOCAL, cwd=str(folder)) for _ in range(ROUNDS + 1)]
        for session in made:
            await talk(sessions, LOCAL, session.id, "Where is it?", "Here.")
        return [session.id for session in made]


def of_a_transcript(folder: Path) -> list[str]:
    """A transcript of Claude Code that is read for the first time."""
    transcript = folder / "home" / ".claude" / "projects" / "-w" / f"{SESSION}.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps({**SAID, "message": {"role": "user", "content": "Where is it?"}}) + "\n")
    with command(folder, "sync") as syncing:
        return syncing.ran_to_its_end()


def ways(folder: Path, known: Ways) -> dict[str, Sequence[str]]:
    """All of them, by name."""
    places = [folder / name for name in ("gateway", "editor", "transcript")]
    for place in places:
        place.mkdir()
    return {
        **over_the_gateway(places[0], known),
        "load": in_an_editor(places[1], known),
        "sync": of_a_transcript(places[2]),
    }


def _signed_in(connection: http.client.HTTPConnection, token: str) -> str:
    """The cookie of somebody who signed in to the page."""
    headers = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    connection.request("POST", "/signin", json.dumps({"token": token}), headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
    return (answer.headers["set-cookie"] or "").partition(";")[0]
