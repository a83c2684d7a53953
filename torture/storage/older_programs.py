"""Older programs run as servers beside newer ones on one store: each reads what the other acknowledged, or says that it is too old.

The older ones are this project's own, from its history: 0.1, one that knows no checksums, and the one before each step of a
schema since. Newer ones are copies of today's with one more step, which only adds or shuts others out.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from msgspec import convert, to_builtins

import hitherto
from bench.workloads.server_load import Server
from hitherto.errors import HithertoError
from hitherto.model import LOCAL, Filter, View
from hitherto.stores.sqlite.connection import fetch, open_file
from hitherto.stores.sqlite.store import file_of
from tests.mutants import ROOT
from tests.support.postgres_server import PostgresServer
from torture.clients.acknowledged import Client, Judged, Pages, clients, code_of, judged
from torture.clients.persistent import Connection, Writer, at_work
from torture.trial.needs import Need
from torture.trial.program import Environment, apart
from torture.trial.row import Outcome, Setting
from torture.trial.stores import FILES, Databases, StoreProvider

UNCHECKED = "dd965c3a22cdcb6a5783e434fd27776b5a049d96"
FIRST = "b1684df812d3ab0cf6a21f8bc852ca87b92e3993"
"""The program that knows no checksums, and 0.1."""
STEPS = "src/hitherto/stores/*/sql/*"
STEP = re.compile(r"src/(\w+)/stores/(\w+)/sql/(\d+)_(\w+)\.sql")
CLIENTS = 3
END_SECONDS = 60
OPTIONS = ("--port", "0", "--grace", "1", "--json")
TOO_OLD = "schema_too_new"
VIEWS: tuple[View, ...] = ("context", "conversation")
ADDS = {"sqlite": "CREATE TABLE tomorrow (x INTEGER);", "postgres": "CREATE TABLE tomorrow (x integer);"}
SHUTS_OUT = {
    "sqlite": "UPDATE store_meta SET value = CAST('{}' AS BLOB) WHERE name = 'oldest_writer';",
    "postgres": "SELECT shut_out_writers({});",
}


class Program(NamedTuple):
    """A program: its package, the environment to run it in, and for each kind of store the newest schema that it knows."""

    name: str
    package: str
    environment: Environment
    schemas: dict[str, int]
    looks: bool
    """Whether it looks who may write."""


class Found(NamedTuple):
    """What came of an older program beside a newer one."""

    name: str
    may_write: bool
    judged: Judged
    before: int
    """Acknowledged by the older one before the newer one had started,"""
    after: Counter[str]
    """and what it answered to what it was asked after that: `acknowledged`, or the code of an error."""
    starts: bool
    """Whether it starts once more."""
    strange: int = 0
    """Answers that must not be given."""

    @property
    def is_good(self) -> bool:
        """Whether it did what it may, and nothing is lost."""
        expected = (
            self.after.keys() <= {"acknowledged"} if self.may_write else "acknowledged" not in self.after
        )
        answered = self.after.total() > 0 and self.before > 0
        return (
            answered and expected and self.starts == self.may_write and self.judged.whole and not self.strange
        )

    def told(self) -> str:
        """In words."""
        answers = ", ".join(f"{count} {code}" for code, count in sorted(self.after.items()))
        return (
            f"{self.name}: {'may' if self.may_write else 'may not'} write; {self.before} before, then {answers};"
            f" {'starts' if self.starts else 'does not start'} again; {self.judged.told()}"
        )


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """SQLite, then PostgreSQL; in the short form SQLite alone, and without programs of the past."""
    found: list[Found] = []
    with ExitStack() as stack:
        kinds: list[tuple[str, StoreProvider]] = [("sqlite", FILES)]
        if not setting.short:
            kinds.append(("postgres", Databases(stack.enter_context(PostgresServer(fast=False)))))
        today = _today(environment)
        adds, shuts_out = (_tomorrow(setting.folder / name, today, name) for name in ("adds", "shuts_out"))
        older = [] if setting.short or environment else list(_past(setting.folder / "past", commits()))
        for kind, stores in kinds:
            for number, old in enumerate((*older, today)):
                newer = (today,) if old is not today else (shuts_out,) if environment else (adds, shuts_out)
                for new in newer:
                    folder = setting.folder / f"{kind}-{number}-{new.name}"
                    folder.mkdir(mode=0o700)
                    found.append(asyncio.run(_beside(setting, kind, stores.store(folder), folder, old, new)))
                    setting.say("\n".join((f"{kind}: {found[-1].told()}", *found[-1].judged.problems)))
            if environment:
                continue  # what is broken shows beside one that shuts out
            folder = setting.folder / f"{kind}-rolling"
            folder.mkdir(mode=0o700)
            found.append(asyncio.run(_replaced(setting, stores.store(folder), folder, today, adds)))
            setting.say(f"{kind}: {found[-1].told()}")
    total = sum((each.judged for each in found), Judged())
    refused = [each for each in found if not each.may_write]
    bad = [each for each in found if not each.is_good]
    late = sum(each.after["acknowledged"] for each in refused)
    figure = (
        f"{len(found)} pairs of programs, {len(refused)} of them with one that is too old: it acknowledged {late} messages"
        f" after the migration; {total.told()}; {len(bad)} pairs not as they must be"
    )
    return Outcome(
        met=not bad, figure=figure, counts={"acknowledged": total.acknowledged, "lost": total.lost + late}
    )


def run_beside_unchecked(setting: Setting, environment: Environment) -> Outcome:
    """The program that knows no checksums beside today's, on SQLite."""
    (old,), folder = _past(setting.folder / "past", [UNCHECKED]), setting.folder / "beside"
    folder.mkdir(mode=0o700)
    found = asyncio.run(_beside(setting, "sqlite", FILES.store(folder), folder, old, _today(environment)))
    return Outcome(met=found.is_good, figure=found.told())


