"""Our writer and eight others on one transcript, all of them killed at any moment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.claude.foreign_appender import BEGINNING, TORN_EVERY, line
from tests.claude.trees import Writer, session_id

ID = session_id(1)
OTHERS = 8
LIVES = 3
ACKNOWLEDGED = 60


class Process:
    """A process that says numbers, and is killed while it is at work."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.claude.{module}", *arguments], stdout=subprocess.PIPE, text=True
        )

    def wait_for(self, number: int) -> None:
        """Read what it says until it has said so much."""
        assert self._process.stdout is not None
        for said in self._process.stdout:
            if int(said) >= number:
                return

    def kill(self) -> list[int]:
        """Kill it; returns what it had said meanwhile, a number cut off by the kill left out."""
        self._process.kill()
        rest, _ = self._process.communicate()
        whole = rest[: rest.rfind("\n") + 1]
        return [int(said) for said in whole.split()]


def test_no_acknowledged_line_is_lost_and_no_foreign_byte_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    writer = Writer(ID)
    writer.user("Paint the barn")
    path = writer.save(tmp_path / "projects")
    ours: list[tuple[str, int]] = []
    theirs: list[tuple[str, int]] = []
    for life in range(LIVES):
        others = [f"other{life}{number}" for number in range(OTHERS)]
        appenders = {name: Process("foreign_appender", str(path), name) for name in others}
        renamers = {name: Process("renaming_worker", ID, name) for name in (f"one{life}", f"two{life}")}
        for process in appenders.values():
            process.wait_for(1)
        for name, process in renamers.items():
            process.wait_for(ACKNOWLEDGED)
            ours.append((name, max([ACKNOWLEDGED, *process.kill()])))
        for name, process in appenders.items():
            theirs.append((name, max([1, *process.kill()])))
    parts = path.read_bytes().split(b"\n")
    titles = set(map(_title, parts))
    # Those that write after a torn line, and do not seal it, have their own on the same line.
    foreign = Counter(part[part.rfind(BEGINNING) :] for part in parts if BEGINNING in part)
    for name, last in ours:
        assert {f"{name} {number}" for number in range(1, last + 1)} <= titles
    for name, last in theirs:
        acknowledged = [number for number in range(1, last + 1) if number % TORN_EVERY]
        assert all(foreign[line(name, number).rstrip()] == 1 for number in acknowledged)


def _title(part: bytes) -> str | None:
    """The title that a line of its own gives."""
    try:
        record = json.loads(part) if b"custom-title" in part else {}
    except ValueError:
        return None
    return record.get("customTitle")
