"""Nobody but SQLite opens a file of SQLite that is in use: not in the test suite, and not while a store is torn at."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import hitherto
from hitherto.errors import HithertoError
from tests.cli.shell import Shell
from tests.mutants import ROOT
from torture.clients import writer_processes
from torture.kills.outcome import entries_of
from torture.trial import suites
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

FOLDER = Path(__file__).parent / "hooks"
SECONDS = 60
WHOLE_SUITE = ("tests", "--ignore=tests/torture", "-n", "2")
FEW = (
    "tests/stores/test_sqlite.py::test_a_backup_under_load_is_a_whole_store",
    "tests/stores/test_sqlite.py::test_doctor_replaces_a_damaged_index",
)
OPENERS = (
    ("list",),
    ("doctor", "--no-repair"),
    ("search", "xx"),
    ("stats",),
    ("show", writer_processes.COMMON),
)


class Tested(NamedTuple):
    """How many tests passed, and whether all did: one that fails may have opened less than it would."""

    passed: int
    all: bool


class Torn(NamedTuple):
    """What became of a store that others kept opening and closing."""

    openers: int
    """Commands that opened it and did what they are for."""
    acknowledged: int
    lost: int
    wrong: str


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """The tests with every process watched, then a store under load that commands open and close all the time."""
    notes = setting.folder / "opens"
    watched = _watched(environment, notes)
    # What is broken shows in a few tests already; the short form is one of the tests itself and runs no others.
    tests = (
        Tested(0, True) if setting.short else _tested(setting, watched, FEW if environment else WHOLE_SUITE)
    )
    torn = _torn(setting, watched, _watched({}, notes))
    seen = Counter(line.split(" ")[0] for line in notes.read_text().splitlines())
    for line, count in Counter(notes.read_text().splitlines()).items():
        if line.startswith("stray"):
            setting.say(f"{count} × {line}")
    if torn.wrong:
        setting.say(torn.wrong)
    figure = (
        f"{seen['stray']} stray opens by the program in {tests.passed:,} tests{'' if tests.all else ' (OTHERS FAILED)'}, "
        f"{seen['watching']:,} processes watched; "
        f"{torn.openers} commands on a store under load, {torn.acknowledged:,} messages acknowledged: {torn.lost} lost, "
        f"{torn.wrong or 'integrity ok'}"
    )
    met = tests.all and not seen["stray"] and not torn.lost and not torn.wrong
    return Outcome(met=met, figure=figure, counts={"acknowledged": torn.acknowledged, "lost": torn.lost})


def _watched(environment: Environment, notes: Path) -> Environment:
    """The same for processes that are watched."""
    sources = environment.get("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    return {**environment, "TORTURE_OPENS": str(notes), "PYTHONPATH": f"{FOLDER}:{sources}"}


def _tested(setting: Setting, environment: Environment, tests: tuple[str, ...]) -> Tested:
    ran = suites.run_tests(tests, environment)
    found = Tested(suites.passed(ran), ran.returncode == 0)
    if not found.all:
        setting.say(ran.stdout[-2000:])
    return found


def _torn(setting: Setting, environment: Environment, commands: Environment) -> Torn:
    """Processes of the program under trial append, while commands of the whole one open and close the store."""
    folder = setting.folder / "torn"
    folder.mkdir()
    shell = Shell(folder)
    asyncio.run(writer_processes.prepare(shell.url, 2))
    with (
        writer_processes.writing(folder, shell.url, 2, environment) as at_work,
        ThreadPoolExecutor(2) as pool,
    ):
        codes = Counter[int]()
        for each in pool.map(lambda first: _open_often(setting, shell, first, commands), range(2)):
            codes += each
        notes = at_work.notes()
    wrong, there = asyncio.run(_found(shell.url))
    lost = len({each.entry for each in notes.acknowledged} - there)
    failed = codes.total() - codes[0]
    errors = f"{len(notes.errors)} appends and {failed} commands failed" if notes.errors or failed else ""
    return Torn(codes[0], len(notes.acknowledged), lost, wrong or errors)


def _open_often(setting: Setting, shell: Shell, first: int, environment: Environment) -> Counter[int]:
    """Run commands, each of which opens and closes the store; returns how many ended with which code."""
    until = time.monotonic() + SECONDS
    codes = Counter[int]()
    for command in islice(cycle(OPENERS), first, None):
        codes[shell.run(*command, env=environment).code] += 1
        if setting.short or time.monotonic() > until:
            break
    return codes


async def _found(url: str) -> tuple[str, set[str]]:
    """What is wrong with a store, and the ids of its entries."""
    there: set[str] = set()
    try:
        async with hitherto.open(url) as sessions:
            for name in (writer_processes.COMMON, writer_processes.own(0), writer_processes.own(1)):
                there |= {entry.id async for entry in entries_of(sessions, name)}
            problems = (await sessions.admin.check(repair=False)).problems
    except HithertoError as error:
        return f"{error.code}: {error.message}", there
    return "; ".join(problems), there
