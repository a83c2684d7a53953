"""Many writer processes on one store of SQLite: nobody is turned away, no place of a log is left out or given twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import apsw

import hitherto
from hitherto.stores.sqlite.connection import fetch
from torture.clients import writer_processes
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

SLOW_MS = 100
"""What the 99th of a hundred appends may take with eight writers."""
PLACES = "SELECT pos >> 24, pos & 0xffffff, id FROM entry ORDER BY pos"


class Found(NamedTuple):
    """What came of a number of writers. `missing`: acknowledged and not there; `strange`: there and not acknowledged."""

    writers: int
    acknowledged: int
    errors: int
    gaps: int
    missing: int
    strange: int
    damage: int
    p99_ms: float

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong but perhaps the time."""
        return not (self.errors or self.gaps or self.missing or self.strange or self.damage)


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Eight writers, then 32."""
    found = [
        asyncio.run(_written(setting.folder, writers, appends, environment))
        for writers, appends in (((8, 10),) if setting.short else ((8, 1_000), (32, 250)))
    ]
    in_time = setting.short or found[0].p99_ms < SLOW_MS
    figure = "; ".join(
        f"{each.writers} writers: {each.acknowledged:,} appends acknowledged, {each.errors} turned away, "
        f"{each.gaps} gaps or places given twice, {each.missing + each.strange} missing or there twice, "
        f"p99 {each.p99_ms:.0f} ms"
        for each in found
    )
    counts = {
        "acknowledged": sum(each.acknowledged for each in found),
        "lost": sum(each.missing for each in found),
    }
    return Outcome(met=in_time and all(each.is_good for each in found), figure=figure, counts=counts)


async def _written(folder: Path, writers: int, appends: int, environment: Environment) -> Found:
    url = store_in(folder, f"writers-{writers}")
    await writer_processes.prepare(url, writers)
    with writer_processes.writing(folder, url, writers, environment, appends=appends) as at_work:
        notes = at_work.ended()
    file = folder / f"writers-{writers}.db"
    there, gaps = _places(file)
    told = Counter(each.entry for each in notes.acknowledged)
    async with hitherto.open(url) as sessions:
        problems = (await sessions.admin.check(repair=False)).problems
    times = sorted(each.micros for each in notes.acknowledged)
    return Found(
        writers=writers,
        acknowledged=len(times),
        errors=len(notes.errors),
        gaps=gaps,
        missing=(told - there).total(),
        strange=(there - told).total(),
        damage=len(problems),
        p99_ms=times[len(times) * 99 // 100] / 1000 if times else 0.0,
    )


def _places(file: Path) -> tuple[Counter[str], int]:
    """The entries of a store, and how many logs do not number theirs from one without a gap."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = fetch(db, PLACES)
    finally:
        db.close()
    logs: dict[int, list[int]] = {}
    for log, seq, _ in rows:
        logs.setdefault(log, []).append(seq)
    gaps = sum(seqs != list(range(1, len(seqs) + 1)) for seqs in logs.values())
    return Counter(entry for _, _, entry in rows), gaps
