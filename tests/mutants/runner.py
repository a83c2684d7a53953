"""Puts a breakage into a copy of the sources and runs the test that guards against it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutants.definitions import Change, Mutant
from tests.support.paths import ROOT
from tests.support.waits import LIMIT

PACKAGE = Path("src/hitherto")
COPIED = ("src", "tests", "torture", "supply", "pyproject.toml")
NOTICED = "noticed"


def verdicts(copy: Path, chosen: Sequence[Mutant]) -> dict[str, str]:
    """What became of each breakage in a copy of the sources; nothing if the tests fail without any."""
    copy_sources(copy)
    tell(f"{len(chosen)} breakages; first the tests on sources that are whole …")
    whole = _run(copy, sorted({mutant.test for mutant in chosen}))
    if whole.returncode != 0:
        tell(f"{whole.stdout}\nthe tests fail without any breakage")
        return dict.fromkeys((mutant.name for mutant in chosen), "NOT TRIED")
    return {mutant.name: _try(copy, mutant) for mutant in chosen}


def copy_sources(copy: Path, names: Iterable[str] = COPIED, left_out: str = "__pycache__") -> None:
    """Copy these parts of the project into a folder, to be broken there, but for names like `left_out`."""
    copy.mkdir(parents=True, exist_ok=True)
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns(left_out))
        else:
            shutil.copy(source, copy / name)


def _try(copy: Path, mutant: Mutant) -> str:
    """Break the copy, run the test, mend the copy."""
    began = time.monotonic()
    verdict = _judged(_run(copy, [mutant.test])) if apply_changes(copy, mutant.changes) else "NOT APPLIED"
    for change in mutant.changes:
        shutil.copy(ROOT / PACKAGE / change.file, copy / PACKAGE / change.file)
    tell(f"{verdict:11}  {mutant.name:52} {time.monotonic() - began:5.1f} s  {mutant.test}")
    return verdict


def apply_changes(copy: Path, changes: Iterable[Change]) -> bool:
    """Make the changes in a copy; whether all of them could be made."""
    for change in changes:
        file = copy / PACKAGE / change.file
        text = file.read_text(encoding="utf-8")
        if change.old not in text:
            return False
        file.write_text(text.replace(change.old, change.new), encoding="utf-8")
    return True


def _judged(ran: subprocess.CompletedProcess[str]) -> str:
    """pytest's exit code 1 means that a test failed; any other but 0 is no verdict about the test."""
    return {0: "SURVIVED", 1: NOTICED}.get(ran.returncode, "NOT RUN")


def _run(copy: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy on the sources of the copy."""
    # No bytecode: a file that changes twice within a second could be taken for the one before.
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=10 * LIMIT
    )


def tell(line: str) -> None:
    """Say a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