def _today(environment: Environment) -> Program:
    source = Path(environment.get("PYTHONPATH", str(ROOT / "src")).partition(":")[0])
    return Program("today's", "hitherto", environment, _schemas(_files(source.parent)), looks=True)


def _tomorrow(folder: Path, today: Program, kind: str) -> Program:
    """Today's program with one more step."""
    source = Path(today.environment.get("PYTHONPATH", str(ROOT / "src")).partition(":")[0])
    shutil.copytree(source, folder / "src", ignore=shutil.ignore_patterns("*.pyc.*"))
    steps = {"adds": ADDS, "shuts_out": SHUTS_OUT}[kind]
    for store, statements in steps.items():
        number = today.schemas[store] + 1
        step = folder / "src/hitherto/stores" / store / "sql" / f"{number:04}_tomorrow.sql"
        step.write_text(statements.format(number), encoding="utf-8")
    return Program(kind, "hitherto", _environment(folder), _schemas(_files(folder)), looks=True)


def _past(folder: Path, commits: Sequence[str]) -> Iterator[Program]:
    """Programs of this project's history."""
    for commit in commits:
        place = folder / commit[:7]
        place.mkdir(parents=True)
        with tarfile.open(fileobj=BytesIO(_git("archive", commit, "src"))) as packed:
            packed.extractall(place, filter="data")
        files = _files(place)
        package = next(iter({found[1] for found in files}))
        looks = any(found[4] == "oldest_writer" for found in files)
        yield Program(commit[:7], package, _environment(place), _schemas(files), looks=looks)


def commits() -> list[str]:
    """The one that knows no checksums, 0.1, and the one before each step of a schema since, by age. A step may have come to one
    store after the other: a program between the two has half of it, and is none that anybody was given."""
    log = _git(
        "log", "--reverse", "--diff-filter=A", "--name-only", "--format=%H", f"{FIRST}..HEAD", "--", STEPS
    )
    before, known, commit = list[str](), set[str](), ""
    for line in log.decode().split():
        if step := STEP.search(line):
            if step[4] not in known:
                before.append(commit)
            known.add(step[4])
        else:
            commit = line
    parents = _git("rev-parse", *(f"{commit}^" for commit in dict.fromkeys(before)))
    return [UNCHECKED, FIRST, *parents.decode().split()]


@cache
def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def has_history() -> bool:
    """Whether this is a clone with everything since the first of those programs."""
    try:
        _git("cat-file", "-e", f"{UNCHECKED}^{{tree}}")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


HISTORY = Need("the project's history (a whole clone, and git)", has_history)


