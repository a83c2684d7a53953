"""`acpx`, a command line for any agent, as the client of `hitherto acp`: `make interop`.

It starts an agent process for nearly every command, so each of these tests has several of them on one store.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import hitherto
from hitherto.model import LOCAL
from tests.acp.wire import environment, url_of
from tests.engines.provider import PAUSE, Provider, ToolUse, serving
from tests.interop.acp_typescript import agent_command, check_lines
from tests.interop.packages import ACPX, NODE, install
from tests.interop.tap import conversations
from tests.support.waits import LIMIT, is_set, output

Json = dict[str, Any]

pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


class Acpx:
    """The program in a home and a folder of its own."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder, self.provider = folder, provider
        self.home, self.work, self.lines = folder / "home", folder / "work", folder / "lines"
        for made in (self.home, self.work, self.lines):
            made.mkdir()
        self.env = environment(self.home, provider.environ())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        agent = shlex.join(agent_command(self.lines, self.folder))
        options = [
            "--agent",
            agent,
            "--cwd",
            str(self.work),
            "--approve-all",
            "--ttl",
            "20",
            "--format",
            "json",
        ]
        return subprocess.Popen(
            [NODE, ACPX, *options, *arguments],
            env=self.env,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> list[Json]:
        """What a command says: one object, or one for each message that went to and fro."""
        return self.finish(self.start(*arguments))

    def finish(self, running: subprocess.Popen[str]) -> list[Json]:
        said, errors = output(running, "the command to end")
        assert running.returncode == 0, said + errors
        return [json.loads(line) for line in said.splitlines()]

    def new(self, *arguments: str) -> str:
        (made,) = self.run("sessions", "new", *arguments)
        session: str = made["acpxSessionId"]
        return session

    def methods(self) -> list[list[str]]:
        """What was asked of each agent process."""
        return [
            [message["method"] for message in asked if "method" in message]
            for asked in (
                [json.loads(line) for side, line in lines if side == "client"]
                for lines in conversations(self.lines)
            )
        ]

    def end(self) -> None:
        """End what it has left running: everything that has this home."""
        left = [process for process in psutil.process_iter() if _home_of(process) == str(self.home)]
        for process in left:
            process.terminate()
        psutil.wait_procs(left, timeout=LIMIT)


def _home_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("HOME")
    except psutil.Error:
        return None


def said(messages: list[Json]) -> str:
    updates = [
        message["params"]["update"] for message in messages if message.get("method") == "session/update"
    ]
    chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    return "".join(chunk["content"]["text"] for chunk in chunks)


def reason(messages: list[Json]) -> str:
    (found,) = [message["result"] for message in messages if "stopReason" in message.get("result", {})]
    stop_reason: str = found["stopReason"]
    return stop_reason


@pytest.fixture
def acpx(tmp_path: Path) -> Iterator[Acpx]:
    install()
    with serving() as provider:
        made = Acpx(tmp_path, provider)
        try:
            yield made
        finally:
            made.end()
    assert check_lines(made.lines) > 1


def test_a_session_made_by_one_process_is_prompted_in_another(acpx: Acpx) -> None:
    acpx.provider.script(["Hello."], ["Greeting"], ["Again."])
    session = acpx.new()
    first = acpx.run("prompt", "Hi")
    assert (said(first), reason(first)) == ("Hello.", "end_turn")
    assert said(acpx.run("prompt", "And?")) == "Again."
    (listed,) = acpx.run("sessions", "list")
    (row,) = listed["sessions"]
    assert (row["sessionId"], row["cwd"], row["_meta"]["messageCount"]) == (session, str(acpx.work), 4)
    made, prompted, _ = acpx.methods()
    assert made == ["initialize", "session/new"]
    assert prompted == ["initialize", "session/resume", "session/prompt", "session/prompt"]


def test_a_session_that_it_has_forgotten_is_resumed_by_its_id(acpx: Acpx) -> None:
    acpx.provider.script(["Blue."], ["Colours"], ["As I said, blue."])
    session = acpx.new()
    acpx.run("prompt", "Which colour?")
    acpx.run("sessions", "close")
    acpx.end()
    assert acpx.new("--resume-session", session) == session
    assert said(acpx.run("prompt", "Sure?")) == "As I said, blue."
    told = [message["role"] for message in acpx.provider.requests[-1]["messages"]]
    assert told == ["user", "assistant", "user"]


async def test_lists_have_pages_and_a_folder(acpx: Acpx) -> None:
    async with hitherto.open(url_of(acpx.folder)) as sessions:
        made = [(await sessions.create(LOCAL, cwd=f"/p{number % 2}")).id for number in range(120)]
    (page,) = acpx.run("sessions", "list")
    seen = page["sessions"]
    while cursor := page.get("nextCursor"):
        (page,) = acpx.run("sessions", "list", "--cursor", cursor)
        seen += page["sessions"]
    assert sorted(row["sessionId"] for row in seen) == sorted(made)
    (page,) = acpx.run("sessions", "list", "--filter-cwd", "/p1")
    (rest,) = acpx.run("sessions", "list", "--filter-cwd", "/p1", "--cursor", page["nextCursor"])
    found = page["sessions"] + rest["sessions"]
    assert sorted(row["sessionId"] for row in found) == sorted(made[1::2])
    assert acpx.run("sessions", "list", "--filter-cwd", "/nowhere")[0]["sessions"] == []


def test_a_running_prompt_is_cancelled_from_another_shell(acpx: Acpx) -> None:
    acpx.provider.script(["Half", PAUSE, "whole"])
    acpx.new()
    running = acpx.start("prompt", "Go")
    is_set(acpx.provider.waiting, "the turn to pause")
    (cancelled,) = acpx.run("cancel")
    assert cancelled["cancelled"] is True
    messages = acpx.finish(running)
    assert (said(messages), reason(messages)) == ("Half", "cancelled")
    acpx.provider.go.set()
    acpx.provider.script(["Well."])
    assert said(acpx.run("prompt", "Go on")) == "Well."


def test_modes_and_options_are_set_and_kept_for_the_next_process(acpx: Acpx) -> None:
    acpx.new()
    (mode,) = acpx.run("set-mode", "plan")
    assert mode["modeId"] == "plan"
    acpx.end()
    (answer,) = acpx.run("set", "thinking", "high")
    current = {option["id"]: option["currentValue"] for option in answer["configOptions"]}
    assert current == {"model": "default", "mode": "plan", "thinking": "high"}


def test_a_command_runs_in_its_terminal_and_a_file_is_written_by_it(acpx: Acpx) -> None:
    path = acpx.work / "a.txt"
    acpx.provider.script(
        [ToolUse("write_file", {"path": str(path), "content": "new"}, id="t1")],
        [ToolUse("run_command", {"command": "cat a.txt"}, id="t2")],
        ["Done."],
    )
    acpx.new()
    messages = acpx.run("prompt", "Write it")
    assert (said(messages), reason(messages)) == ("Done.", "end_turn")
    assert path.read_text() == "new"
    asked = [message["method"] for message in messages if "method" in message and "id" in message]
    assert asked.count("session/request_permission") == 2
    assert {"fs/write_text_file", "terminal/create", "terminal/release"} <= set(asked)
    assert "new" in json.dumps(acpx.provider.requests[2])


def test_a_closed_session_is_still_listed(acpx: Acpx) -> None:
    session = acpx.new()
    acpx.run("prompt", "Hi")
    (closed,) = acpx.run("sessions", "close")
    assert closed["action"] == "session_closed"
    assert ["session/close" in methods for methods in acpx.methods()] == [False, True]
    (listed,) = acpx.run("sessions", "list")
    assert [row["sessionId"] for row in listed["sessions"]] == [session]
