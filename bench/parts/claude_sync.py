"""The first sync of Claude Code's transcripts, beside parsing the same bytes and building a bare index of the same text."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import time
from pathlib import Path

import apsw
import msgspec

import recollect
from bench.meter import Meter
from bench.results import Part, Table, at_least, at_most, duration, times
from bench.sizes import Sizes
from recollect.model import LOCAL, search_text
from recollect.sources import claude
from recollect.sources.claude_source import ClaudeSource
from recollect.sources.ledger import Ledger
from recollect.sources.syncing import Report, Sync
from tests.claude.trees import grow

HALF = 0.5
FIRST = (
    "first sync: at least 0.5 of the speed of parsing the same bytes with msgspec and indexing the same text"
)
SECOND = "a second sync parses nothing"
ROUNDS = 5


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    config = folder / "sync"
    meter.begin("Claude Code: sync", ROUNDS * 2)
    files = list(grow(config / "projects", sizes.sync_files))
    size = sum(path.stat().st_size for path in files)
    texts = [_texts(path) for path in files]
    bare: list[float] = []
    ours: list[float] = []
    parsed_again = 0
    for number in range(ROUNDS):
        bare.append(_bare(files, texts, folder / f"bare-{number}.db"))
        meter.step()
        spent, again = asyncio.run(_synced(config, folder / f"store-{number}"))
        ours.append(spent)
        parsed_again += again.parsed_files
        meter.step()
    low, high = statistics.median(bare), statistics.median(ours)
    return Part(
        title="Claude Code: sync",
        method=(
            f"{len(files):,} transcripts, {size / 1e6:.0f} MB, a tenth of it conversation. Bare: every line parsed by msgspec"
            " without types, then the text of all entries put into a bare FTS5 table in one transaction. Ours: the first sync"
            " into an empty store, every session durable, its exact bytes kept beside it (compressed, which is a fifth of the"
            " cost and has no counterpart in the bare run), until the search index is up to date. CPU of all"
            f" threads, the median of {ROUNDS} turns."
        ),
        bars=[
            at_least(
                FIRST,
                low / high,
                HALF,
                f"{times(low / high)} of it ({duration(high)} against {duration(low)})",
            ),
            at_most(SECOND, parsed_again, 0, f"{parsed_again} files"),
        ],
        tables=[
            Table(
                "CPU of a first sync.",
                ("", "CPU", "MB/s"),
                [
                    ["parse and index, bare", duration(low), f"{size / 1e6 / low:.0f}"],
                    ["`recollect sync`", duration(high), f"{size / 1e6 / high:.0f}"],
                ],
            )
        ],
    )


def _texts(path: Path) -> list[str]:
    parsed = claude.parse(path.read_bytes())
    return [search_text(entry) for entry in parsed.entries]


def _bare(files: list[Path], texts: list[list[str]], place: Path) -> float:
    began = time.process_time()
    decode = msgspec.json.Decoder().decode
    for path in files:
        for line in path.read_bytes().split(b"\n"):
            if line:
                decode(line)
    db = apsw.Connection(str(place))
    db.execute("CREATE VIRTUAL TABLE doc USING fts5 (text, content = '')")
    db.execute("BEGIN")
    rows = ((text,) for of_file in texts for text in of_file)
    db.executemany(
        "INSERT INTO doc (text) VALUES (?)", ((text[0].encode("utf-8", "replace").decode(),) for text in rows)
    )
    db.execute("COMMIT")
    db.close()
    return time.process_time() - began


async def _synced(config: Path, place: Path) -> tuple[float, Report]:
    ledger, source = Ledger(place / "ledger.db"), ClaudeSource(config)
    async with recollect.open(f"sqlite:///{place / 'store.db'}") as sessions:
        began = time.process_time()
        first = await Sync(sessions, LOCAL, ledger).run([source], source.find())
        await sessions.search(LOCAL, "zzzznothing", limit=1)
        spent = time.process_time() - began
        assert (first.new, first.failed) == (first.found, ())
        again = await Sync(sessions, LOCAL, ledger).run([source], source.find())
    ledger.close()
    shutil.rmtree(place)
    return spent, again
