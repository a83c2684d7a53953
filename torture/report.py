"""Writes the scorecard: every row with its figure, its target, how it was tried, its control, seed and commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torture.found import FOUND
from torture.results import Recorded
from torture.row import Row

HEAD = """\
# Scorecard

What Recollect promises under faults, load and attack, and what came of trying to break it. This page is written by
`make torture`; do not edit it.

Rows are tried on the real program: a row about a door through that door, with processes that are really killed, cut off
or starved; a row about a part of it (migrations, growth, agreement of the stores) on that part. Every row has a
**control**: the same trial, often a smaller one, of something that is broken on purpose. The control must come to its end
and fail; a trial whose control passes or breaks off does not count. A count of zero in *n* trials bounds the true rate
only to about 3/*n*, with a confidence of 95 %.
"""
REPEAT = """\
## How to repeat

```
make torture                           # every row that this machine allows; some need root and say so
make torture ARGS="--only R1"          # one row; the scorecard keeps the others as they were
make torture ARGS="--short"            # small sizes; prints only
make torture ARGS="--seed 7"           # another seed
```

The seed and the commit stand in each row: the same two repeat the same choices, though not the same timing.
`make test` runs the short form of every row that needs neither root nor long.
"""
NOT_TRIED = "not tried yet"
NO_REASON = "The reason is not known yet."


def page(rows: Mapping[str, Sequence[Row]], recorded: Mapping[str, Recorded]) -> str:
    """The whole page as Markdown."""
    everything = [row for group in rows.values() for row in group]
    blocks = [HEAD, _head_line(recorded), _missed(everything, recorded)]
    blocks += [f"## {title}\n\n{_table(group, recorded)}" for title, group in rows.items()]
    blocks += [_ways(everything), _found(), REPEAT]
    return "\n".join(block for block in blocks if block)


def verdict(row: Row, recorded: Mapping[str, Recorded]) -> str:
    """One word for a row, and the reason where it is needed."""
    trial = recorded.get(row.key)
    if trial is None:
        return f"**{NOT_TRIED}**"
    if not trial.counts:
        return "**does not count**: the control did not fail as it must"
    return "met" if trial.met else "**missed**"


def _head_line(recorded: Mapping[str, Recorded]) -> str:
    sums: dict[str, int] = {}
    for trial in (each for each in recorded.values() if each.counts):
        for name, count in trial.sums.items():
            sums[name] = sums.get(name, 0) + count
    parts = (
        ("faults", "faults injected"),
        ("inputs", "hostile inputs"),
        ("acknowledged", "acknowledged messages"),
        ("lost", "lost"),
        ("leaked", "leaked"),
    )
    return f"**{', '.join(f'{sums.get(name, 0):,} {words}' for name, words in parts)}.**\n"


def _table(rows: Sequence[Row], recorded: Mapping[str, Recorded]) -> str:
    lines = ["| row | promise | target | measured | control | seed, commit | |", "|" + " --- |" * 7]
    for row in rows:
        trial = recorded.get(row.key)
        measured, control, origin = (
            (trial.figure, f"{row.broken}: {trial.control}", f"{trial.seed}, `{trial.commit}`")
            if trial
            else ("", row.broken, "")
        )
        cells = (row.key, row.promise, row.target, measured, control, origin, verdict(row, recorded))
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _missed(rows: Sequence[Row], recorded: Mapping[str, Recorded]) -> str:
    """Why targets are missed; a row that was never tried whole has neither met nor missed its own."""
    lines = [
        f"- **{row.key}, {row.promise}** ({recorded[row.key].figure}). {row.missed or NO_REASON}"
        for row in rows
        if row.key in recorded and verdict(row, recorded) != "met"
    ]
    untried = [row.key for row in rows if row.key not in recorded]
    missed = "## Missed, and why\n\n" + "\n".join(lines) + "\n" if lines else ""
    return missed + (f"\nNot tried at full size yet: {', '.join(untried)}.\n" if untried else "")


def _ways(rows: Sequence[Row]) -> str:
    lines = [
        f"- **{row.key}**: {row.how}"
        + (f" Needs {', '.join(need.name for need in row.needs)}." if row.needs else "")
        for row in rows
    ]
    return "## How each row is measured\n\n" + "\n".join(lines) + "\n"


def _found() -> str:
    lines = [f"- {found.fault} **Now:** {found.mended} Held by `{found.test}`." for found in FOUND]
    return "## What this found, and what holds it now\n\n" + "\n".join(lines) + "\n" if lines else ""
