"""Our writer and eight others on one transcript, all of them killed at any moment, and what is left of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.claude.foreign_appender import BEGINNING, TORN_EVERY, line
from tests.claude.transcripts import Writer, session_id
from tests.support.paths import ROOT
from tests.support.waits import line_of, output

ID = session_id(1)
OTHERS = 8
FOREIGN = re.compile(re.escape(BEGINNING.removesuffix(b"other")) + rb'(other[^"]*)"')


class Process:
    """A process that says numbers, and is killed while it is at work."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"tests.claude.{module}", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = 0

    def wait_for(self, number: int) -> None:
        """Read what it says until it has said so much."""
        while self.said < number:
            said = line_of(self._process, f"the number {number}")
            assert said, "the process has ended"
            self.said = int(said)

    def kill(self) -> int:
        """Kill it; returns the last number that it had said, one cut off by the kill left out."""
        self._process.kill()
        rest, _ = output(self._process, "the end of a killed process")
        whole = rest[: rest.rfind("\n") + 1]
        self.said = max([self.said, *map(int, whole.split())])
        return self.said


class Said(NamedTuple):
    """Up to which number each process said that it had written: ours, and the others."""

    ours: Mapping[str, int]
    theirs: Mapping[str, int]


class Left(NamedTuple):
    """What a transcript lacks, of how many lines that were acknowledged; what others had torn is theirs too."""

    acknowledged: int
    kills: int
    ours_lost: int
    theirs_changed: int


def begun(home: Path) -> Path:
    """A transcript with one prompt in the folder of Claude Code."""
    writer = Writer(ID)
    writer.user("Paint the barn")
    return writer.save(home / "projects")


def one_life(home: Path, path: Path, life: int, acknowledged: int, environment: Mapping[str, str]) -> Said:
    """Two of ours and eight others write until each of ours has so many lines acknowledged; then all are killed."""
    given = {**environment, "CLAUDE_CONFIG_DIR": str(home)}
    others = {
        name: Process("foreign_appender", str(path), name, environment=given)
        for name in (f"other{life}-{number}" for number in range(OTHERS))
    }
    ours = {
        name: Process("rename_worker", ID, name, environment=given) for name in (f"one{life}", f"two{life}")
    }
    try:
        for process in others.values():
            process.wait_for(1)
        for process in ours.values():
            process.wait_for(acknowledged)
    finally:
        written = {name: process.kill() for name, process in (*ours.items(), *others.items())}
    return Said(
        {name: written[name] for name in ours},
        {name: written[name] for name in others},
    )


def left(path: Path, lives: list[Said]) -> Left:
    """Look for every line that was acknowledged, and for what the others had left unfinished."""
    data = path.read_bytes()
    titles = {_title(part) for part in data.split(b"\n")}
    ours = [f"{name} {number}" for said in lives for name, number in _numbered(said.ours)]
    theirs = [each for said in lives for each in _numbered(said.theirs)]
    written = _foreign(data)
    return Left(
        acknowledged=len(ours) + sum(number % TORN_EVERY > 0 for _, number in theirs),
        kills=sum(len(said.ours) + len(said.theirs) for said in lives),
        ours_lost=len(set(ours) - titles),
        theirs_changed=sum(not _is_there(written, *each) for each in theirs),
    )


def _numbered(said: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for name, last in said.items():
        yield from ((name, number) for number in range(1, last + 1))


def _foreign(data: bytes) -> dict[bytes, list[bytes]]:
    """What begins as a line of another does, by the id in it, each to the end of the line or to where the next begins: one
    who writes after a torn line, and does not seal it, has the own on the same line."""
    starts = list(FOREIGN.finditer(data))
    ends = [*(found.start() for found in starts[1:]), len(data)]
    pieces: dict[bytes, list[bytes]] = {}
    for found, end in zip(starts, ends, strict=True):
        pieces.setdefault(found[1], []).append(data[found.start() : end].partition(b"\n")[0])
    return pieces


def _is_there(pieces: Mapping[bytes, list[bytes]], name: str, number: int) -> bool:
    """Whether what another wrote as its line of this number is there, once and unchanged."""
    whole, found = line(name, number), pieces.get(f"{name}-{number}".encode(), [])
    if number % TORN_EVERY:
        return found == [whole.rstrip()]
    # Behind what was torn, the line of one may stand who did not see it in time; we write ours once more then.
    return len(found) == 1 and found[0].startswith(whole[: len(whole) // 2])


def _title(part: bytes) -> str | None:
    """The title that a line of its own gives."""
    try:
        record = json.loads(part) if b"custom-title" in part else {}
    except ValueError:
        return None
    title: str | None = record.get("customTitle")
    return title
