"""Backups of a store that is being written: each is a whole store, with all that was acknowledged before it began.

Each is put in the place of a store whose process was killed, with that one's log, its memory and its index beside it.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import hitherto
from hitherto.errors import HithertoError
from hitherto.limits import HISTORY_PAGE
from hitherto.model import LOCAL, decode_entry
from hitherto.service import Sessions
from tests.cli.shell import Shell
from tests.mutants import ROOT
from torture.clients import writer_processes
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

Said = dict[str, list[bytes]]
"""By session, every entry byte for byte."""
Files = Mapping[str, bytes]
STALE = ("", "-wal", "-shm", "-search")
"""What is left of a store that was killed: its file, its log, the memory of that, its index."""
IN_USE = """
import asyncio, os, signal, sys
import hitherto
from hitherto.model import LOCAL, Draft, Text

async def use(url):
    async with hitherto.open(url) as sessions:
        made = await sessions.create(LOCAL, title="killed")
        for number in range(400):
            await sessions.append(LOCAL, made.id, Draft(role="user", parts=(Text(text=f"message {number} " * 50),)))
        await sessions.search(LOCAL, "message")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(use(sys.argv[1]))
"""


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
    stale = _killed(setting.folder / "killed")
    verdicts = asyncio.run(_judged(shell, environment, stale, copies, sessions))
    wrong = [verdict.wrong for verdict in verdicts if verdict.wrong]
    for line in wrong:
        setting.say(line)
    most = len(copies[-1].acknowledged) if copies else 0
    lost = sum(verdict.lost for verdict in verdicts)
    figure = (
        f"{refused + len(wrong)} of {refused + len(copies)} backups bad, {lost} acknowledged messages lacking in them "
        f"({writers} writers at work, {most:,} messages before the last backup), each restored in place of a killed store with"
        f" {len(stale)} files"
    )
    met = not refused and not wrong and most > 0
    return Outcome(met=met, figure=figure, counts={"acknowledged": most, "lost": lost})


def _killed(folder: Path) -> Files:
    """The files of a store whose process was killed while it had it open, by what is added to the store's name."""
    folder.mkdir()
    ran = subprocess.run([sys.executable, "-c", IN_USE, store_in(folder)], cwd=ROOT, check=False, timeout=600)
    left = {file.name.removeprefix("hitherto.db"): file.read_bytes() for file in folder.iterdir()}
    if ran.returncode != -signal.SIGKILL or not all(left.get(suffix) for suffix in STALE):
        raise RuntimeError(f"the store was not left as a kill leaves it: {sorted(left)}")
    return left


async def _judged(
    shell: Shell, environment: Environment, stale: Files, copies: Sequence[Copy], names: Sequence[str]
) -> list[Verdict]:
    async with hitherto.open(shell.url) as sessions:
        whole = {name: await _said(sessions, name) for name in names}
    ids = {name: [decode_entry(raw).id for raw in said] for name, said in whole.items()}
    place = shell.folder / "restored"
    verdicts = []
    for copy in copies:
        file = place / "hitherto.db"
        _leave(place, stale)
        done = shell.run("restore-backup", str(copy.file), "--store", str(file), env=environment)
        verdicts.append(
            Verdict(f"{copy.file.name}: not restored: {done.err}", len(copy.acknowledged))
            if done.code
            else await _verdict(file, copy, whole, ids)
        )
    return verdicts


async def _verdict(file: Path, copy: Copy, whole: Said, ids: dict[str, list[str]]) -> Verdict:
    """Compare what the program finds in a restored backup with what became of the store that it is of."""
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


def _leave(place: Path, stale: Files) -> None:
    """Nothing but a store that was killed."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for suffix, content in stale.items():
        (place / f"hitherto.db{suffix}").write_bytes(content)


async def _said(sessions: Sessions, name: str) -> list[bytes]:
    """All entries of a session."""
    said: list[bytes] = []
    after: str | None = None
    while True:
        page = await sessions.history(LOCAL, name, after=after, limit=HISTORY_PAGE)
        said += page.raw
        if (after := page.next) is None:
            return said
