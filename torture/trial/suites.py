"""Rows that the test suite holds already: they run its tests by name, and break the code to see them fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import mutants
from torture.trial.row import Outcome, Setting, Trial

PATIENCE = 7200
PASSED = re.compile(r"(\d+) passed")


def passing(
    *names: str,
    figure: str,
    sums: Mapping[str, int] | None = None,
    given: Mapping[str, str] | None = None,
) -> Trial:
    """A trial that is met if all tests of these names pass; `{passed}` in `figure` becomes their number.

    `given` is what the tests find in their environment.
    """

    def run(setting: Setting) -> Outcome:
        ran = run_tests(names, {"TORTURE_SEED": str(setting.seed), **(given or {})})
        count = passed(ran)
        if ran.returncode != 0:
            setting.say(ran.stdout[-4000:])
            return Outcome(met=False, figure=f"{count} tests passed, others failed")
        return Outcome(met=True, figure=figure.format(passed=f"{count:,}"), counts=sums or {})

    return run


def run_tests(
    names: Sequence[str], environment: Mapping[str, str], folder: Path = mutants.ROOT
) -> subprocess.CompletedProcess[str]:
    """Run tests of the project in this folder."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def finding(*faults: mutants.Mutant, given: Mapping[str, str] | None = None) -> Trial:
    """The control of such a row: its test, in the test suite's size or that of `given` variables, on sources with one of the
    faults; it must find each."""

    def run(setting: Setting) -> Outcome:
        found = sum(_noticed(setting, fault, given or {}) for fault in faults)
        return Outcome(met=found < len(faults), figure=f"{found} of {len(faults)} planted faults found")

    return run


def _noticed(setting: Setting, fault: mutants.Mutant, given: Mapping[str, str]) -> bool:
    copy = setting.folder / fault.name
    mutants.copy_sources(copy)
    if not mutants.apply_changes(copy, fault.changes):
        raise LookupError(f"not in the sources any more: {fault.name}")
    environment = {"PYTHONPATH": f"{copy / 'src'}:{copy}", "TORTURE_SEED": str(setting.seed), **given}
    ran = run_tests([fault.test], environment, copy)
    setting.say(f"{fault.name}: {ran.stdout.splitlines()[-1]}")
    return ran.returncode == 1


def passed(ran: subprocess.CompletedProcess[str]) -> int:
    """How many tests passed."""
    found = PASSED.search(ran.stdout)
    return int(found[1]) if found else 0


def breakages(*names: str) -> Trial:
    """The control of such a row: these mutants, each of which its test must notice (so the trial is never met)."""

    def run(setting: Setting) -> Outcome:
        chosen = [mutant for mutant in mutants.MUTANTS if mutant.name in names]
        if len(chosen) != len(names):
            raise LookupError(f"no such mutants: {set(names) - {mutant.name for mutant in chosen}}")
        with tempfile.TemporaryDirectory(dir=setting.folder) as folder:
            verdicts = mutants.verdicts(Path(folder), chosen)
        noticed = [name for name, verdict in verdicts.items() if verdict == mutants.NOTICED]
        return Outcome(
            met=len(noticed) < len(names), figure=f"{len(noticed)} of {len(names)} breakages noticed"
        )

    return run
