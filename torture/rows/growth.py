"""How costs grow with the store: a thousand times as many sessions, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.mutants import Change
from torture.load.growth import Grown, on_postgres, on_sqlite
from torture.load.store_growth import MESSAGES, SessionUsage
from torture.trial import charts
from torture.trial.program import Environment, changed, whole
from torture.trial.row import Outcome, Row, Setting

FOLDER = Path("docs/scorecard")
SIZES, SHORT_SIZES, CONTROL_SIZES = (1_000, 10_000, 100_000, 1_000_000), (200, 1_600), (1_000, 10_000)
MOST = 4.0
COUNTING = Change(
    "stores/sqlite/write_tx.py",
    "        checked = checked_columns(record)",
    '        fetch(self._db, "SELECT count(*), sum(length(payload)) FROM entry")\n'
    "        checked = checked_columns(record)",
)
PAGE = """\
# How costs grow

The cost of one use, at rising sizes of the store: CPU time of the program and of the database together, and pages of the
database that were looked at, in a cache or not. Every session has ten messages, one in a thousand has 500. This page is
written by `make torture`; do not edit it.

![CPU time of one use](growth.svg)
"""


def grow(setting: Setting) -> Outcome:
    """Both engines and, on the scorecard, the plot and the table."""
    return whole(_grow)(setting)


def _grow(setting: Setting, environment: Environment) -> Outcome:
    sizes = SHORT_SIZES if setting.short else SIZES
    grown = {"SQLite": on_sqlite(setting.folder, environment, sizes, setting.seed, few=setting.short)}
    if not setting.short:
        grown["PostgreSQL"] = on_postgres(environment, sizes, setting.seed, setting.say)
        publish(grown, FOLDER)
    return _judged(grown, by_pages=setting.short)


def _grow_briefly(setting: Setting, environment: Environment) -> Outcome:
    sizes = SHORT_SIZES if setting.short else CONTROL_SIZES
    grown = on_sqlite(setting.folder, environment, sizes, setting.seed, few=setting.short)
    return _judged({"SQLite": grown}, by_pages=setting.short)


def _judged(grown: Mapping[str, Grown], *, by_pages: bool) -> Outcome:
    """By CPU time; in the short form by pages, which no other program on the machine changes."""
    worst = {engine: _worst(found, by_pages=by_pages) for engine, found in grown.items()}
    first, last = min(next(iter(grown.values()))), max(next(iter(grown.values())))
    told = "; ".join(
        f"{engine}: at most {times:.1f} times ({name})" for engine, (times, name) in worst.items()
    )
    return Outcome(
        met=all(times <= MOST for times, _ in worst.values()),
        figure=(
            f"{last:,} sessions and {last * MESSAGES:,} messages beside {first:,} and {first * MESSAGES:,},"
            f" {'pages' if by_pages else 'CPU'} of each use: {told}"
        ),
    )


def _worst(grown: Grown, *, by_pages: bool) -> tuple[float, str]:
    first, last = grown[min(grown)], grown[max(grown)]
    return max((_cost(last[name], by_pages) / _cost(first[name], by_pages), name) for name in first)


def _cost(spent: SessionUsage, by_pages: bool) -> float:
    return spent.pages if by_pages else spent.cpu


def publish(grown: Mapping[str, Grown], folder: Path) -> None:
    """Write the plot and the table."""
    folder.mkdir(parents=True, exist_ok=True)
    panels = {
        engine: {name: {size: found[size][name].cpu * 1e3 for size in found} for name in found[min(found)]}
        for engine, found in grown.items()
    }
    plot = charts.grown(panels, "sessions, with ten messages each", "ms of CPU")
    (folder / "growth.svg").write_text(plot, encoding="utf-8")
    tables = [f"## {engine}\n\n{_table(found)}" for engine, found in grown.items()]
    (folder / "growth.md").write_text("\n".join([PAGE, *tables]), encoding="utf-8")


def _table(found: Grown) -> str:
    heads = [f"{size:,} sessions, {size * MESSAGES:,} messages" for size in found]
    lines = [f"| | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(found)]
    for name in found[min(found)]:
        cells = (f"{each[name].cpu * 1e3:.2f} ms, {each[name].pages:,.0f} pages" for each in found.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


R21 = Row(
    key="R21",
    promise="A thousand times as many sessions cost hardly more to use",
    target="1,000,000 sessions and 10,000,000 messages beside 1,000 and 10,000: at most 4 times the CPU for each use",
    how=(
        "A store is filled in bulk on SQLite and on PostgreSQL (there the rows are copied with other numbers, and"
        " the first such copy passes the check of the store). At each size a separate process appends to random"
        " sessions, lists pages, searches for a common word and for a word in twelve old messages, and reads the"
        " last page of a long transcript and the overview of a week. The CPU is that of the process and of"
        " PostgreSQL. The short form compares the database pages read, on SQLite. [The plot and the"
        " table](scorecard/growth.md)."
    ),
    run=grow,
    control=changed(_grow_briefly, COUNTING),
    broken="each append counts all messages (1,000 and 10,000 sessions, SQLite)",
)
