"""Turns that are killed: nothing that was told to be stored is lost, and the next prompt finds a whole history."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hitherto
from hitherto.model import LOCAL, Entry, ToolCall, ToolResult
from tests.engines.provider import Provider, Step, ToolUse, serving
from tests.support.waits import ended, kill, line_of, or_killed

Json = dict[str, Any]
ROUNDS = 20
SEED = 20_261_115
MOST_EVENTS = 16


def reply(body: Json) -> Sequence[Step]:
    """Some text and three tools at once for a prompt; a few words for their results."""
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and any(block["type"] == "tool_result" for block in last):
        return ["Now ", "it ", "is ", "done."]
    number = len(body["messages"])
    return [
        "I ", "will ", "do it.",
        ToolUse("write_file", {"path": f"{number}.txt", "content": "x"}, id=f"w{number}"),
        ToolUse("run_command", {"command": "echo one; echo two"}, id=f"r{number}"),
        ToolUse("list_files", {"pattern": "*.txt"}, id=f"l{number}"),
    ]  # fmt: skip


@contextmanager
def worker(url: str, session_id: str, provider: Provider) -> Iterator[subprocess.Popen[str]]:
    command = (sys.executable, "-m", "tests.engines.killed_worker", url, session_id)
    environ = os.environ | provider.environ()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with or_killed(process, "the first turn"):
                assert "ready\n" in iter(process.stdout.readline, "")
            yield process
            process.stdin.close()
            assert ended(process, "the end of the worker") == 0
        finally:
            kill(process)


def killed_after(events: int, text: str, process: subprocess.Popen[str]) -> tuple[list[str], bool]:
    """Run a turn and kill it when so many events were told; the entries that it said are stored, and whether it ended."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()
    pid, stored, done = 0, list[str](), False
    for seen in itertools.count(1):
        word, _, rest = line_of(process, f"the turn {text!r}").strip().partition(" ")
        assert word, "the worker has ended"
        if word == "ended":
            break
        if word == "child":
            pid = int(rest)
        elif word == "stored":
            stored.append(rest)
        done = done or word == "done"
        if seen == events and not done:
            os.kill(pid, signal.SIGKILL)
    return stored, done


def unanswered(history: tuple[Entry, ...]) -> set[str]:
    parts = [part for entry in history for part in entry.parts]
    calls = {part.id for part in parts if isinstance(part, ToolCall)}
    return calls - {part.id for part in parts if isinstance(part, ToolResult)}


def check_request(body: Json) -> None:
    """Every tool call of a request has its one result in the very next message."""
    messages = body["messages"]
    for message, following in zip(messages, [*messages[1:], {"content": []}], strict=True):
        if message["role"] != "assistant":
            continue
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        blocks = following["content"] if isinstance(following["content"], list) else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(calls) == sorted(results)


async def test_turns_killed_at_random_points_lose_nothing_and_leave_nothing_open(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    folder = tmp_path / "folder"
    folder.mkdir()
    points = random.Random(SEED)
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL, cwd=str(folder), title="Killed")
        acknowledged: list[str] = []
        survived = 0
        with serving() as provider:
            provider.script(*[reply] * (3 * ROUNDS))
            with worker(url, session.id, provider) as process:
                for number in range(ROUNDS):
                    events = points.randrange(1, MOST_EVENTS)
                    stored, done = killed_after(events, f"Round {number}", process)
                    acknowledged += stored
                    survived += done
                last, done = killed_after(-1, "The last one", process)
                assert done
            for body in provider.requests:
                check_request(body)
        page = await sessions.history(LOCAL, session.id, limit=10_000)
        kept = [entry.id for entry in page.entries]
        assert len(set(kept)) == len(kept)
        assert set(acknowledged) | set(last) <= set(kept)
        assert unanswered(page.entries) == set()
        assert survived < ROUNDS
        assert (await sessions.get(LOCAL, session.id)).status == "idle"
        assert await sessions.leases.current(LOCAL, session.id) is None
