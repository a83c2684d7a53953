"""Backups of a store that is being written: each is a whole store, with all that was acknowledged before it began."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import hitherto
from hitherto.errors import HithertoError
from hitherto.limits import HISTORY_PAGE
from hitherto.model import LOCAL, decode_entry
from hitherto.service import Sessions
from tests.cli.shell import Shell
from torture.clients import writer_processes
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

Said = dict[str, list[bytes]]
"""By session, every entry byte for byte."""


class Copy(NamedTuple):
    """A backup, and what was acknowledged before the command for it was given."""

    file: Path
    acknowledged: frozenset[str]


class Verdict(NamedTuple):
    """What is wrong with a restored backup, in words, and how many of the acknowledged messages it lacks."""

    wrong: str
    lost: int = 0


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Backups by the command, one after the other, while processes append; then each is restored and read."""
    shell, writers = Shell(setting.folder), setting.of(short=2, full=4)
    asyncio.run(writer_processes.prepare(shell.url, writers))
    copies: list[Copy] = []
    refused = 0
    # In the short form nothing is folded from the log into the file meanwhile: a copy of the file alone lacks all of it.
    rest = setting.of(short=50, full=10) / 1000
    with writer_processes.writing(setting.folder, shell.url, writers, environment, rest=rest) as at_work:
        for number in range(setting.of(short=2, full=100)):
            before = frozenset(each.entry for each in at_work.notes().acknowledged)
            target = setting.folder / f"backup-{number}.db"
            done = shell.run("backup", str(target), env=environment)
            refused += done.code != 0
            if done.code == 0:
                copies.append(Copy(target, before))
    sessions = (writer_processes.COMMON, *map(writer_processes.own, range(writers)))
    verdicts = asyncio.run(_judged(setting.folder, shell.url, copies, sessions))
    wrong = [verdict.wrong for verdict in verdicts if verdict.wrong]
    for line in wrong:
        setting.say(line)
    most = len(copies[-1].acknowledged) if copies else 0
    lost = sum(verdict.lost for verdict in verdicts)
    figure = (
        f"{refused + len(wrong)} of {refused + len(copies)} backups bad, {lost} acknowledged messages lacking in them "
        f"({writers} writers at work, {most:,} messages before the last backup)"
    )
    met = not refused and not wrong and most > 0
    return Outcome(met=met, figure=figure, counts={"acknowledged": most, "lost": lost})


async def _judged(folder: Path, url: str, copies: Sequence[Copy], names: Sequence[str]) -> list[Verdict]:
    async with hitherto.open(url) as sessions:
        whole = {name: await _said(sessions, name) for name in names}
    ids = {name: [decode_entry(raw).id for raw in said] for name, said in whole.items()}
    return [await _verdict(folder / "restored", copy, whole, ids) for copy in copies]


async def _verdict(place: Path, copy: Copy, whole: Said, ids: dict[str, list[str]]) -> Verdict:
    """Put a backup in the place of a store, and compare what the program finds there with what became of the first."""
    file = _restored(place, copy)
    try:
        async with hitherto.open(f"sqlite:///{file}") as sessions:
            problems = (await sessions.admin.check(repair=False)).problems
            said = {name: await _said(sessions, name) for name in whole}
    except HithertoError as error:
        return Verdict(f"{copy.file.name}: {error.code}: {error.message}", len(copy.acknowledged))
    kept = {entry for name, entries in said.items() for entry in ids[name][: len(entries)]}
    lost = len(copy.acknowledged - kept)
    altered = [name for name, entries in said.items() if entries != whole[name][: len(entries)]]
    if problems or lost or altered:
        return Verdict(f"{copy.file.name}: {lost} lost; altered: {altered}; {problems}", lost)
    return Verdict("")


def _restored(place: Path, copy: Copy) -> Path:
    """A backup in the place of a store, with nothing beside it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return copy.file.rename(place / "hitherto.db")


async def _said(sessions: Sessions, name: str) -> list[bytes]:
    """All entries of a session."""
    said: list[bytes] = []
    after: str | None = None
    while True:
        page = await sessions.history(LOCAL, name, after=after, limit=HISTORY_PAGE)
        said += page.raw
        if (after := page.next) is None:
            return said
