"""Which session wrote a line: `hitherto blame` and `hitherto why` among very many edits of one repository."""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.harness.progress import Meter
from bench.harness.results import Part, Table, at_most, duration
from bench.harness.sizes import Sizes

LINES_OF_EDIT, EDITS_OF_SESSION, FILES = 10, 10, 500
BLAMED_EDITS, COMMITTED_EDITS = 200, 20
BLAME_LIMIT, WHY_LIMIT = 1.0, 0.5
SEED = 20
WORDS = [
    "price",
    "amount",
    "basket",
    "tariff",
    "country",
    "weight",
    "parcel",
    "invoice",
    "customer",
    "voucher",
    "refund",
    "stock",
    "shelf",
    "order",
]


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("origins", 2 * sizes.origin_rounds + 1)
    top, store = folder / "engine", f"sqlite:///{folder / 'origins.db'}"
    top.mkdir()
    asyncio.run(_fill(store, sizes.origin_sessions, top))
    meter.step()
    costs: dict[str, list[float]] = {"blame": [], "why": []}
    for _ in range(sizes.origin_rounds):
        for name, words in (("blame", ("blame", "src/blamed.py")), ("why", ("why", "HEAD"))):
            costs[name].append(_cpu(store, top, *words))
            meter.step()
    bare = median(_cpu(store, top, "--version") for _ in range(sizes.origin_rounds))
    blame, why = median(costs["blame"]), median(costs["why"])
    edits = sizes.origin_sessions * EDITS_OF_SESSION
    among = f"among {edits:,} edits of {sizes.origin_sessions:,} sessions"
    return Part(
        title="Which session wrote a line",
        method=(
            f"{sizes.origin_sessions:,} sessions in one repository, each with {EDITS_OF_SESSION} edits of {LINES_OF_EDIT} lines. The whole"
            " program is run, with the git that it runs: CPU of all of that together, the median of"
            f" {sizes.origin_rounds} runs; the start of the program alone takes {duration(bare)} of it."
        ),
        bars=[
            at_most(f"blame of 2,000 lines {among}: under 1 s of CPU", blame, BLAME_LIMIT, duration(blame)),
            at_most(f"why of a commit {among}: under 0.5 s of CPU", why, WHY_LIMIT, duration(why)),
        ],
        tables=[Table("One run.", ("", "CPU"), [["blame", duration(blame)], ["why", duration(why)]])],
    )


async def _fill(store: str, sessions: int, top: Path) -> None:
    """Edits of many sessions; some of what they wrote is in a file, and some in the last commit."""
    import hitherto
    from hitherto.model import LOCAL, Draft, Text, ToolCall

    chance = random.Random(SEED)
    written: list[list[str]] = []
    async with hitherto.open(store) as home:
        for number in range(sessions):
            session = await home.create(LOCAL, cwd=str(top))
            drafts = [Draft(role="user", parts=(Text(text=f"Do task {number}"),))]
            for edit in range(EDITS_OF_SESSION):
                lines = list(_lines(chance))
                written.append(lines)
                given = {
                    "file_path": str(top / f"src/part_{chance.randrange(FILES)}.py"),
                    "old_string": "",
                    "new_string": "\n".join(lines),
                }
                call = ToolCall(id=f"{number}-{edit}", name="Edit", input=given, kind="edit")
                drafts.append(Draft(role="assistant", parts=(call,)))
            await home.append(LOCAL, session.id, drafts)
    chosen = chance.sample(written, min(BLAMED_EDITS, len(written)))
    _commit(top, "src/blamed.py", chosen)
    _commit(top, "src/part_1.py", chosen[:COMMITTED_EDITS])


def _lines(chance: random.Random) -> Iterator[str]:
    for _ in range(LINES_OF_EDIT):
        one, two, three = chance.choices(WORDS, k=3)
        yield f"    {one}_{chance.randrange(10_000)} = {two}.lookup({three}_{chance.randrange(10_000)}, {one})"


def _commit(top: Path, path: str, pieces: list[list[str]]) -> None:
    (top / "src").mkdir(exist_ok=True)
    (top / path).write_text("".join(f"{line}\n" for lines in pieces for line in lines), encoding="utf-8")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "some of it")):
        subprocess.run(["git", *words], cwd=top, check=True)  # noqa: S607


def _cpu(store: str, top: Path, *words: str) -> float:
    """The CPU of a command and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    named = () if words == ("--version",) else ("-C", str(top), "--store", store, "--json")
    subprocess.run([sys.executable, "-m", "hitherto", *words, *named], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
