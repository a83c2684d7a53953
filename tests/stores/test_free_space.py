"""What was erased or deleted leaves the logs and the free space of a SQLite store while others have it open, and PostgreSQL's
samples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

import hitherto
from hitherto.model import LOCAL, Fact
from tests.support.conversations import say, started
from tests.support.homes import PostgresHome
from tests.support.waits import output

WORD = "Xylophagous"
# In a process of its own: closing a file that SQLite has open would drop this process's locks.
LOOK = "import pathlib, sys; print(*(p.name for p in map(pathlib.Path, sys.argv[2:]) if sys.argv[1].encode() in p.read_bytes()))"


def files_with(folder: Path, word: str) -> list[str]:
    """The files of a folder that have this word, as bytes."""
    names = map(str, sorted(folder.iterdir()))
    with subprocess.Popen([sys.executable, "-c", LOOK, word, *names], stdout=subprocess.PIPE) as looking:
        return list(map(bytes.decode, output(looking, "the look at the files")[0].split()))


@pytest.mark.parametrize("how", ["erase", "delete"])
async def test_a_log_that_others_have_open_is_emptied(tmp_path: Path, how: str) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with hitherto.open(url) as server, hitherto.open(url) as sessions:
        session, ids = await started(server, LOCAL, *[f"{WORD} " * 200] * 40, "the end")
        await sessions.find(LOCAL)
        assert "store.db-wal" in files_with(tmp_path, WORD)
        if how == "delete":
            await sessions.delete(LOCAL, session.id)
        for entry in ids if how == "erase" else ():
            await sessions.erase(LOCAL, session.id, entry)
        assert [name for name in files_with(tmp_path, WORD) if "search" not in name] == []
        await server.find(LOCAL)
        await server.admin.check(repair=True)
        assert files_with(tmp_path, WORD) == []


async def test_what_sqlite_has_moved_leaves_the_free_space_of_its_pages(tmp_path: Path) -> None:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        made = [await sessions.create(LOCAL) for _ in range(6)]
        said: list[tuple[str, str]] = []
        for number in range(30):  # in an order in which pages are divided
            session, text = made[-1 - number % 6].id, f"{WORD} {number:03} " * 20
            said.append((session, (await sessions.append(LOCAL, session, say(text))).entries[0]))
        for place in said:
            await sessions.erase(LOCAL, *place)
        await sessions.admin.check(repair=True)
        assert files_with(tmp_path, WORD) == []


SAMPLES = "SELECT tablename, attname FROM pg_stats WHERE to_jsonb(pg_stats)::text ILIKE %s"


def samples_with(home: PostgresHome, word: str) -> list[tuple[str, ...]]:
    """Where the planner's samples have this word, as text or as bytes."""
    with psycopg.connect(home.url) as connection:
        found = connection.execute(SAMPLES, [f"%{word}%"]).fetchall()
        return found + connection.execute(SAMPLES, [f"%{word.encode().hex()}%"]).fetchall()


@pytest.mark.parametrize("how", ["erase", "delete"])
async def test_the_planner_keeps_no_sample_of_what_is_gone(postgres_database: PostgresHome, how: str) -> None:
    postgres_database.empty()
    async with hitherto.open(postgres_database.url) as sessions:
        made = [await started(sessions, LOCAL, f"{WORD} {number % 3}") for number in range(12)]
        for number, (session, ids) in enumerate(made):
            fact = Fact(id=f"f{number}", at=1, text=WORD, session=session.id, entries=tuple(ids))
            await sessions.memory.add(LOCAL, [fact])
        # PostgreSQL keeps the sample of a table that has become empty: something stays in each.
        kept, ids = await started(sessions, LOCAL, "Something else")
        other = Fact(id="other", at=1, text="Something else", session=kept.id, entries=tuple(ids))
        await sessions.memory.add(LOCAL, [other])
        with psycopg.connect(postgres_database.url) as connection:
            connection.execute("ANALYZE")
        assert {"title", "entry", "fact"} <= {table for table, *_ in samples_with(postgres_database, WORD)}
        for session, ids in made:
            if how == "delete":
                await sessions.delete(LOCAL, session.id)
            else:
                await sessions.erase(LOCAL, session.id, ids[0])
        await sessions.admin.check(repair=True)
        assert samples_with(postgres_database, WORD) == []
    postgres_database.empty()
