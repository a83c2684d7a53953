"""`python -m torture`: tries the chosen rows and writes the scorecard."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from rich.console import Console

from torture import report, results
from torture.row import Outcome, Row, Setting, Trial
from torture.rows import GROUPS, ROWS

PAGE = Path("docs/scorecard.md")
SEED = 2026


def main(words: list[str]) -> int:
    """Try, show, write; 1 if a row was not met, could not be tried or did not count."""
    chosen = _arguments(words)
    console = Console(highlight=False, markup=False)
    good = True
    for key in chosen.only or ROWS:
        trial = tried(ROWS[key], chosen, console)
        good = good and trial is not None and trial.met and trial.counts
        if trial is not None and not chosen.short:
            recorded = results.record(key, trial)
            PAGE.write_text(report.page(GROUPS, recorded), encoding="utf-8")
    return 0 if good else 1


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(ROWS), metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--short", action="store_true", help="small sizes; prints only")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="where chance starts from (default %(default)s)"
    )
    parser.add_argument("--folder", type=Path, help="where temporary stores go (a real disk)")
    return parser.parse_args(words)


def tried(row: Row, chosen: argparse.Namespace, console: Console) -> results.Recorded | None:
    """The trial and its control; None if this machine does not allow the row."""
    lacking = [need.name for need in row.needs if not need.met()]
    if lacking:
        console.print(f"{row.key}  not tried here: needs {', '.join(lacking)}")
        return None
    began = time.monotonic()

    def once(trial: Trial) -> Outcome:
        with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="torture") as name:
            try:
                return trial(Setting(chosen.seed, chosen.short, Path(name), console.print))
            except Exception as error:  # noqa: BLE001  the rows that follow must still be tried
                console.print(traceback.format_exc())
                return Outcome(met=False, figure=f"broke off with {type(error).__name__}", broke_off=True)

    outcome, control = once(row.run), once(row.control)
    seconds = time.monotonic() - began
    console.print(f"{row.key}  {'met' if outcome.met else 'MISSED'}: {outcome.figure}  [{seconds:.0f} s]")
    remark = "" if control.is_failure else " (DOES NOT COUNT)"
    console.print(f"    control, {row.broken}: {control.figure}{remark}")
    return results.Recorded(
        figure=outcome.figure,
        met=outcome.met,
        control=control.figure,
        counts=control.is_failure,
        sums=dict(outcome.counts),
        seed=chosen.seed,
        commit=results.commit(),
        seconds=round(seconds, 1),
    )


if __name__ == "__main__":
    # Whoever ends it ends it as a user at the keyboard does: mounts, networks and servers of a trial go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
