"""What was measured, kept in a file: rows may be tried one by one, and the scorecard shows the newest trial of each."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import msgspec

STORE = Path("docs/scorecard/results.json")
MEASURED = ("src", "torture", "tests", "bench", "supply")
"""The code that trials run: the program, and what tries it."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The newest whole trial of one row."""

    figure: str
    met: bool
    control: str
    """What the control came to."""
    counts: bool
    """Whether the control came to its end and failed, as it must; else the trial does not count."""
    sums: dict[str, int]
    seed: int
    commit: str
    seconds: float
    date: str = ""
    """The day on which it ended, in UTC; nothing in trials from before it was kept."""
    machine: str = ""
    """What it ran on, in one line; nothing in trials from before it was kept."""
    missed: str = ""
    """Why the target is missed, where the trial knew it."""
    broke_off: bool = False
    """Whether nothing is known by it: the trial, or the control of one that was met, ended with an exception."""


def load(file: Path = STORE) -> dict[str, Recorded]:
    """The trials by key of their row."""
    if not file.exists():
        return {}
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Recorded])


def record(key: str, trial: Recorded, file: Path = STORE) -> dict[str, Recorded]:
    """Put a trial in the place of the one before, and return all; two runs at once do not lose each other's rows.

    One that broke off never takes the place of one that came to its end.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = load(file)
        if trial.broke_off and key in before and not before[key].broke_off:
            return before
        recorded = dict(sorted({**before, key: trial}.items()))
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(recorded), indent=1) + b"\n")
        os.replace(part, file)
    return recorded


def commit() -> str:
    """The commit that is measured; a `+` says that files differ from it."""
    try:
        name = _git("rev-parse", "--short=10", "HEAD")
        return f"{name}+" if _git("status", "--porcelain", "--", *MEASURED) else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def measured(before: str, after: str) -> str:
    """The commit of a trial that ran from the one to the other."""
    return before if before == after else f"{before.rstrip('+')}+"


def _git(*words: str) -> str:
    ran = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return ran.stdout.strip()
