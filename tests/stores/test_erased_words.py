"""What was erased or deleted is in no place that the program keeps, no door tells it, and nothing brings it back.

Random histories, in which every message has a word of its own, lose some of them. Then everything is looked at: each byte of
each file, each row of each table, and each door; and again after all was synced, imported, restored and asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

import hitherto
from hitherto import composition
from hitherto.errors import HithertoError, SessionDeleted
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.methods import METHODS
from hitherto.gateway.page.list_query import parse_query
from hitherto.gateway.page.render.window import WindowRequest
from hitherto.gateway.page.views.list import home as list_page
from hitherto.gateway.page.views.session import session_page
from hitherto.model import LOCAL, Filter, encode
from hitherto.recall.tools import Recall
from hitherto.rpc.errors import Failure
from hitherto.service import Sessions
from tests.acp.agent import in_process
from tests.cli.shell import Shell
from tests.gateway.methods.store_requests import silent
from tests.support.conversations import exported, filed, finds, listed
from tests.support.homes import Home, PostgresHome
from tests.support.planted import BYSTANDER, Planted, alive, asker, words_in
from tests.support.scripted_engine import Scripted

T = TypeVar("T")
HISTORIES = int(os.environ.get("HITHERTO_TEST_HISTORIES", "0"))
"""How many histories are looked at through every door; without it, a few, and most of them through some doors."""
SEED = os.environ.get("TORTURE_SEED", "")
STEPS = 40 if HISTORIES else 20
TELL_LATER = ("session.subscribe", "store.await_change", "store.export_file")
TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
AND c.relnamespace = current_schema()::regnamespace
"""


