"""Beside agentsview, with the same transcripts of Claude Code: the first sync, by whole processes; a page of the list and a
search, by their servers. In turns."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path

from bench.contenders.agentsview import Agentsview, Hitherto, Program, Spent
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, times
from bench.harness.sizes import Sizes
from bench.workloads.transcripts import Grow, claude, claude_edits, claude_outputs

ROUNDS = 3
CALLS = 50
WORD = "parser"
TREES: dict[str, Grow] = {
    "many transcripts": claude,
    "few transcripts with large tool results": claude_outputs,
    "transcripts that only edit": claude_edits,
}
FASTER = 1.5
SMALLER = 0.7


def faster(title: str) -> str:
    """The promise about the speed."""
    return f"first sync of {title}: at least {FASTER} times the speed of agentsview, by the clock"


def smaller(title: str) -> str:
    """The promise about the space."""
    return f"first sync of {title}: at most {SMALLER} of the bytes read are kept on the disk, index and raw copies included"


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("agentsview", len(TREES) * (ROUNDS * 2 + 1))
    counts: dict[Grow, int] = {claude: sizes.sync_files}
    found = [
        _Tree(title, grow, counts.get(grow, sizes.sync_large), folder, meter) for title, grow in TREES.items()
    ]
    return Part(
        title="Sync beside agentsview",
        method=(
            "The first sync of the same transcripts of Claude Code by whole processes that take turns, each with an empty folder of"
            " its own: `agentsview sync` without its daemon, and `hitherto sync` followed by a search, after which the index is up"
            f" to date. The median of {ROUNDS} rounds, by the clock; CPU is of all processes. Hitherto keeps the exact bytes of"
            " every file beside its session, which agentsview does not. Then each serves what it keeps: a page of 50 sessions (ours"
            f" with their number) and a search, in slices of {CALLS} requests; CPU is that of the server's process."
        ),
        bars=[bar for tree in found for bar in tree.bars()],
        tables=[
            Table(
                "A first sync.",
                (
                    "",
                    "MB",
                    "agentsview",
                    "CPU",
                    "kept, MB",
                    "`hitherto sync`",
                    "CPU",
                    "kept, MB",
                    "CPU for each MB",
                    "speed",
                ),
                [tree.row() for tree in found],
            ),
            Table(
                f"A request to their servers after the sync of {found[0].title}, over one connection.",
                ("", "agentsview", "CPU", "`hitherto serve`", "CPU"),
                found[0].answers(),
            ),
        ],
    )


class _Tree:
    """Transcripts, and what it took either program to read them."""

    def __init__(self, title: str, grow: Grow, count: int, folder: Path, meter: Meter) -> None:
        self.title = title
        home = folder / "home"
        grow(home / ".claude", count)
        meter.step()
        self.read = sum(path.stat().st_size for path in home.rglob("*.jsonl"))
        spent: dict[type[Program], list[Spent]] = {Agentsview: [], Hitherto: []}
        self.kept: dict[type[Program], int] = {}
        for _ in range(ROUNDS):
            for kind in (Agentsview, Hitherto):
                program = kind(home, folder / kind.__name__)
                shutil.rmtree(program.data, ignore_errors=True)
                program.data.mkdir()
                spent[kind].append(program.sync())
                self.kept[kind] = program.size()
                meter.step()
        self.spent = {kind: _median(each) for kind, each in spent.items()}
        theirs, ours = Agentsview(home, folder / "Agentsview"), Hitherto(home, folder / "Hitherto")
        self.asked = _asked(theirs, ours)
        for path in (home, theirs.data, ours.data):
            shutil.rmtree(path)

    def bars(self) -> list[Bar]:
        """Whether it was quick and small enough."""
        speed, share = self._speed(), self.kept[Hitherto] / self.read
        return [
            at_least(faster(self.title), speed, FASTER, f"{times(speed)} times"),
            at_most(smaller(self.title), share, SMALLER, f"{times(share)} of them"),
        ]

    def row(self) -> Sequence[str]:
        """All that was measured."""
        ours = self.spent[Hitherto]
        return (
            self.title,
            _megabytes(self.read),
            *map(duration, self.spent[Agentsview]),
            _megabytes(self.kept[Agentsview]),
            *map(duration, ours),
            _megabytes(self.kept[Hitherto]),
            duration(ours.cpu / (self.read / 1e6)),
            times(self._speed()),
        )

    def answers(self) -> list[Sequence[str]]:
        """What requests took either server."""
        return [(name, *map(duration, (*theirs, *ours))) for name, (theirs, ours) in self.asked.items()]

    def _speed(self) -> float:
        return self.spent[Agentsview].seconds / self.spent[Hitherto].seconds


def _asked(theirs: Agentsview, ours: Hitherto) -> dict[str, tuple[Spent, Spent]]:
    """What each request takes, of theirs and of ours."""
    with theirs.served() as one, ours.served() as other:
        pairs = zip(theirs.questions(WORD).items(), ours.questions(WORD).values(), strict=True)
        found: dict[str, tuple[Spent, Spent]] = {}
        for (name, to_theirs), to_ours in pairs:
            rounds = [(one.cost(to_theirs, CALLS), other.cost(to_ours, CALLS)) for _ in range(ROUNDS + 1)]
            found[name] = tuple(map(_median, zip(*rounds[1:], strict=True)))  # type: ignore[assignment]
        return found


def _median(spent: Sequence[Spent]) -> Spent:
    return Spent(*map(statistics.median, zip(*spent, strict=True)))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f}"
