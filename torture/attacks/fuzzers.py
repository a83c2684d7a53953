"""The row of hostile frames: those that are fixed, then the fuzzers, each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants import ROOT
from torture.attacks import frames
from torture.attacks.frames import MEGABYTES
from torture.trial.needs import Need
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

ATHERIS = Need("the package `atheris`", lambda: importlib.util.find_spec("atheris") is not None)
PROMISED = ("parser", "framing", "cursor", "importer")
OTHERS = (
    "methods", "source claude", "source codex-legacy", "source codex-paginated", "source gemini", "source goose",
    "source openclaw", "source opencode", "source pi", "search", "secrets",
)  # fmt: skip
"""What is fuzzed beside those; see `torture.attacks.fuzz_targets`."""
SECONDS = {**dict.fromkeys(PROMISED, 150), **dict.fromkeys(OTHERS, 15)}
"""For how long each: ten minutes in all for those that are promised."""
GROWTH = 50
"""The most megabytes that a process may grow by."""
OPTIONS = ("-rss_limit_mb=4096", "-timeout=20", "-max_len=8192", "-verbosity=0")
PATIENCE = 300


class Fuzzed(NamedTuple):
    """What came of one target."""

    inputs: int
    grown: int
    fault: str


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """The frames, and unless the form is short the fuzzers."""
    found = frames.sent(setting.folder, environment, setting.of(short=120, full=2_000))
    fuzzed = (
        {}
        if setting.short
        else {name: _fuzzed(setting, environment, name, seconds) for name, seconds in SECONDS.items()}
    )
    faults = [f"{name}: {each.fault}" for name, each in fuzzed.items() if each.fault]
    grown = max([found.grown, *(each.grown for each in fuzzed.values())])
    inputs = found.sent + sum(each.inputs for each in fuzzed.values())
    for trouble in (*found.crashes, *found.internal, *faults):
        setting.say(trouble)
    figure = (
        f"{len(found.crashes)} crashes and {len(found.internal)} internal errors from {found.sent:,} fixed frames over HTTP,"
        f" sockets and pipes; {len(faults)} faults in {inputs - found.sent:,} inputs of"
        f" {_seconds(fuzzed, PROMISED)} s of fuzzing {', '.join(PROMISED)} and {_seconds(fuzzed, OTHERS)} s of"
        f" {len(OTHERS)} other targets; memory +{grown} MB at most after the first tenth of the frames"
    )
    met = not (found.crashes or found.internal or faults) and grown < GROWTH
    return Outcome(met=met, figure=figure, counts={"inputs": inputs})


def _seconds(fuzzed: Mapping[str, Fuzzed], names: Sequence[str]) -> int:
    return sum(SECONDS[name] for name in names if name in fuzzed)


def _fuzzed(setting: Setting, environment: Environment, name: str, seconds: int) -> Fuzzed:
    folder = setting.folder / name.replace(" ", "-")
    folder.mkdir()
    options = (*OPTIONS, f"-max_total_time={seconds}", f"-seed={setting.seed}", f"-artifact_prefix={folder}/")
    ran = subprocess.run(
        [sys.executable, "-m", "torture.attacks.fuzz_targets", name, str(folder), *options],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=seconds + PATIENCE,
    )
    notes = _notes(folder / "notes")
    fault = "" if ran.returncode == 0 else ran.stderr.decode(errors="replace")[-3_000:]
    # What takes no input has no fault either.
    return Fuzzed(
        notes.get("inputs", 0),
        notes.get("grown", 0) // MEGABYTES,
        fault or ("" if notes else "hardly an input"),
    )


def _notes(file: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    return found
