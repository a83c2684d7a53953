"""Tries the promises of the scorecard, each with a control that must fail, and writes the scorecard."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from torture.rows import GROUPS
from torture.trial import machine, needs, progress, report, results
from torture.trial.progress import Say, duration
from torture.trial.row import Outcome, Row, Setting, Trial

PAGE = Path("docs/scorecard.md")
SEED = 2026
INTERRUPTED = 130
Groups = Mapping[str, Sequence[Row]]
Recorded = Mapping[str, results.Recorded]


def main(words: Sequence[str], groups: Groups = GROUPS) -> int:
    """Try, show, write; 1 if a row was not met, could not be tried or did not count, 130 if somebody ended it."""
    rows = {row.key: row for group in groups.values() for row in group}
    recorded: Recorded = results.load()
    chosen = _arguments(words, rows, recorded)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if chosen.list:
        console.print(_listed(rows.values(), recorded), soft_wrap=False)
        console.print(_total(rows, recorded))
        return 0
    if chosen.page:
        _write(groups, recorded)
        console.print(report.headline(list(rows.values()), recorded))
        return 0
    good = True
    keys = chosen.only or list(rows)
    for number, key in enumerate(keys, 1):
        begins = f"{_expected(key, chosen, recorded)}, {number} of {len(keys)}"
        say = progress.spoken_by(key, console.print)
        try:
            trial = run_row(rows[key], chosen, say, begins)
            good = good and trial is not None and trial.met and trial.counts
            if trial is not None and not chosen.short:
                recorded = _record(key, trial, say)
                _write(groups, recorded)
        except KeyboardInterrupt:
            console.print(f"ended; nothing recorded for {key}")
            return INTERRUPTED
    return 0 if good else 1


def _arguments(words: Sequence[str], rows: Mapping[str, Row], recorded: Recorded) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m torture",
        description=__doc__,
        epilog=f"{_total(rows, recorded)} As root, a program that a row needs and that is lacking here is installed with"
        " apt-get; the package is named before. An interrupt (^C) ends it cleanly; rows recorded before it stay.",
    )
    parser.add_argument("--only", action="append", choices=list(rows), metavar="ROW", help=", ".join(rows))
    parser.add_argument("--short", action="store_true", help="small sizes; prints only")
    parser.add_argument(
        "--list", action="store_true", help="show the rows, what they need and take; try nothing"
    )
    parser.add_argument(
        "--page", action="store_true", help="write the scorecard again from what is recorded; try nothing"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="where chance starts from (default %(default)s)"
    )
    parser.add_argument("--folder", type=Path, help="where temporary stores go (a real disk)")
    return parser.parse_args(words)


def _expected(key: str, chosen: argparse.Namespace, recorded: Recorded) -> str:
    if chosen.short:
        return "short form"
    return f"about {duration(recorded[key].seconds)}" if key in recorded else "never timed"


def _total(rows: Mapping[str, Row], recorded: Recorded) -> str:
    known = [recorded[key].seconds for key in rows if key in recorded]
    return (
        f"At full size, the {len(known)} of {len(rows)} rows that are recorded took"
        f" {duration(sum(known))} together, one after another."
    )


def _listed(rows: Iterable[Row], recorded: Recorded) -> Table:
    table = Table("row", "promise", "needs", "took", box=None, pad_edge=False)
    for row in rows:
        took = duration(recorded[row.key].seconds) if row.key in recorded else "never timed"
        table.add_row(row.key, row.promise, _needed(row), took)
    return table


def _needed(row: Row) -> str:
    """What the row needs, and whether it is here; nothing is installed."""
    lacking = needs.lacking(row.needs)
    if lacking:
        return f"LACKING: {', '.join(lacking)}"
    return f"{', '.join(need.name for need in row.needs)}: here" if row.needs else ""


def run_row(row: Row, chosen: argparse.Namespace, say: Say, begins: str) -> results.Recorded | None:
    """The trial and its control; None if this machine does not allow the row."""
    lacking = needs.supplied(row.needs, say)
    if lacking:
        say(f"not tried here: needs {', '.join(lacking)}")
        return None
    say(f"begins ({begins})")
    commit, began = results.commit(), time.monotonic()
    with progress.ticking(say):
        outcome = _once(row.run, chosen, say)
        say(f"{'met' if outcome.met else 'MISSED'}: {outcome.figure}  [{duration(time.monotonic() - began)}]")
        say(f"control begins, broken on purpose: {row.broken}")
        control = _once(row.control, chosen, say)
        say(f"control: {control.figure}{'' if control.is_failure else ' (DOES NOT COUNT)'}")
    return results.Recorded(
        figure=outcome.figure,
        met=outcome.met,
        control=control.figure,
        counts=control.is_failure,
        sums=dict(outcome.counts),
        seed=chosen.seed,
        commit=results.measured(commit, results.commit()),
        seconds=round(time.monotonic() - began, 1),
        date=datetime.now(UTC).date().isoformat(),
        machine=machine.facts(chosen.folder or Path(tempfile.gettempdir())),
        missed=outcome.missed,
        # A trial that came to its end and was missed is told, whatever became of its control.
        broke_off=outcome.broke_off or (outcome.met and control.broke_off),
    )


def _once(trial: Trial, chosen: argparse.Namespace, say: Say) -> Outcome:
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="torture") as name:
        try:
            return trial(Setting(chosen.seed, chosen.short, Path(name), say))
        except Exception as error:  # noqa: BLE001  the rows that follow must still be tried
            say(traceback.format_exc())
            return Outcome(met=False, figure=f"broke off with {type(error).__name__}", broke_off=True)


def _record(key: str, trial: results.Recorded, say: Say) -> Recorded:
    recorded = results.record(key, trial)
    if recorded[key] is not trial:
        say(f"broke off and is not recorded: what was found at {recorded[key].commit} stays")
    return recorded


def _write(groups: Groups, recorded: Recorded) -> None:
    PAGE.write_text(report.page(groups, recorded), encoding="utf-8")


if __name__ == "__main__":
    # Whoever ends it ends it as a user at the keyboard does: mounts, networks and servers of a trial go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
