"""The program under trial: whole, or broken as a mutant says; and work that is done on it in a process of its own."""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
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
"""Seconds: a process that does and says nothing for so long is stuck."""


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
    """What a function of a module gives in a process that runs the program under trial. All values are plain JSON.

    It may take as long as it likes while it says now and then that it is at work, by `at_work`.
    """
    name = f"{work.__module__}:{work.__name__}"
    with tempfile.TemporaryFile() as given_file, tempfile.TemporaryFile() as errors:
        given_file.write(json.dumps(given).encode())
        given_file.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "torture.trial.program", name],
            stdin=given_file,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        try:
            said = _said_by(process, name)
            status = process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
        if status != 0:
            errors.seek(0)
            raise RuntimeError(f"{name} ended with {status}: {errors.read().decode()[-4000:]}")
    return json.loads(said.splitlines()[-1])


def _said_by(process: subprocess.Popen[bytes], name: str) -> bytes:
    """All that it writes, until it ends."""
    assert process.stdout is not None
    said = bytearray()
    with process.stdout as out:
        while select.select([out], [], [], PATIENCE)[0]:
            if not (more := os.read(out.fileno(), 1 << 16)):
                return bytes(said)
            said += more
    raise RuntimeError(f"{name} has said nothing for {PATIENCE} seconds")


def at_work() -> None:
    """In a process that was started by `apart`: say that something was done."""
    sys.stdout.write(".")
    sys.stdout.flush()


def store_in(folder: Path, name: str = "hitherto") -> str:
    """The address of a store of SQLite in this folder."""
    return f"sqlite:///{folder / f'{name}.db'}"


if __name__ == "__main__":
    module, _, function = sys.argv[1].partition(":")
    told = getattr(importlib.import_module(module), function)(**json.load(sys.stdin))
    sys.stdout.write(f"\n{json.dumps(told)}\n")
