"""What was measured, kept in a file: rows may be tried one by one, and the scorecard shows the newest trial of each."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

import msgspec

STORE = Path("docs/scorecard/results.json")


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


def load(file: Path = STORE) -> dict[str, Recorded]:
    """The trials by key of their row."""
    if not file.exists():
        return {}
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Recorded])


def record(key: str, trial: Recorded, file: Path = STORE) -> dict[str, Recorded]:
    """Put a trial in the place of the one before, and return all; two runs at once do not lose each other's rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        recorded = dict(sorted({**load(file), key: trial}.items()))
        file.write_bytes(msgspec.json.format(msgspec.json.encode(recorded), indent=1) + b"\n")
    return recorded


def commit() -> str:
    """The commit that is measured; a `+` says that files differ from it."""
    name = _git("rev-parse", "--short=10", "HEAD")
    return f"{name}+" if _git("status", "--porcelain", "--", "src", "torture") else name


def _git(*words: str) -> str:
    ran = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return ran.stdout.strip()
