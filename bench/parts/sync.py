"""Sync with other agents' sessions: the first one beside parsing and indexing the same bytes, and one that finds nothing new
beside one `stat` for each session."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import resource
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import apsw
import msgspec

import hitherto
from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, times
from bench.harness.sizes import Sizes
from bench.workloads.transcripts import FILES, SMALL, Format
from hitherto.model import LOCAL, search_text
from hitherto.sources import Source
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync, find_all
from hitherto.values.words import MAX_CHARS

HALF = 0.5
NEAR = 3
ROUNDS = 5
SECOND = "a second sync parses nothing, of any agent"


def first(title: str) -> str:
    """The promise about the first sync of an agent."""
    return f"first sync, {title}: at least {HALF} of the speed of parsing the same bytes with msgspec and indexing the same text"


def near(title: str) -> str:
    """The promise about a sync that finds nothing new."""
    return f"a sync of unchanged sessions, {title}: within {NEAR} times the cost of one `stat` for each"


class SessionUsage(NamedTuple):
    """What something took: by the clock, and of the processors."""

    seconds: float
    cpu: float


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("sync", len(FILES) * (ROUNDS * 2 + 1) + len(SMALL))
    begun = [_First(each, sizes.sync_files, folder, meter) for each in FILES]
    found = [_unchanged(each, sizes.sync_unchanged, folder, meter) for each in SMALL]
    parsed = sum(each.parsed_again for each in begun) + sum(each.parsed for each in found)
    return Part(
        title="Sync",
        method=(
            f"First sync: {sizes.sync_files:,} transcripts of each agent, the sizes spread around 100 KB. Bare: every line parsed"
            " by msgspec without types, then the text of all entries put into a bare FTS5 table in one transaction. Ours: the"
            " first sync into an empty store, every session durable, its exact bytes packed and kept beside it, which has no"
            " counterpart in the bare run, until the search index is up to date; beyond 32 MB another process reads, and its"
            f" start is in the figure. The median of {ROUNDS} turns; a bar is by the clock. Unchanged:"
            f" {sizes.sync_unchanged:,} small sessions that were taken in before; the CPU of finding them and of seeing that"
            " nothing is new, beside that of `os.stat` for each of these files, in turns. Sessions in a database are measured"
            " against one `stat` for each of as many files in folders of fifty, though they are one file."
        ),
        bars=[
            *(each.bar() for each in begun),
            at_most(SECOND, parsed, 0, f"{parsed} files"),
            *(each.bar() for each in found),
        ],
        tables=[
            Table(
                "A first sync.",
                (
                    "",
                    "MB",
                    "entries",
                    "bare",
                    "CPU",
                    "`hitherto sync`",
                    "CPU",
                    "MB/s",
                    "CPU for each indexed MB",
                ),
                [each.row() for each in begun],
            ),
            Table(
                "A sync that finds nothing new: CPU for each session.",
                ("", "one `stat`", "sync", "/ `stat`"),
                [each.row(sizes.sync_unchanged) for each in found],
            ),
        ],
    )


class _First:
    """The first sync of an agent's transcripts, and what it is measured against, turn by turn."""

    def __init__(self, made: Format, count: int, folder: Path, meter: Meter) -> None:
        home = folder / f"first-{made.title}"
        made.grow(home, count)
        meter.step()
        source = made.source(home)
        self.title, self.parsed_again = made.title, 0
        files = [path for path in home.rglob("*.jsonl") if path.is_file()]
        texts = [search_text(entry) for each in source.find() for entry in source.read(each, None).entries]
        self.size, self.entries = sum(path.stat().st_size for path in files), len(texts)
        self.indexed = sum(min(len(text), MAX_CHARS) for text in texts)
        bare, ours = list[SessionUsage](), list[SessionUsage]()
        for _ in range(ROUNDS):
            bare.append(_bare(files, texts, folder / "bare.db"))
            meter.step()
            spent, again = asyncio.run(_synced(source, folder / "store"))
            ours.append(spent)
            self.parsed_again += again
            meter.step()
        self.bare, self.ours = _median(bare), _median(ours)
        shutil.rmtree(home)

    def bar(self) -> Bar:
        """Whether it was quick enough."""
        speed, cpu = self.bare.seconds / self.ours.seconds, self.bare.cpu / self.ours.cpu
        figure = f"{times(speed)} of it by the clock, {times(cpu)} by CPU"
        return at_least(first(self.title), speed, HALF, figure)

    def row(self) -> Sequence[str]:
        """All that was measured."""
        return (
            self.title,
            f"{self.size / 1e6:.0f}",
            f"{self.entries:,}",
            *map(duration, self.bare),
            *map(duration, self.ours),
            f"{self.size / 1e6 / self.ours.seconds:.0f}",
            duration(self.ours.cpu / (self.indexed / 1e6)),
        )


