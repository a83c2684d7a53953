"""What it takes to import each library: the CPU of a fresh process that does nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.contenders import HITHERTO, PEERS, RAW
from bench.harness.progress import Meter
from bench.harness.results import Bar, Chart, Part, Table, at_most, duration, not_measured, times
from bench.harness.sizes import Sizes

LIMIT = 0.1
PROMISE = "`import hitherto`: under 0.1 s of CPU, the interpreter's own start included"
NOTHING = "pass"
STATEMENTS = {
    "Python alone": NOTHING,
    **{entrant.name: entrant.imports for entrant in (RAW, HITHERTO, *PEERS)},
    "Hitherto, a store opened": (
        "import asyncio, hitherto\n"
        "async def main():\n"
        "    async with hitherto.open('memory:'): pass\n"
        "asyncio.run(main())"
    ),
}


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("import", len(STATEMENTS) * (sizes.import_runs + 1))
    best: dict[str, float] = {}
    # One run before those that count: it leaves the compiled bytecode behind.
    for number in range(sizes.import_runs + 1):
        for name, statement in STATEMENTS.items():
            seconds = _cpu_seconds(statement, folder)
            if number and seconds is not None:
                best[name] = min(seconds, best.get(name, seconds))
            meter.step()
    return Part(
        title="Import",
        method=(
            f"User and system CPU of a fresh interpreter that runs the import and ends; the best of "
            f"{sizes.import_runs} runs, bytecode compiled before."
        ),
        bars=[_bar(best)],
        tables=[_table(best)],
        charts=[
            Chart(
                name="import",
                title="Importing the library",
                values="milliseconds of CPU, less is better",
                points={name: seconds * 1e3 for name, seconds in best.items()},
            )
        ],
    )


def _cpu_seconds(statement: str, folder: Path) -> float | None:
    """The CPU of a process that runs `statement`, or None if it failed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", statement],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return None if process.returncode else usage.ru_utime + usage.ru_stime


def _bar(best: dict[str, float]) -> Bar:
    if HITHERTO.name not in best:
        return not_measured(PROMISE, "the import failed")
    return at_most(PROMISE, best[HITHERTO.name], LIMIT, duration(best[HITHERTO.name]))


def _table(best: dict[str, float]) -> Table:
    ours = best.get(HITHERTO.name)
    rows = [
        [
            name,
            f"`{statement.splitlines()[0]}`",
            duration(best[name]),
            times(best[name] / ours) if ours else "",
        ]
        for name, statement in STATEMENTS.items()
        if name in best
    ]
    return Table("CPU of a fresh process.", ("", "statement", "CPU", "/ Hitherto"), rows)
