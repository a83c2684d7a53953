"""The program under trial: whole, or broken as a mutant says; and work that is done on it in a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.mutants import MUTANTS, ROOT, Change
from torture.trial.broken_copy import broken_program
from torture.trial.row import Outcome, Setting, Trial

Environment = Mapping[str, str]
"""What a process is given to run the program that is tried; nothing for the program as it is."""
ProgramTrial = Callable[[Setting, Environment], Outcome]
PATIENCE = 3_600


def whole(trial: ProgramTrial) -> Trial:
    """The trial of the program as it is."""
    return lambda setting: trial(setting, {})


def broken(trial: ProgramTrial, *names: str) -> Trial:
    """The same trial of a copy that is broken as these mutants say."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    return changed(trial, *(change for name in names for change in known[name].changes))


def changed(trial: ProgramTrial, *changes: Change) -> Trial:
    """The same trial of a copy with these changes."""

    def run(setting: Setting) -> Outcome:
        copy = setting.folder / "broken"
        copy.mkdir()
        return trial(setting, broken_program(copy, *changes))

    return run


def each(*trials: Trial) -> Trial:
    """Several trials as one that is met if any of them is: a control in which every breakage must be noticed by itself."""

    def run(setting: Setting) -> Outcome:
        outcomes = [trial(_within(setting, str(number))) for number, trial in enumerate(trials)]
        return Outcome(
            met=any(outcome.met for outcome in outcomes),
            figure="; ".join(outcome.figure for outcome in outcomes),
        )

    return run


def _within(setting: Setting, name: str) -> Setting:
    folder = setting.folder / name
    folder.mkdir()
    return replace(setting, folder=folder)


def apart(work: Callable[..., Any], environment: Environment, **given: Any) -> Any:
    """What a function of a module gives in a process that runs the program under trial. All values are plain JSON."""
    name = f"{work.__module__}:{work.__name__}"
    ran = subprocess.run(
        [sys.executable, "-m", "torture.trial.program", name],
        input=json.dumps(given).encode(),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{name} ended with {ran.returncode}: {ran.stderr.decode()[-4000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def store_in(folder: Path, name: str = "hitherto") -> str:
    """The address of a store of SQLite in this folder."""
    return f"sqlite:///{folder / f'{name}.db'}"


if __name__ == "__main__":
    module, _, function = sys.argv[1].partition(":")
    told = getattr(importlib.import_module(module), function)(**json.load(sys.stdin))
    sys.stdout.write(f"\n{json.dumps(told)}\n")