def _environment(folder: Path) -> Environment:
    return {"PYTHONPATH": f"{folder / 'src'}:{ROOT}"}


def _files(folder: Path) -> list[re.Match[str]]:
    names = (str(file.relative_to(folder)) for file in folder.glob("src/*/stores/*/sql/*.sql"))
    return [found for name in names if (found := STEP.fullmatch(name))]


def _schemas(files: Sequence[re.Match[str]]) -> dict[str, int]:
    kinds = {found[2] for found in files}
    return {kind: max(int(found[3]) for found in files if found[2] == kind) for kind in kinds}


@asynccontextmanager
async def _serving(program: Program, url: str, folder: Path) -> AsyncIterator[Server]:
    """A server of this program. `ChildProcessError` if it does not start."""
    process = await asyncio.to_thread(_process, program, url, folder)
    try:
        yield await asyncio.to_thread(_server, process)
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate, timeout=END_SECONDS)


def _process(program: Program, url: str, folder: Path) -> subprocess.Popen[bytes]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")}
    folder.mkdir(exist_ok=True)
    data = {"HITHERTO_DATA_DIR": str(folder), "RECOLLECT_DATA_DIR": str(folder)}
    return subprocess.Popen(
        (sys.executable, "-m", program.package, "serve", *OPTIONS, "--store", url),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**own, **data, **program.environment},
    )