class _Unchanged(NamedTuple):
    """A sync that found nothing new: its CPU, that of one `stat` for each session, and how many files it has parsed."""

    title: str
    cpu: float
    stats: float
    parsed: int

    def bar(self) -> Bar:
        """Whether it was quick enough."""
        ratio = self.cpu / self.stats
        return at_most(near(self.title), ratio, NEAR, f"{times(ratio)} times")

    def row(self, count: int) -> Sequence[str]:
        """All that was measured, for each session."""
        return (
            self.title,
            duration(self.stats / count),
            duration(self.cpu / count),
            times(self.cpu / self.stats),
        )


def _median(spent: Sequence[SessionUsage]) -> SessionUsage:
    return SessionUsage(*map(statistics.median, zip(*spent, strict=True)))


def _now() -> SessionUsage:
    """By the clock, and of the processors: this process and those that it has begun and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return SessionUsage(time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used))


def _since(before: SessionUsage) -> SessionUsage:
    now = _now()
    return SessionUsage(now.seconds - before.seconds, now.cpu - before.cpu)


def _bare(files: Sequence[Path], texts: Sequence[str], place: Path) -> SessionUsage:
    began = _now()
    decode = msgspec.json.Decoder().decode
    for path in files:
        for line in path.read_bytes().split(b"\n"):
            if line:
                decode(line)
    db = apsw.Connection(str(place))
    db.execute("CREATE VIRTUAL TABLE doc USING fts5 (text, content = '')")
    db.execute("BEGIN")
    rows = ((text.encode("utf-8", "replace").decode(),) for text in texts)
    db.executemany("INSERT INTO doc (text) VALUES (?)", rows)
    db.execute("COMMIT")
    db.close()
    spent = _since(began)
    place.unlink()
    return spent


async def _synced(source: Source, place: Path) -> tuple[SessionUsage, int]:
    """What the first sync took, and how many files the second one has parsed."""
    ledger = Ledger(place / "ledger.db")
    async with hitherto.open(f"sqlite:///{place / 'store.db'}") as sessions:
        began = _now()
        report = await Sync(sessions, LOCAL, ledger).run([source], source.find())
        await sessions.search(LOCAL, "zzzznothing", limit=1)
        seconds = _since(began).seconds
        assert (report.new, report.failed) == (report.found, ())
        _end_readers()
        cpu = _since(began).cpu
        again = await Sync(sessions, LOCAL, ledger).run([source], source.find())
    ledger.close()
    shutil.rmtree(place)
    return SessionUsage(seconds, cpu), again.parsed_files


def _end_readers() -> None:
    """Processes that have read count when they have ended."""
    for process in multiprocessing.active_children():
        process.join()


def _unchanged(made: Format, count: int, folder: Path, meter: Meter) -> _Unchanged:
    home, files = folder / "unchanged", folder / "files"
    made.grow(home, count)
    source = made.source(home)
    paths = [str(path) for path in home.rglob("*.jsonl")]
    if len(paths) != count:  # they lie in a database
        next(each for each in SMALL if each.agent == "pi").grow(files, count)
        paths = [str(path) for path in files.rglob("*.jsonl")]
    cpu, stats, parsed = asyncio.run(_synced_again(source, paths, folder / "store"))
    shutil.rmtree(home)
    shutil.rmtree(files, ignore_errors=True)
    meter.step()
    return _Unchanged(made.title, cpu, stats, parsed)


async def _synced_again(source: Source, paths: Sequence[str], place: Path) -> tuple[float, float, int]:
    """The CPU of a sync that finds nothing new, that of one `stat` for each of these, and how many files were parsed."""
    ledger = Ledger(place / "ledger.db")
    spent, stats, parsed = list[float](), list[float](), 0
    async with hitherto.open(f"sqlite:///{place / 'store.db'}") as sessions:
        report = await Sync(sessions, LOCAL, ledger).run([source], source.find())
        assert (report.new, report.failed) == (len(paths), ())
        await sessions.search(LOCAL, "zzzznothing", limit=1)
        for _ in range(ROUNDS):
            stats.append(_looked_at(paths))
            began = _now()
            report = await Sync(sessions, LOCAL, ledger).run([source], find_all([source]))
            spent.append(_since(began).cpu)
            parsed += report.parsed_files
    ledger.close()
    shutil.rmtree(place)
    return statistics.median(spent), statistics.median(stats), parsed


def _looked_at(paths: Sequence[str]) -> float:
    """The CPU of one `stat` for each of these files."""
    began = _now()
    for path in paths:
        os.stat(path)
    return _since(began).cpu
