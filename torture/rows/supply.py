"""The supply chain, and the tests of the tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from pathlib import Path

from tests import mutants
from torture.trial.row import Outcome, Row, Setting
from torture.trial.suites import run_tests

LEAST = 25
HARMLESS = mutants.Mutant(
    "nothing-broken",
    (mutants.Change("errors.py", '"""', '"""'),),
    "tests/values/test_keys.py::test_a_key_is_read_back_from_its_spelling",
)
"""A change that changes nothing: whoever notices it would notice anything."""
TESTS = "tests/project/test_supply.py"
KNOWN_FAULTS = re.compile(r"Found \d+ known vulnerabilit")
BILL_WRITTEN = "wrote docs/sbom.json"
NO_LIST = (
    "The audit asks a public list of known faults over the network, which the machine of this trial does not reach;"
    " the rest of the target is met."
)


class Audit(StrEnum):
    """What is known of faults in the packages, as the scorecard says it."""

    CLEAN = "no known fault in what is pinned"
    FAULTY = "KNOWN FAULTS in what is pinned"
    UNREACHED = "known faults could not be looked up here"
    BROKEN = "the bill of materials could NOT be written"


def _held(folder: Path) -> bool:
    """Whether the tests of the supply chain pass on the project in this folder."""
    return run_tests([TESTS], {}, folder).returncode == 0


def _supply(setting: Setting) -> Outcome:
    """Pins, reasons and the bill of materials by the tests; bandit's rules by ruff; known faults by `make audit`."""
    held = _held(mutants.ROOT)
    rules = [sys.executable, "-m", "ruff", "check", "--select", "S", "src"]
    clean = subprocess.run(rules, cwd=mutants.ROOT, capture_output=True, check=False).returncode == 0
    ran = subprocess.run(["make", "audit"], cwd=mutants.ROOT, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        setting.say(ran.stderr[-1000:])
    return judged(held=held, clean=clean, audit=_audit(ran))


def _audit(ran: subprocess.CompletedProcess[str]) -> Audit:
    """What `make audit` came to; it tells of the bill of materials before it asks for known faults."""
    if ran.returncode == 0:
        return Audit.CLEAN
    if KNOWN_FAULTS.search(ran.stdout + ran.stderr):
        return Audit.FAULTY
    return Audit.UNREACHED if BILL_WRITTEN in ran.stdout else Audit.BROKEN


def judged(*, held: bool, clean: bool, audit: Audit) -> Outcome:
    """The outcome in words; a reason only where the look-up of known faults is all that is lacking."""
    alone = held and clean and audit is Audit.UNREACHED
    return Outcome(
        met=held and clean and audit is Audit.CLEAN,
        figure=f"{'all pinned, hashed and listed' if held else 'NOT all pinned, hashed and listed'}; {audit};"
        f" bandit's rules {'kept' if clean else 'NOT kept'}",
        missed=NO_LIST if alone else "",
    )


def _unpinned(setting: Setting) -> Outcome:
    """The same tests where one package has lost its digests."""
    copy = setting.folder / "copy"
    mutants.copy_sources(copy, ("src", "tests", "supply", "docs", "Makefile"))
    for file in mutants.ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, copy)
    if not _held(copy):
        raise RuntimeError("the tests fail in a copy that is whole")
    pinned = copy / "requirements.txt"
    lines = pinned.read_text(encoding="utf-8").splitlines()
    last = next(number for number, line in enumerate(lines) if number and "--hash" not in line)
    pinned.write_text("\n".join([lines[0].rstrip(" \\"), *lines[last:]]), encoding="utf-8")
    held = _held(copy)
    return Outcome(met=held, figure="the tests passed" if held else "the tests failed")


def _planted(setting: Setting) -> Outcome:
    chosen = mutants.MUTANTS[:: len(mutants.MUTANTS) if setting.short else 1]
    return _noticed(chosen, setting)


def _nothing_planted(setting: Setting) -> Outcome:
    return _noticed((HARMLESS,), setting)


def _noticed(chosen: tuple[mutants.Mutant, ...], setting: Setting) -> Outcome:
    with tempfile.TemporaryDirectory(dir=setting.folder) as folder:
        verdicts = mutants.verdicts(Path(folder), chosen)
    noticed = [each for each in chosen if verdicts[each.name] == mutants.NOTICED]
    doors = {door for each in noticed for door in each.doors}
    enough = setting.short or (len(chosen) >= LEAST and len(doors) == len(mutants.DOORS))
    return Outcome(
        met=len(noticed) == len(chosen) and enough,
        figure=f"{len(noticed)} of {len(chosen)} breakages noticed, at {len(doors)} of {len(mutants.DOORS)} doors",
    )


ROWS = (
    Row(
        key="S12",
        promise="Every installed package is pinned, listed and without a known vulnerability",
        target="every package hashed, listed and with a reason; no known fault; SQLite 3.51.3 or newer; bandit 0",
        how=(
            "`tests/project/test_supply.py`, then the rules of bandit (ruff's `--select S`) over the program, then"
            " `make audit` over every requirement file, which counts a package that it cannot look up as a failure."
        ),
        run=_supply,
        control=_unpinned,
        broken="a pin without a hash",
        in_tests=False,
        short_forms=(TESTS,),
    ),
    Row(
        key="S13",
        promise="The tests notice when the program is broken",
        target=f"at least {LEAST} planted faults through all {len(mutants.DOORS)} doors, each noticed by a named test",
        how="`make mutants`: each fault is put into a copy of the sources, and its test must fail there. A door is a part of"
        f" the program: {', '.join(mutants.DOORS)}.",
        run=_planted,
        control=_nothing_planted,
        broken="a fault without effect",
        in_tests=False,
        short_forms=("tests/project/test_mutants.py",),
    ),
)