def _server(process: subprocess.Popen[bytes]) -> Server:
    """The server, once it says where it is."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ChildProcessError(process.wait(END_SECONDS))
    told = json.loads(line)
    token = Path(told["token_file"]).read_text(encoding="ascii").strip()
    return Server(process, int(told["address"].rpartition(":")[2]), token)


class _Phase:
    """What clients of the older program are told, before and after the newer one has started."""

    def __init__(self) -> None:
        self.migrated = self.over = False
        self.after: Counter[str] = Counter()

    async def talk(self, client: Client) -> None:
        """Say one message after the other until it is over."""
        while not self.over:
            asked_after = self.migrated
            code = await client.say()
            if asked_after:
                self.after[code or "acknowledged"] += 1


async def _beside(setting: Setting, kind: str, url: str, folder: Path, old: Program, new: Program) -> Found:
    """An older program serves; a newer one starts under load; both are asked to write to the same sessions."""
    dice, phase = setting.dice(f"beside {old.name} {new.name}"), _Phase()
    count = setting.of(short=10, full=150)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(_serving(old, url, folder / "old"))
        asking = await stack.enter_async_context(clients(first, CLIENTS, dice))
        for client in asking:
            for _ in range(count):
                await client.say()
        async with asyncio.TaskGroup() as tasks:
            for client in asking:
                tasks.create_task(phase.talk(client))
            second = await stack.enter_async_context(_serving(new, url, folder / "new"))
            phase.migrated = True
            before = sum(len(client.pages.acknowledged) for client in asking)
            newer = [
                Client(await second.wire(), client.pages.session_id, f"new{client.name}", dice)
                for client in asking
            ]
            while phase.after.total() < count or min(map(_answers, newer)) < count:
                await asyncio.gather(*(client.say() for client in newer))
            phase.over = True
        refusals = await _deeds(asking[0], newer[0], setting.of(short=1, full=5))
    starts = await _starts(old, url, folder / "old")
    may_write = old.looks and old.schemas[kind] >= _oldest_writer(kind, url)
    strange = sum(len(client.pages.refused) for client in newer) + len(refusals[newer[0].name])
    if old.looks:
        strange += sum(refusal.code != TOO_OLD for client in asking for refusal in client.pages.refused)
        strange += sum(may_write or code != TOO_OLD for code in refusals[asking[0].name])
    pages = [client.pages for client in (*asking, *newer)]
    return Found(
        f"{old.name} beside {new.name}",
        may_write,
        await _judged(new, url, pages),
        before,
        phase.after,
        starts,
        strange,
    )


async def _deeds(old: Client, new: Client, rounds: int) -> dict[str, list[str]]:
    """Each changes what the other has written, in a session of its own; the codes of the errors that each got, by name."""
    refusals: dict[str, list[str]] = {old.name: [], new.name: []}

    async def do(client: Client, method: str, **given: Any) -> Any:
        answer = await client.ask(method, given)
        if code := code_of(answer):
            refusals[client.name].append(code)
        return answer.get("result")

    session = (await do(new, "session.create", title="Deeds"))["session_id"]
    for number in range(rounds):
        for one, other in ((new, old), (old, new)):
            said = [{"role": "user", "content": f"deed {number} of {one.name}, {each}"} for each in range(9)]
            await do(one, "session.append", session_id=session, messages=said)
            page = await do(new, "session.history", session_id=session)
            if page is None:
                return refusals  # it cannot be read any more: nothing else can be tried
            await do(other, "session.fork", session_id=session, message_id=page["messages"][-2]["message_id"])
            await do(
                other, "session.erase", session_id=session, message_id=page["messages"][-1]["message_id"]
            )
            await do(other, "sessions.patch", session_id=session, label=f"Deed {number} of {other.name}")
            await do(one, "session.compact", session_id=session)
    return refusals


def _answers(client: Client) -> int:
    return len(client.pages.acknowledged) + len(client.pages.refused)


async def _starts(program: Program, url: str, folder: Path) -> bool:
    try:
        async with _serving(program, url, folder):
            return True
    except ChildProcessError:
        return False


def judge(url: str, pages: list[dict[str, Any]]) -> tuple[Any, ...]:
    """What the program of this process finds in the store. Values are plain, as `apart` wants them."""
    try:
        asyncio.run(_read_all(url))
        return tuple(asyncio.run(judged(url, [convert(page, Pages) for page in pages])))
    except HithertoError as error:
        return tuple(Judged(problems=(f"{error.code}: {error.message}",)))


async def _read_all(url: str) -> None:
    """Raises a `HithertoError` if one of the sessions cannot be read."""
    async with hitherto.open(url) as sessions:
        async for session in sessions.catalog.every(LOCAL, Filter(archived="include")):
            for view in VIEWS:
                await sessions.history(LOCAL, session.id, view=view)


async def _judged(new: Program, url: str, pages: Sequence[Pages]) -> Judged:
    """What the newer program finds."""
    found = await asyncio.to_thread(apart, judge, new.environment, url=url, pages=to_builtins(pages))
    return Judged(*found)._replace(problems=tuple(found[-1]))


async def _replaced(setting: Setting, url: str, folder: Path, old: Program, new: Program) -> Found:
    """Two servers are replaced by newer ones, one after the other, under load; between, an older one starts again."""
    doors: list[Connection] = []
    count = setting.of(short=5, full=150)
    writers: list[Writer] = []

    async def replace(place: int, program: Program, stacks: list[AsyncExitStack]) -> None:
        await stacks[place].aclose()
        server = await stacks[place].enter_async_context(_serving(program, url, folder / f"place{place}"))
        doors[place] = Connection(server.port, server.token)

    async with AsyncExitStack() as whole:
        stacks = [await whole.enter_async_context(AsyncExitStack()) for _ in range(2)]
        for place, stack in enumerate(stacks):
            server = await stack.enter_async_context(_serving(old, url, folder / f"place{place}"))
            doors.append(Connection(server.port, server.token))
        writers += [Writer(doors, f"r{number}x", number) for number in range(2 * CLIENTS)]

        async def trial() -> None:
            await asyncio.gather(*(writer.more(count) for writer in writers))
            for place, program in ((0, new), (1, old), (1, new)):
                await replace(place, program, stacks)
                await asyncio.gather(*(writer.more(count) for writer in writers))

        await at_work(writers, trial)
    failures = sum((writer.client.failures for writer in writers), Counter[str]())
    after = Counter({code: number for code, number in failures.items() if code.islower()})
    after["acknowledged"] = sum(len(writer.pages.acknowledged) for writer in writers)
    found = await _judged(new, url, [writer.pages for writer in writers])
    return Found(f"{old.name} replaced by {new.name}", True, found, count, after, starts=True)


def _oldest_writer(kind: str, url: str) -> int:
    if kind == "sqlite":
        db = open_file(file_of(url))
        try:
            return int(fetch(db, "SELECT value FROM store_meta WHERE name = 'oldest_writer'")[0][0])
        finally:
            db.close()
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT value FROM store_meta WHERE name = 'oldest_writer'").fetchone()
        assert row is not None
        return int(row[0])