class World:
    """A store in a folder of its own, and what was planted in it."""

    def __init__(self, home: Home, folder: Path, number: int) -> None:
        self.home, self.folder, self.rng = home, folder, random.Random(f"{SEED}:{number}")
        self.thorough = bool(HISTORIES) or number == 0
        self.planted = Planted(self.rng, folder)
        self.erased: set[str] = set()
        self.gone: list[str] = []
        self.files: dict[str, list[bytes]] = {}

    @property
    def is_file(self) -> bool:
        return not isinstance(self.home, PostgresHome)

    @property
    def store(self) -> Path:
        return Path(self.home.url.removeprefix("sqlite:///"))

    def inside(self, work: Callable[[Sessions], Awaitable[T]]) -> T:
        """Do something with the store, and close it."""

        async def run() -> T:
            async with hitherto.open(self.home.url) as sessions:
                return await work(sessions)

        return asyncio.run(run())

    async def live(self, sessions: Sessions) -> None:
        """A history, of which copies are made that can be brought back later."""
        await self.planted.grow(sessions, STEPS)
        for session_id in await listed(sessions, LOCAL, Filter(archived="include"), limit=500):
            self.files[session_id] = await exported(sessions, LOCAL, session_id)
        if self.is_file:
            await sessions.admin.backup(str(self.folder / "backup.db"))
        else:
            with psycopg.connect(self.home.url) as connection:
                connection.execute("ANALYZE")  # as PostgreSQL does when it likes

    async def lose(self, sessions: Sessions) -> None:
        """Erase some messages and delete some sessions, in any order."""
        places = self.planted.places
        losses: list[str | tuple[str, str, str]] = [
            (word, *places[word]) for word in self.rng.sample(sorted(places), len(places) // 3)
        ]
        # PostgreSQL keeps the sample of a table that has become empty: somebody stays.
        losses += self.rng.sample(sorted(self.files.keys() - {BYSTANDER}), len(self.files) // 3)
        self.rng.shuffle(losses)
        for each in losses:
            with contextlib.suppress(HithertoError):  # it went with another
                if isinstance(each, str):
                    await sessions.delete(LOCAL, each)
                else:
                    await sessions.erase(LOCAL, *each[1:])
                    self.erased.add(each[0])
        await self.planted.clear_notes(sessions)
        left = await alive(sessions, places)
        assert not self.erased & left
        self.gone = sorted(places.keys() - left)

    async def look(self, sessions: Sessions, gone: Sequence[str]) -> None:
        """No door tells any of these words."""
        for name, tell in DOORS.items() if self.thorough else [("sdk", tell_sdk)]:
            assert words_in(await tell(sessions, gone), gone) == [], name
        for word in gone if self.thorough else gone[:3]:
            assert await finds(sessions, LOCAL, word) == []

    async def settle(self, sessions: Sessions) -> None:
        """The next collection."""
        assert (await sessions.admin.check(repair=True)).problems == ()

    def look_below(self, gone: Sequence[str]) -> None:
        """None of these words is in a byte or row of the store, or in the notes of sync; a word that is there is seen."""
        kept = b"".join(self._below())
        assert words_in(kept, gone) == []
        there = self.inside(lambda sessions: alive(sessions, self.planted.places))
        assert set(words_in(kept, sorted(there))) == there

    def _below(self) -> Iterator[bytes]:
        yield from (path.read_bytes() for path in self.folder.glob("ledger.db*"))
        if self.is_file:
            names = [
                path
                for path in self.store.parent.glob(self.store.name + "*")
                if ".replaced-" not in path.name
            ]
            yield from (path.read_bytes() for path in names)
            return
        with psycopg.connect(self.home.url) as connection:
            for (table,) in connection.execute(TABLES).fetchall():
                rows = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(table))
                yield from (row[0].encode() for row in connection.execute(rows))
            yield from (
                row[0].encode() for row in connection.execute("SELECT to_jsonb(s)::text FROM pg_stats s")
            )

    async def bring_back(self, sessions: Sessions, gone: Sequence[str], *, include_deleted: bool) -> None:
        """Read, import and ask for everything again; no answer has any of these words."""
        self.planted.touch_transcripts()
        await self.planted.sync(sessions, revive=include_deleted)
        for name in self.planted.taken:
            await self.planted.take_again(sessions, name, revive=include_deleted)
        for lines in self.files.values():
            given: dict[str, Any] = {"new_id": self.rng.random() < 0.7, "trusted": self.rng.random() < 0.7}
            with contextlib.suppress(HithertoError if include_deleted else SessionDeleted):
                try:
                    await sessions.import_(LOCAL, lines, include_deleted=include_deleted, **given)
                except HithertoError as error:
                    if error.code != "already_exists":
                        raise
        for request in self.planted.requests:
            with contextlib.suppress(HithertoError, Failure):
                assert words_in(encode(await request(sessions)), gone) == []


Door = Callable[[Sessions, Sequence[str]], Awaitable[bytes]]


async def _ids(sessions: Sessions) -> list[str]:
    return await listed(sessions, LOCAL, Filter(archived="include"), limit=500)


async def tell_sdk(sessions: Sessions, gone: Sequence[str]) -> bytes:
    """Lists, histories, files of each kind, raw copies, facts, numbers and changes."""
    found: list[Any] = [await sessions.memory.facts(LOCAL), await sessions.statistics.stats(LOCAL)]
    found += [await sessions.statistics.facets(LOCAL), await sessions.changes.since(LOCAL, limit=1_000)]
    found += [page.sessions for page in [await sessions.find(LOCAL, Filter(archived="include"), limit=500)]]
    found += [await sessions.memory.search(LOCAL, word) for word in gone[:3]]
    for session_id in await _ids(sessions):
        for view in ("context", "conversation"):
            found.append((await sessions.history(LOCAL, session_id, view=view, limit=10_000)).entries)
        found.append([copy.data for copy in await sessions.transfer.raw(LOCAL, session_id)])
        found.append(await filed(sessions, LOCAL, session_id, "jsonl", raw=True))
    return repr(found).encode()


async def tell_gateway(sessions: Sessions, _: Sequence[str]) -> bytes:
    """Every method that only reads, those of `store.` too."""
    caller, found = asker(sessions).with_(open_connection=silent()), list[Any]()
    for name, method in METHODS.items():
        if method.scope not in ("read", "raw") or name in TELL_LATER:
            continue
        fields = method.params.__struct_fields__
        words = {each: "planted*" for each in ("query", "text") if each in fields}
        for session_id in (await _ids(sessions))[:3] if "session_key" in fields else [None]:
            named = {} if session_id is None else {"session_key": session_id}
            found.append(await caller.outcome(name, **named, **words))
    return repr(found).encode()


async def tell_mcp(sessions: Sessions, gone: Sequence[str]) -> bytes:
    """What an agent looks up."""
    recall, found = Recall(sessions, LOCAL, "http://x"), list[Any]()
    found += [await recall.recent(limit=20)]
    for word in gone[:3]:
        found += [await recall.search(word), await recall.facts(word)]
    for session_id in (await _ids(sessions))[:5]:
        found.append(await recall.read(session_id))
    return repr(found).encode()


async def tell_page(sessions: Sessions, _: Sequence[str]) -> bytes:
    """The list and the transcripts, as HTML."""
    token, secret = await sessions.tokens.create(LOCAL.owner)
    caller = Caller(sessions, token, secret)

    async def here(work: Callable[..., bytes], *given: Any) -> bytes:
        return work(*given)

    pages = [await list_page(caller, parse_query(b"archived=1")), await list_page(caller, parse_query(b""))]
    for session_id in (await _ids(sessions))[:5]:
        pages += [await session_page(caller, WindowRequest(session=session_id), here)]
    await sessions.tokens.revoke(token.id)
    return b"".join(pages)


DOORS: dict[str, Door] = {"sdk": tell_sdk, "gateway": tell_gateway, "mcp": tell_mcp, "page": tell_page}


async def tell_editor(url: str) -> bytes:
    """What an editor is told that loads each session over ACP."""
    async with in_process.serving(Scripted(), store=url) as (line, sessions):
        for session_id in (await _ids(sessions))[:4]:
            await line.call("session/load", sessionId=session_id, cwd="/p", mcpServers=[])
        await line.call("session/list")
        return repr(line.seen).encode()


def tell_commands(store: Path, word: str) -> bytes:
    """What commands print."""
    shell = Shell(store.parent)
    shell.store = store
    ids = [each["id"] for each in shell.ok("list", "--archived", "include", "--json").json["sessions"]]
    told = [shell.ok("export", "--all", "--raw").out, shell.ok("list", "--archived", "include").out]
    told += [shell.ok("show", session_id, "--all").out for session_id in ids[:3]]
    told += [shell.ok("search", word).out]
    return "".join(told).encode()


EACH = [*product(["sqlite"], range(HISTORIES or 8)), *product(["postgres"], range(HISTORIES // 3 or 2))]


@pytest.mark.parametrize(("home", "number"), EACH, indirect=["home"])
def test_what_was_erased_or_deleted_is_nowhere_and_nothing_brings_it_back(
    home: Home, tmp_path: Path, number: int
) -> None:
    world = World(home, tmp_path, number)

    async def first(sessions: Sessions) -> None:
        await world.live(sessions)
        await world.lose(sessions)
        await world.look(sessions, world.gone)
        await world.settle(sessions)

    world.inside(first)
    world.look_below(world.gone)
    if world.thorough:
        assert words_in(asyncio.run(tell_editor(home.url)), world.gone) == []
    if world.thorough and world.is_file and world.gone:
        assert words_in(tell_commands(world.store, world.gone[0]), world.gone) == []

    for include_deleted in (False, True) if world.thorough else (number % 2 == 0,):
        gone = sorted(world.erased) if include_deleted else world.gone

        async def again(
            sessions: Sessions, gone: Sequence[str] = gone, asked: bool = include_deleted
        ) -> None:
            await world.bring_back(sessions, gone, include_deleted=asked)
            await world.planted.clear_notes(sessions)
            await world.look(sessions, gone)
            await world.settle(sessions)

        if world.is_file:
            composition.restore_backup(home.url, str(tmp_path / "backup.db"), include_deleted=include_deleted)
            world.look_below(gone)
        world.inside(again)
        world.look_below(gone)
