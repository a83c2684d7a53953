"""Transcripts with planted faults, mended by the program: a new session without them each, with all that was whole."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import hitherto
from hitherto.errors import HithertoError
from hitherto.model import LOCAL
from hitherto.sources.mend.doctor import TranscriptDoctor
from hitherto.sources.sync.ledger import Ledger
from tests.claude.transcripts import session_id
from tests.sources.damage import WRITTEN
from tests.sources.mend.planted import FAULTS, TALKS, Fault, entries_in, said, texts_of, whole_texts
from torture.trial.program import Environment, apart, at_work, store_in
from torture.trial.row import Outcome, Setting

HOMES = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}
FORMATS = {"claude": "claude", "codex": "codex-legacy"}


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """So many files of every kind of fault, all mended in one process."""
    files = setting.of(short=1, full=100)
    folder = setting.folder / "agents"
    folder.mkdir()
    told = {**environment, **{name: str(folder / agent) for agent, name in HOMES.items()}}
    done = apart(mend_all, told, folder=str(folder), files=files, seed=setting.seed)
    for line in done["wrong"][:20]:
        setting.say(line)
    kinds = sum(map(len, FAULTS.values()))
    figure = (
        f"{kinds} kinds of faults in transcripts of {len(FAULTS)} agents, {files} files each: of {done['files']:,} files "
        f"{len(done['wrong'])} not mended, or not with all that was whole; {done['changed']} files changed"
    )
    met = not done["wrong"] and not done["changed"] and done["files"] == kinds * files
    return Outcome(met=met, figure=figure, counts={"inputs": done["files"], "lost": len(done["wrong"])})


def mend_all(folder: str, files: int, seed: int) -> dict[str, Any]:
    """In the process of the program under trial: what went wrong, and how many files were changed."""
    return asyncio.run(_mend_all(Path(folder), files, seed))


async def _mend_all(folder: Path, files: int, seed: int) -> dict[str, Any]:
    wrong, count, changed = list[str](), 0, 0
    async with hitherto.open(store_in(folder)) as sessions:
        for agent, faults in FAULTS.items():
            # A folder of its own for each kind: the doctor looks through all that an agent has.
            for fault in faults:
                home = folder / f"{agent}-{fault.name}"
                os.environ[HOMES[agent]] = str(home)
                ledger = Ledger(folder / f"{agent}-{fault.name}.db")
                doctor = TranscriptDoctor(sessions, LOCAL)
                for number in range(1, files + 1):
                    dice = random.Random(f"{seed}:{agent}:{fault.name}:{number}")
                    name = session_id(count + 1)
                    data = fault.plant(TALKS[agent](dice, name), dice)
                    path = WRITTEN[FORMATS[agent]].save(home, count + 1, data)
                    before = hashlib.sha256(data).digest()
                    wrong += [
                        f"{agent} {fault.name} {number}: {each}"
                        async for each in _faults_of(doctor, ledger, f"{agent}:{name}", fault, data)
                    ]
                    changed += _digest(path) != before
                    count += 1
                    at_work()
                ledger.close()
    return {"wrong": wrong, "files": count, "changed": changed}


async def _faults_of(
    doctor: TranscriptDoctor, ledger: Ledger, name: str, fault: Fault, data: bytes
) -> AsyncIterator[str]:
    """What is wrong with the mended session."""
    agent = name.partition(":")[0]
    try:
        done = await doctor.repair(name, ledger)
    except HithertoError as error:
        yield f"refused: {error}"
        return
    # A record that was torn in its last bracket has a whole one inside.
    expected = {fault.found, "spliced_lines"} if fault.loses else {fault.found}
    if expected.isdisjoint(each.kind for each in done.findings) or done.mended_path is None:
        yield f"found only {[each.kind for each in done.findings]}"
        return
    if left := said(whole_texts(agent, data)) - _words(agent, Path(done.mended_path)):
        yield f"lost {sorted(left)[:3]}"
    if (again := await doctor.examine(done.mended or "")).findings:
        yield f"still has {[each.kind for each in again.findings]}"


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _words(agent: str, path: Path) -> set[str]:
    """What a transcript says, and the files beside it."""
    beside = {each.name: each.read_bytes() for each in path.with_suffix("").rglob("*") if each.is_file()}
    return said(entries_in(agent, path.read_bytes())) | texts_of(beside)
