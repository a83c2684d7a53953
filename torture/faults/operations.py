"""The main operations of the program, each at most once by its key, on a small store that has something for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import hitherto
from hitherto.errors import StoreDamaged
from hitherto.model import Draft, Entry, Fact, Filter, Principal, Text
from hitherto.ports import Mode
from hitherto.service import Imported, Policy, Sessions
from hitherto.service.compaction.episodes import remember_episodes
from hitherto.service.idempotency import Guard
from tests.support.conversations import exported, hits, listed, say
from tests.support.homes import Clock, counting
from tests.support.outcomes import plain

ANN, BOB = Principal(owner="ann"), Principal(owner="bob")
TALK, FORK, GONE, SYNCED = "talk", "fork", "gone", "claude:1"
ENTRIES = [f"e{number}" for number in range(1, 9)]
CHECKPOINT = next(counting())
"""The first id that is made in the store: that of the state before a compaction."""
WORDS = "the quick brown fox jumps over the lazy dog"
LONG = [f"{WORDS} {number} " * 40 for number in range(12)]
LEASE_MS = 30_000
FIRST_ID = 1_000
"""What an operation makes has ids from here on, however often it is tried."""

Do = Callable[[Sessions], Awaitable[Any]]


class Ids:
    """Where new ids come from: the same again after `again`."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._ids: Iterator[str] = counting(start)

    def __call__(self) -> str:
        return next(self._ids)

    def again(self) -> None:
        """Begin anew, for another try of the same operation."""
        self._ids = counting(self._start)


class Operation(NamedTuple):
    """Something to do to the sessions of a store; what it answers is plain values."""

    name: str
    do: Do


@asynccontextmanager
async def opened(url: str, ids: Ids, mode: Mode = "make") -> Any:
    """The store with a clock that stands still."""
    async with hitherto.open(url, now=Clock(), new_id=ids, mode=mode) as sessions:
        yield sessions


async def prepare(url: str) -> None:
    """Put into a new store what the operations need."""
    async with opened(url, Ids(1)) as sessions:
        await sessions.create(ANN, session_id=TALK, title="a talk", cwd="/a", tags=["t1"])
        await sessions.append(ANN, TALK, [_draft(entry) for entry in ENTRIES[:6]])
        await sessions.compact(ANN, TALK, say("what was said", "system", id="sum"), keep=2)
        await sessions.append(ANN, TALK, [_draft(entry) for entry in ENTRIES[6:]])
        await sessions.fork(ANN, TALK, new_id=FORK)
        await sessions.create(ANN, session_id=GONE, title="to be deleted")
        await sessions.append(ANN, GONE, [say(text) for text in LONG])
        await sessions.delete(ANN, GONE)
        await sessions.create(ANN, session_id="old", title="to be pruned")
        await sessions.append(ANN, "old", say("old", at=1))
        await sessions.create(BOB, session_id=TALK)
        await sessions.append(BOB, TALK, say("of another owner"))
        await sessions.memory.add(ANN, [Fact(id="f1", at=1, text="ann likes foxes", session=TALK)])
        await sessions.leases.acquire(ANN, FORK, "holder", ttl_ms=LEASE_MS)
        # Read once, so that reading notes nothing any more; searched, so that the index is there.
        for who, name in ((ANN, TALK), (ANN, FORK), (BOB, TALK)):
            await sessions.history(who, name)
        await hits(sessions, ANN, "fox")


def _draft(entry: str) -> Draft:
    return say(f"{entry} {WORDS}", id=entry)


async def state_of(sessions: Sessions) -> list[Any]:
    """All that a store has, to be compared. The numbers of changes may have gaps, and secrets are made by chance.

    What a reset has noted to be remembered later, and takes at the next one, is remembered first.
    """
    seen: list[Any] = []
    for who in (ANN, BOB):
        ids = await listed(sessions, who, Filter(archived="include"))
        for each in ids:
            await remember_episodes(sessions.core, who.owner, each)
        seen.append([await exported(sessions, who, each) for each in ids])
        seen.append([await sessions.checkpoints(who, each) for each in ids])
        seen.append([await sessions.leases.current(who, each) for each in ids])
        seen.append([(each.session, each.kind, each.revision) for each in await sessions.changes.since(who)])
        seen.append([await sessions.transfer.raw(who, each) for each in ids])
        seen.append(await sessions.memory.facts(who))
        seen.append(await sessions.statistics.facets(who))
        seen.append(plain(await sessions.search(who, "fox", limit=50)))
    seen.append(await sessions.tokens.all())
    return seen


