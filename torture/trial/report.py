"""Writes the scorecard: first a summary, then every row with all you need to judge and repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from torture.trial.findings import FOUND
from torture.trial.progress import duration
from torture.trial.results import Recorded
from torture.trial.row import Row

HEAD = """\
# Scorecard

What Hitherto promises under faults, load and attack, and the results of trying to break it. `make torture` writes this
page; do not edit it.
"""
AGAIN = """\
`make torture ARGS=--page` computes these sums again from the [recorded results](scorecard/results.json); `make torture`
measures everything again.
"""
READING = """\
## How to read it

- Where possible, a row tests the program through its public interfaces, with processes that are really killed, cut off or
  starved. Some rows test a part of it in a process of its own (migrations, growth, agreement of the stores), or run the
  server or the model from a test program. *How* in each row says what ran.
- Every row has a **control**: the same trial, often smaller, of a program that is broken on purpose. The control must
  finish and fail; a trial whose control passes or aborts does not count.
- Zero failures in *n* trials only mean that the true rate is below about 3/*n*, with a confidence of 95 %.
"""
REPEAT = """\
## How to repeat

```
make torture                           # every row that this machine can run; some need root and say so
make torture ARGS="--list"             # what each row promises, needs and took; runs nothing
make torture ARGS="--only R1"          # one row; the others keep their results
make torture ARGS="--short"            # small sizes; writes no page
make torture ARGS="--seed 7"           # another seed
```

Each row names its seed and commit: the same two repeat the same choices, but not the same timing. If you run it as root,
it installs programs that a row needs and the machine lacks, and names each one first.
"""
NO_REASON = "The reason is not known yet."
SUMS = (
    ("faults", "faults injected", "faults"),
    ("inputs", "hostile inputs", "inputs"),
    ("acknowledged", "acknowledged messages", "acknowledged"),
    ("lost", "lost", "lost"),
    ("leaked", "leaked", "leaked"),
)
"""A count of a trial, its name at the head of the page, and in a row."""


class Verdict(StrEnum):
    """What is known of a promise."""

    MET = "met"
    MISSED = "missed"
    VOID = "does not count"
    UNTRIED = "not run"


def page(groups: Mapping[str, Sequence[Row]], recorded: Mapping[str, Recorded]) -> str:
    """The whole page as Markdown."""
    rows = [row for group in groups.values() for row in group]
    blocks = [
        HEAD,
        _machine(recorded),
        headline(rows, recorded),
        AGAIN,
        _overview(rows, recorded),
        _missed(rows, recorded),
        READING + _commits(recorded),
    ]
    for title, group in groups.items():
        blocks += [f"## {title}\n", *(_details(row, recorded) for row in group)]
    blocks += [_found(), REPEAT, _short_forms(rows)]
    return "\n".join(block for block in blocks if block)


def verdict(row: Row, recorded: Mapping[str, Recorded]) -> Verdict:
    """Of the newest trial; without one, the promise is neither met nor missed."""
    trial = recorded.get(row.key)
    if trial is None:
        return Verdict.UNTRIED
    if trial.broke_off or not trial.counts:
        return Verdict.VOID
    return Verdict.MET if trial.met else Verdict.MISSED


def headline(rows: Sequence[Row], recorded: Mapping[str, Recorded]) -> str:
    """How many promises are kept, and what all trials that count come to."""
    kinds = Counter(verdict(row, recorded) for row in rows)
    summary = [f"{kinds[Verdict.MET]} of {len(rows)} rows met", f"{kinds[Verdict.MISSED]} missed"]
    summary += [f"{kinds[Verdict.VOID]} without a valid control"] if kinds[Verdict.VOID] else []
    summary += [f"{kinds[Verdict.UNTRIED]} not run"]
    sums: Counter[str] = Counter()
    for row in rows:
        if verdict(row, recorded) in (Verdict.MET, Verdict.MISSED):
            sums.update(recorded[row.key].sums)
    counted = ", ".join(f"{sums[name]:,} {words}" for name, words, _ in SUMS)
    return f"**{', '.join(summary)}.**\n\n**{counted}.**\n"


def _machine(recorded: Mapping[str, Recorded]) -> str:
    newest = _newest(recorded)
    if newest is None:
        return "The machine and the date of these trials were not recorded.\n"
    return f"{newest.machine}. The newest trial is from {newest.date}.\n"


def _newest(recorded: Mapping[str, Recorded]) -> Recorded | None:
    """The newest trial of those that say where they ran."""
    dated = [trial for trial in recorded.values() if trial.machine]
    return max(dated, key=lambda trial: trial.date, default=None)


def _commits(recorded: Mapping[str, Recorded]) -> str:
    commits = {trial.commit for trial in recorded.values()}
    if len(commits) < 2:
        return ""
    return (
        f"- A full run takes hours, so rows are run one by one: these come from {len(commits)} commits, and each row names its"
        " own. A `+` means that files differed from the commit.\n"
    )


def _overview(rows: Iterable[Row], recorded: Mapping[str, Recorded]) -> str:
    lines = ["| row | promise | | measured |", "| --- | --- | --- | --- |"]
    for row in rows:
        found = verdict(row, recorded)
        shown = str(found) if found is Verdict.MET else f"**{found}**"
        cells = (f"[{row.key}](#{row.key.lower()})", _sentence(row.promise), shown, _brief(row, recorded))
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _brief(row: Row, recorded: Mapping[str, Recorded]) -> str:
    """The counts of a row that is met, if it has any; else its figure."""
    trial = recorded.get(row.key)
    if trial is None:
        return ""
    counted = [f"{trial.sums[name]:,} {words}" for name, _, words in SUMS if name in trial.sums]
    return ", ".join(counted) if counted and verdict(row, recorded) is Verdict.MET else trial.figure


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _missed(rows: Sequence[Row], recorded: Mapping[str, Recorded]) -> str:
    """Why targets are missed; a row that was never tried whole has neither met nor missed its own."""
    lines = [
        f"- **{row.key}, {row.promise}** ({recorded[row.key].figure}). {_reason(row, recorded)}"
        for row in rows
        if verdict(row, recorded) in (Verdict.MISSED, Verdict.VOID)
    ]
    untried = [row.key for row in rows if verdict(row, recorded) is Verdict.UNTRIED]
    missed = "## Missed, and why\n\n" + "\n".join(lines) + "\n" if lines else ""
    return missed + (f"\nNot run at full size yet: {', '.join(untried)}.\n" if untried else "")


def _reason(row: Row, recorded: Mapping[str, Recorded]) -> str:
    trial = recorded[row.key]
    if not trial.counts:
        return f"It does not count: its control did not fail ({trial.control})."
    return "The trial aborted, so it shows nothing." if trial.broke_off else trial.missed or NO_REASON


def _details(row: Row, recorded: Mapping[str, Recorded]) -> str:
    """All that is known of one row, as a list."""
    trial = recorded.get(row.key)
    needed = f" Needs {', '.join(need.name for need in row.needs)}." if row.needs else ""
    lines = [
        f"### {row.key}\n",
        f"**{_sentence(row.promise)}:** {verdict(row, recorded)}.\n",
        f"- *Target*: {row.target}",
        f"- *Measured*: {trial.figure if trial else 'not at full size yet'}",
        f"- *How*: {row.how}{needed}",
        f"- *Control*: {row.broken}{f': {trial.control}' if trial else ''}",
    ]
    if trial:
        lines.append(f"- *Trial*: {_origin(trial, _newest(recorded))}")
    return "\n".join(lines) + "\n"


def _origin(trial: Recorded, newest: Recorded | None) -> str:
    parts = [f"seed {trial.seed}", f"commit `{trial.commit}`", duration(trial.seconds), trial.date]
    if newest and trial.machine != newest.machine:
        parts.append(f"on another machine: {trial.machine}" if trial.machine else "")
    return ", ".join(part for part in parts if part)


def _found() -> str:
    lines = [f"- {found.fault} **Fixed:** {found.mended} Test: `{found.test}`." for found in FOUND]
    return "## Defects this found\n\n" + "\n".join(lines) + "\n" if lines else ""


def _short_forms(rows: Sequence[Row]) -> str:
    """What `make test` holds of each row."""
    tried = [row.key for row in rows if row.in_tests]
    lines = [
        f"`make test` runs the short forms of {len(tried)} rows, and `make mutants` their controls, if the machine has what they need:"
        f" {', '.join(tried)}."
    ]
    held = [row for row in rows if not row.in_tests and row.short_forms]
    if held:
        lines.append("For the other rows, these tests are the short form:\n")
        lines += [f"- {row.key}: {', '.join(f'`{name}`' for name in row.short_forms)}" for row in held]
    bare = [row.key for row in rows if not row.in_tests and not row.short_forms]
    if bare:
        lines.append(f"\nWithout a short form in `make test`: {', '.join(bare)}.")
    return "\n".join(lines) + "\n"
