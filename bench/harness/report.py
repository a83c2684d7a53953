"""Writes the results as a page with tables, and its charts as files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.harness.charts import draw
from bench.harness.reasons import REASONS
from bench.harness.results import Bar, Chart, Part, Table

HEAD = """\
# Benchmarks

Hitherto compared with the session stores that people use today, and with the limit that the database itself sets.
`make bench` writes this page; do not edit it.

**Read the ratios, not the times.** Every contender is a live process with its own database and its own defaults. In each
round each of them does one slice of work, in random order, while the others wait; a figure is the median of its slices.
So all of them ran under the same conditions and can be compared. The absolute times belong to one small, noisy machine
and will differ on yours. CPU is that of the contender's process, all threads together.
"""
UNEXPLAINED = "Not explained yet."
VERDICTS = {True: "met", False: "**missed**", None: "no limit set"}
TRIAL = "\n> This was a trial with small sizes: it only shows that everything runs.\n"
REPEAT = """\
## How to repeat

```
make bench                        # everything; writes this page and its charts
make bench ARGS="--quick"         # small sizes, prints only
make bench ARGS="--only append"   # one part, prints only
```

The peers are installed, pinned and hashed, into an environment of their own. All databases are in a temporary folder that
is removed afterwards; `--folder` puts it on another disk. A folder in memory makes every durable write look free.
"""


def page(
    parts: Sequence[Part],
    facts: Iterable[tuple[str, str]],
    versions: Iterable[tuple[str, str]],
    *,
    trial: bool,
) -> str:
    """The whole page as Markdown."""
    bars = [bar for part in parts for bar in part.bars]
    blocks = [
        HEAD + (TRIAL if trial else ""),
        f"## The bar\n\n{_bars(bars)}" if bars else "",
        missed(bars),
        *(_part(part) for part in parts),
        f"## The machine\n\n{_pairs(facts)}",
        f"## Versions\n\n{_pairs(versions)}",
        REPEAT,
    ]
    return "\n".join(block for block in blocks if block)


def missed(bars: Iterable[Bar]) -> str:
    """The promises that were missed, each with its reason."""
    rows = [
        f"- **{bar.promise}** ({bar.figure}). {REASONS.get(bar.promise, UNEXPLAINED)}"
        for bar in bars
        if bar.met is False
    ]
    return "## Missed, and why\n\n" + "\n".join(rows) + "\n" if rows else ""


def write(file: Path, text: str, charts: Iterable[Chart]) -> None:
    """Write the page to `file`, and its charts into the folder of the same name beside it."""
    folder = file.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for chart in charts:
        draw(chart, folder / f"{chart.name}.svg")
    file.write_text(text, encoding="utf-8")


def _part(part: Part) -> str:
    charts = "".join(f"\n![{chart.title}](benchmarks/{chart.name}.svg)\n" for chart in part.charts)
    tables = "".join(f"\n{table.caption}\n\n{_table(table)}" for table in part.tables)
    return f"## {part.title}\n\n{part.method}\n{tables}{charts}"


def _bars(bars: Iterable[Bar]) -> str:
    rows = [[bar.promise, bar.figure, VERDICTS[bar.met]] for bar in bars]
    return _table(Table("", ("promise", "measured", ""), rows))


def _table(table: Table) -> str:
    width = len(table.columns)
    lines = [table.columns, ["---"] * width, *([*row, *[""] * (width - len(row))] for row in table.rows)]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- {name}: {value}\n" for name, value in pairs)
