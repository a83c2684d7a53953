"""A repair never destroys: what is damaged stays, what nothing explains goes to quarantine, and nothing is collected meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

import hitherto
from hitherto.errors import NotFound
from hitherto.model import LOCAL, Draft, Text
from tests.support.conversations import exported, say
from tests.support.damaged import WORDS, Damaged
from tests.support.homes import Home

on_each_disk = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
async def damaged(home: Home) -> AsyncIterator[Damaged]:
    async with hitherto.open(home.url) as sessions:
        yield Damaged(home, sessions)


FAR = 1 << 20


@on_each_disk
async def test_a_span_that_was_altered_costs_no_message(damaged: Damaged) -> None:
    fork = await damaged.forked()
    await damaged.sql("UPDATE span SET log = log + ? WHERE log <> ?", FAR, FAR * 2)

    told = await damaged.sessions.admin.check()
    assert told.problems
    assert told.repaired == ()
    assert await damaged.sessions.admin.quarantined() == []

    mended = await damaged.sessions.admin.check(repair=True)
    assert mended.problems
    assert await damaged.entries() == 5
    (aside,) = await damaged.sessions.admin.quarantined()
    assert (aside.owner, aside.messages) == (LOCAL.owner, 5)

    await damaged.sql("UPDATE span SET log = log - ?", FAR)
    assert await damaged.said(fork) == WORDS
    healed = await damaged.sessions.admin.check(repair=True)
    assert healed.problems == ()
    assert await damaged.sessions.admin.quarantined() == []


@on_each_disk
@pytest.mark.parametrize("how", ["erase", "delete"])
async def test_what_is_erased_or_deleted_goes_from_the_quarantine_too(damaged: Damaged, how: str) -> None:
    sessions, session_id = damaged.sessions, await damaged.talk()
    await sessions.compact(LOCAL, session_id, say("Summary: one to three", "system"), keep=2)
    lines = await exported(sessions, LOCAL, session_id)
    await sessions.create(LOCAL)
    num = "num" if damaged.is_postgres else "session"
    lost = "(SELECT num FROM session WHERE id = ?)"
    await damaged.sql(f"DELETE FROM span WHERE {num} IN {lost}", session_id)
    await damaged.sql("DELETE FROM session WHERE id = ?", session_id)
    await sessions.admin.check(repair=True)
    (aside,) = await sessions.admin.quarantined()
    await sessions.import_(LOCAL, lines)

    if how == "delete":
        await sessions.delete(LOCAL, session_id)
    else:
        first = (await sessions.history(LOCAL, session_id, view="conversation")).entries[0]
        await sessions.erase(LOCAL, session_id, first.id)

    kept = b"".join([each async for each in sessions.admin.quarantined_messages(aside.number)])
    assert [word for word in ("one", *WORDS[1:]) if f'"{word}"'.encode() in kept] == WORDS[1:] * (
        how == "erase"
    )
    assert b"Summary" not in kept


@on_each_disk
async def test_nothing_is_collected_while_anything_is_wrong(damaged: Damaged) -> None:
    await damaged.forked()
    other = await damaged.talk()
    last = "last" + "_seq" * damaged.is_postgres
    await damaged.sql(f"UPDATE span SET log = log + ? WHERE {last} IS NOT NULL", FAR)

    await damaged.sessions.delete(LOCAL, other)
    assert await damaged.sessions.admin.collect() == 0
    await damaged.sessions.admin.check(repair=True)
    assert await damaged.entries() == 10

    await damaged.sql("UPDATE span SET log = log - ? WHERE log > ?", FAR, FAR)
    assert (await damaged.sessions.admin.check(repair=True)).problems == ()
    assert await damaged.entries() == 5


@on_each_disk
async def test_nothing_is_collected_from_the_moment_a_check_has_failed(damaged: Damaged) -> None:
    await damaged.talk()
    other = await damaged.talk()
    await damaged.sql("UPDATE session SET message_count = 7 WHERE id <> ?", other)

    assert (await damaged.sessions.admin.check()).problems
    await damaged.sessions.delete(LOCAL, other)

    assert await damaged.entries() == 10
    await damaged.sql("UPDATE session SET message_count = 5")
    assert (await damaged.sessions.admin.check(repair=True)).problems == ()
    assert await damaged.entries() == 5


@on_each_disk
async def test_what_is_derived_from_damaged_rows_is_left_as_it_is(damaged: Damaged) -> None:
    fork = await damaged.forked()
    last = "last" + "_seq" * damaged.is_postgres
    await damaged.sql(f"UPDATE span SET {last} = 50 WHERE {last} IS NOT NULL")

    assert (await damaged.sessions.admin.check(repair=True)).problems

    assert (await damaged.sessions.get(LOCAL, fork)).message_count == 5


@on_each_disk
async def test_what_is_in_quarantine_is_exported_and_put_back(damaged: Damaged) -> None:
    fork = await damaged.forked()
    number = (await damaged.sql("SELECT max(num) FROM session"))[0][0]
    await damaged.sql(f"DELETE FROM span WHERE {'num' if damaged.is_postgres else 'session'} = ?", number)
    await damaged.sql("DELETE FROM session WHERE num = ?", number)
    await damaged.sessions.admin.check(repair=True)
    (aside,) = await damaged.sessions.admin.quarantined()

    messages = [each async for each in damaged.sessions.admin.quarantined_messages(aside.number)]
    made = await damaged.sessions.admin.put_back(aside.number)

    assert len(messages) == 5
    assert b"three" in messages[2]
    assert made is not None
    assert made.id != fork
    assert made.message_count == 5
    assert await damaged.said(made.id) == WORDS
    assert await damaged.sessions.admin.quarantined() == []
    assert (await damaged.sessions.admin.check(repair=True)).problems == ()
    with pytest.raises(NotFound, match="doctor --quarantine"):
        await damaged.sessions.admin.put_back(aside.number)
    await damaged.sessions.delete(LOCAL, made.id)
    assert await damaged.entries() == 0


async def test_an_index_that_lacks_spans_costs_no_message(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with hitherto.open(url) as sessions:
        source = await sessions.create(LOCAL)
        for word in WORDS:
            await sessions.append(LOCAL, source.id, Draft(role="user", parts=(Text(text=word),)))
        fork = await sessions.fork(LOCAL, source.id)
    database = apsw.Connection(str(tmp_path / "sessions.db"))
    database.execute("DROP INDEX span_log; CREATE INDEX span_log ON span (log, session) WHERE session <> 2")
    database.execute("PRAGMA writable_schema = ON")
    database.execute(
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX span_log ON span (log, session)' WHERE name = 'span_log'"
    )
    database.close()

    async with hitherto.open(url) as sessions:
        await sessions.delete(LOCAL, source.id)
        health = await sessions.admin.check(repair=True)
        page = await sessions.history(LOCAL, fork.id)

    assert any("span_log" in problem for problem in health.problems)
    assert len(page.entries) == 5
