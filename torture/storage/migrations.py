"""Stores of every earlier version are brought to the newest, by a program that is killed at each statement of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import hitherto
from hitherto.errors import HithertoError
from tests.mutants import ROOT
from tests.support.postgres_server import PostgresServer
from torture.storage.versions import Columns, Content, Kind, Postgres, Sqlite, fill
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

NEW, FINISHED, TRIED = "new", "finished", "tried"
NEVER = NOTHING = 0
WHOLE_WAY = 1
"""Up to this version every statement on the way to the newest is tried."""


class Opener:
    """The process of `stepping`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def open(self, url: str, stop_at: int = NEVER) -> tuple[str, list[int]]:
        """What became of opening the store, and the numbers that belong to it; see `stepping`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{stop_at} {url}\n")
        self._process.stdin.flush()
        outcome, *numbers = self._process.stdout.readline().split()
        return outcome, list(map(int, numbers))


@contextmanager
def opening(environment: Environment) -> Iterator[Opener]:
    process = subprocess.Popen(
        [sys.executable, "-m", "torture.storage.statement_steps"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # a broken program says at length why it cannot open a store
        text=True,
    )
    try:
        yield Opener(process)
    finally:
        process.kill()
        process.communicate()


class Old(NamedTuple):
    """A store of an earlier version: where it is, what is in it, and what is to become of it."""

    place: str
    version: int
    rows: int
    finished_columns: Columns
    finished: Content
    statements: int
    first: int
    noted: int
    """The statements before which its first step, and its last, were noted as done."""


class Kept(NamedTuple):
    """How many kills there were in the opening of old stores, and in which ones something was wrong afterwards."""

    kills: int
    rows: int
    wrong: list[str]


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """SQLite, then PostgreSQL; in the short form SQLite alone."""
    with ExitStack() as stack:
        kinds: list[Kind] = [Sqlite(setting.folder)]
        if not setting.short:
            kinds.append(Postgres(stack.enter_context(PostgresServer(fast=False))))
        opener = stack.enter_context(opening(environment))
        # What is broken shows in the last two steps already: one alone may be a step that can be taken twice.
        steps = 2 if environment else 1 if setting.short else 0
        around = setting.short and not environment
        kept = [_kept(setting, kind, opener, steps=steps, around=around) for kind in kinds]
    wrong = [line for each in kept for line in each.wrong]
    for line in wrong[:10]:
        setting.say(line)
    kills = sum(each.kills for each in kept)
    figures = [
        f"{kind.name} to schema {kind.newest}: {each.kills} kills, {len(each.wrong)} stores not as they were "
        f"({each.rows:,} rows)"
        for kind, each in zip(kinds, kept, strict=True)
    ]
    return Outcome(met=not wrong, figure="; ".join(figures), counts={"faults": kills, "lost": len(wrong)})


def _kept(setting: Setting, kind: Kind, opener: Opener, *, steps: int, around: bool) -> Kept:
    """Kill the opening of stores that lack the last `steps` steps, or of any age for none; see `_points` for `around`."""
    kind.make(NEW, NOTHING, NEW)
    asyncio.run(fill(kind.url(NEW), setting.of(short=2, full=60), setting.of(short=2, full=20)))
    kills, rows, wrong = 0, 0, list[str]()
    for version in range(kind.newest - steps if steps else 0, kind.newest):
        try:
            old = _old(kind, version, opener)
        except HithertoError as error:
            wrong.append(f"{kind.name} {version}, without a kill: {error.message}")
            continue
        rows += old.rows
        points = _points(old, around=around)
        for stop_at in points:
            problem = _killed(kind, old, opener, stop_at)
            if problem is None:
                continue
            kills += 1
            if problem:
                wrong.append(f"{kind.name} {version}, statement {stop_at}: {problem}")
            if problem and setting.short:
                return Kept(kills, rows, wrong)
        if not setting.short:
            setting.say(f"{kind.name} {version}: killed {len(points)} times, {len(wrong)} wrong until now")
    return Kept(kills, rows, wrong)


def _points(old: Old, *, around: bool) -> Sequence[int]:
    """Where to kill, the last first: everywhere on the way of the two oldest (one is empty), and in the first step of every
    other, as their later steps are the first of younger ones; or only around the note that the last step was done."""
    if around:
        return range(old.noted - 1, old.noted + 1)
    return range(old.statements if old.version <= WHOLE_WAY else old.first, 0, -1)


def _old(kind: Kind, version: int, opener: Opener) -> Old:
    """Make a store of this version, and see what a program that is not killed makes of it."""
    place = f"old{version}"
    kind.make(place, version, NEW)
    columns = {table: names for table, names in kind.columns(place).items() if table not in kind.derived}
    content = kind.content(place, columns) if version else {}
    kind.copy(place, FINISHED)
    try:
        outcome, (statements, first, noted) = opener.open(kind.url(FINISHED))
        if outcome != "opened":
            raise HithertoError("it cannot be opened")
        finished_columns = kind.columns(FINISHED)
        finished = kind.content(FINISHED, finished_columns)
        if kind.content(FINISHED, columns) != content:
            raise HithertoError("what was in it has changed")
        asyncio.run(_examine(kind.url(FINISHED)))
    finally:
        kind.remove(FINISHED)
    rows = sum(count for count, _ in content.values())
    return Old(place, version, rows, finished_columns, finished, statements, first, noted)


def _killed(kind: Kind, old: Old, opener: Opener, stop_at: int) -> str | None:
    """Kill the opening of a copy at a statement, open it again, and say what is wrong then. None if it was open before: what is
    done behind an opening takes now more statements, now fewer."""
    kind.copy(old.place, TRIED)
    try:
        outcome, (child, *_) = opener.open(kind.url(TRIED), stop_at)
        if outcome == "opened" and stop_at > old.noted:
            return None
        if outcome != "stopped":
            return f"it {outcome} before it could be killed"
        # At every fourth statement the server of the database is killed first, while the transaction stands open.
        if isinstance(kind, Postgres) and stop_at % 4 == 0:
            kind.server.kill()
            kind.server.start()
        os.kill(child, signal.SIGKILL)
        return _after(kind, old, opener)
    finally:
        kind.remove(TRIED)


def _after(kind: Kind, old: Old, opener: Opener) -> str:
    outcome, _ = opener.open(kind.url(TRIED))
    if outcome != "opened":
        return "it cannot be opened again"
    if kind.columns(TRIED) != old.finished_columns:
        return "its tables are not those of the newest version"
    if kind.content(TRIED, old.finished_columns) != old.finished:
        return "it is not what it would have become"
    try:
        asyncio.run(_examine(kind.url(TRIED)))
    except HithertoError as error:
        return f"{error.code}: {error.message}"
    return ""


async def _examine(url: str) -> None:
    async with hitherto.open(url) as sessions:
        problems = (await sessions.admin.check(repair=False)).problems
    if problems:
        raise HithertoError(f"problems: {problems}")