def _once(name: str, effect: Do, answer: Callable[[Any], Any]) -> Operation:
    """At most once, by a key: then a second try is certain, whatever became of the first."""

    async def do(sessions: Sessions) -> Any:
        guard = Guard(method=name, asked=[name], key="once")
        return await sessions.idempotency.guarded(ANN, guard, effect, answer)

    return Operation(name, do)


def _session(name: str, effect: Do) -> Operation:
    return _once(name, effect, lambda session: {"session_id": session.id, "revision": session.revision})


def _done(name: str, effect: Do) -> Operation:
    return _once(name, effect, lambda _: {"done": True})


def _read(name: str, ask: Do) -> Operation:
    async def do(sessions: Sessions) -> Any:
        return plain(await ask(sessions))

    return Operation(name, do)


async def _imported(sessions: Sessions) -> Any:
    lines = [line async for line in sessions.export(ANN, TALK)]
    return await sessions.import_(ANN, lines, new_id=True)


async def _append_keyed(sessions: Sessions) -> Any:
    return await sessions.append(ANN, TALK, say("once more the fox"), idempotency_key="append")


def _sync(sessions: Sessions) -> Awaitable[Any]:
    given = Imported(id=SYNCED, source="claude", created_at=5, updated_at=9)
    said = [Entry(id=f"c{at}", at=at, role="user", parts=(Text(text=f"fox {at}"),)) for at in range(5, 10)]
    return sessions.transfer.sync(ANN, given, said)


async def _repaired(sessions: Sessions) -> Any:
    """What could not be read is told as a problem: that is a refusal too."""
    if problems := (await sessions.admin.check(repair=True)).problems:
        raise StoreDamaged("; ".join(problems))


def _facts() -> list[Fact]:
    return [Fact(id=f"f{number}", at=number, text=f"fact {number}", session=TALK) for number in range(2, 6)]


PRUNED = Policy(keep_newest=1, delete=True, spare_read_ms=0)
APPEND = Operation("append", _append_keyed)
OPERATIONS = (
    _session("create", lambda s: s.create(ANN, session_id="new", title="a fox", tags=["t2"])),
    APPEND,
    _done("append much", lambda s: s.append(ANN, TALK, [say(text) for text in LONG])),
    _session("rename", lambda s: s.rename(ANN, TALK, "another fox")),
    _session("tag", lambda s: s.tag(ANN, TALK, add=["t3"], remove=["t1"])),
    _session("set_meta", lambda s: s.set_meta(ANN, TALK, {"m": {"on": True}})),
    _session("archive", lambda s: s.archive(ANN, TALK)),
    _session("fork", lambda s: s.fork(ANN, TALK, at=ENTRIES[6])),
    _session("branch", lambda s: s.branch(ANN, TALK, CHECKPOINT)),
    _session("rewind", lambda s: s.rewind(ANN, TALK, ENTRIES[5])),
    _session("reset", lambda s: s.reset(ANN, TALK)),
    _session("restore", lambda s: s.restore(ANN, TALK, CHECKPOINT, since=True)),
    _done("compact", lambda s: s.compact(ANN, TALK, say("in short", "system", id="sum2"), keep=1)),
    _done("erase", lambda s: s.erase(ANN, TALK, ENTRIES[1])),
    _done("delete", lambda s: s.delete(ANN, TALK)),
    _session("import", _imported),
    _done("sync", _sync),
    _done("keep a raw copy", lambda s: s.transfer.keep_raw(ANN, TALK, "copy", b"\0raw" * 3_000)),
    _done("add facts", lambda s: s.memory.add(ANN, _facts())),
    _done("take a lease", lambda s: s.leases.acquire(ANN, TALK, "h", ttl_ms=LEASE_MS)),
    _done("give back a lease", lambda s: s.leases.release(ANN, FORK, 1)),
    _done("make a token", lambda s: s.tokens.create("ann", label="door")),
    _done("prune", lambda s: s.admin.prune(ANN, PRUNED, dry_run=False)),
    Operation("repair", _repaired),
    _read("list", lambda s: s.find(ANN)),
    _read("history", lambda s: s.history(ANN, TALK, view="conversation")),
    _read("search", lambda s: s.search(ANN, "fox")),
    _read("export", lambda s: exported(s, ANN, TALK)),
    _read("usage", lambda s: s.usage(ANN, TALK)),
)
"""All of them, those that only read last."""
