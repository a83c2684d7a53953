"""Everything read is checked: a row that was altered, or a right one in a wrong place, is never taken for what was written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import pytest

import hitherto
from hitherto.errors import StoreDamaged
from hitherto.model import Draft, Fact, Principal, Text
from hitherto.service import Sessions
from tests.support.damaged import WORDS, Damaged
from tests.support.homes import Home

ANN = Principal(owner="ann")
EVE = Principal(owner="eve")
ASKED_FOR_EVES = "eve's own words"

on_each_disk = pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)


def said(text: str) -> Draft:
    return Draft(role="user", parts=(Text(text=text),))


class Kept(NamedTuple):
    """Ids of what `filled` has put into a store."""

    session: str
    fork: str
    rewound: str
    token: str
    secret: str


@pytest.fixture
async def damaged(home: Home) -> AsyncIterator[Damaged]:
    async with hitherto.open(home.url) as sessions:
        yield Damaged(home, sessions)


async def filled(sessions: Sessions) -> Kept:
    """Two owners, each with sessions, of which one was read, a fork, a checkpoint, a lease, facts, raw copies and a token."""
    for who, words in ((ANN, WORDS), (EVE, [ASKED_FOR_EVES, *WORDS[1:]])):
        made = await sessions.create(who, session_id=f"{who.owner}-1", title=f"of {who.owner}")
        for word in words:
            await sessions.append(who, made.id, said(word))
        await sessions.fork(who, made.id, new_id=f"{who.owner}-2")
        rewound = await sessions.create(who, session_id=f"{who.owner}-3")
        for word in words:
            await sessions.append(who, rewound.id, said(word))
        await sessions.rewind(who, rewound.id, (await sessions.history(who, rewound.id)).entries[1].id)
        await sessions.leases.acquire(who, made.id, "somebody")
        await sessions.history(who, made.id)
        await sessions.memory.add(
            who, [Fact(id=f"fact-{who.owner}", at=1, text=f"{who.owner} likes figs", session=made.id)]
        )
        await sessions.transfer.keep_raw(who, made.id, "a", f"the file of {who.owner}".encode())
        await sessions.tokens.create("eve", scopes=["read"])
    token, secret = await sessions.tokens.create("ann", scopes=["read"])
    return Kept("ann-1", "ann-2", "ann-3", token.id, secret)


SQLITE_NAMES = {"num": "session", "first": "first", "last": "last", "ord": "ord", "at": ""}
POSTGRES_NAMES = {"num": "num", "first": "first_seq", "last": "last_seq", "ord": "ordinal", "at": "_at"}
ANNS = "(SELECT num FROM session WHERE id = 'ann-1')"
ANNS_FORK = "(SELECT num FROM session WHERE id = 'ann-2')"
ANNS_REWOUND = "(SELECT num FROM session WHERE id = 'ann-3')"
EVES = "(SELECT num FROM session WHERE id = 'eve-1')"

Ask = Callable[[Sessions, Kept], Awaitable[Any]]


def history(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.history(ANN, kept.session)


def fork(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.history(ANN, kept.fork)


def checkpoints(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.timeline.checkpoints(ANN, kept.rewound)


def restored(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    async def ask() -> Any:
        (checkpoint,) = await sessions.timeline.checkpoints(ANN, kept.rewound)
        return await sessions.timeline.restore(ANN, kept.rewound, checkpoint.id)

    return ask()


def lease(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.leases.current(ANN, kept.session)


def facts(sessions: Sessions, _: Kept) -> Awaitable[Any]:
    return sessions.memory.facts(ANN)


def facts_found(sessions: Sessions, _: Kept) -> Awaitable[Any]:
    return sessions.memory.search(ANN, "figs")


def second_forked(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    async def ask() -> Any:
        second = (await sessions.history(ANN, kept.session)).entries[1]
        return await sessions.fork(ANN, kept.session, at=second.id)

    return ask()


def raw(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.transfer.raw(ANN, kept.session)


def token(sessions: Sessions, kept: Kept) -> Awaitable[Any]:
    return sessions.tokens.verify(kept.secret)


DAMAGE: dict[str, tuple[str, Ask]] = {
    "a span of another owner's log": (
        f"UPDATE span SET log = {EVES} WHERE {{num}} = {ANNS_FORK} AND log = {ANNS}",
        fork,
    ),
    "a span of another session's log": (
        f"UPDATE span SET log = {ANNS_REWOUND} WHERE {{num}} = {ANNS_FORK} AND log = {ANNS}",
        fork,
    ),
    "a span that ends earlier": (
        f"UPDATE span SET {{last}} = {{last}} - 1 WHERE {{num}} = {ANNS_FORK}",
        fork,
    ),
    "a span that begins earlier": (
        f"UPDATE span SET {{first}} = 1, {{last}} = 1 WHERE {{num}} = {ANNS_REWOUND} AND name <> ''",
        restored,
    ),
    "a span of another kind": (f"UPDATE span SET kind = 'summary' WHERE {{num}} = {ANNS_FORK}", fork),
    "a span that a checkpoint lacks": (
        f"DELETE FROM span WHERE {{num}} = {ANNS_REWOUND} AND name <> ''",
        restored,
    ),
    "a checkpoint of another time": (
        f"UPDATE checkpoint SET at = at + 1 WHERE {{num}} = {ANNS_REWOUND}",
        checkpoints,
    ),
    "a checkpoint with another count": (
        f"UPDATE checkpoint SET message_count = 1 WHERE {{num}} = {ANNS_REWOUND}",
        checkpoints,
    ),
    "another holder of a lease": ("UPDATE session SET lease_holder = 'eve' WHERE id = 'ann-1'", lease),
    "a longer lease": (
        "UPDATE session SET lease_expires{at} = lease_expires{at} + 1 WHERE id = 'ann-1'",
        lease,
    ),
    "another fence": ("UPDATE session SET lease_fence = lease_fence + 1 WHERE id = 'ann-1'", lease),
    "another time of reading": (
        "UPDATE session SET read_at = read_at + 1, read_crc = read_crc + 1 WHERE id = 'ann-1'",
        history,
    ),
    "a time of reading of another owner": (
        """UPDATE session SET read_at = (SELECT read_at FROM session WHERE id = 'eve-1'),
            read_crc = (SELECT read_crc FROM session WHERE id = 'eve-1') WHERE id = 'ann-1'""",
        history,
    ),
    "another parent": ("UPDATE session SET parent = 'ann-3' WHERE id = 'ann-2'", fork),
    "another place of a fork": ("UPDATE session SET parent_entry = 'x' WHERE id = 'ann-2'", fork),
    "another title": (
        "UPDATE session SET title = (SELECT title FROM session WHERE id = 'eve-1') WHERE id = 'ann-1'",
        history,
    ),
    "a fact found by other words": ("UPDATE fact SET said = 'x' WHERE id = 'fact-ann'", facts),
    "a fact of another time": ("UPDATE fact SET at = 2 WHERE id = 'fact-ann'", facts_found),
    "a fact of another session": ("UPDATE fact SET session = 'ann-3' WHERE id = 'fact-ann'", facts),
    "a fact of another owner": (
        """DELETE FROM fact_mark WHERE id = 'fact-eve';
        UPDATE fact SET owner = (SELECT owner FROM session WHERE id = 'ann-1') WHERE id = 'fact-eve'""",
        facts,
    ),
    "more scopes of a token": ("UPDATE token SET scopes = 'read write admin' WHERE id = '{token}'", token),
    "other restrictions of a token": ("UPDATE token SET rule = '[]' WHERE id = '{token}'", token),
    "another role of a token": ("UPDATE token SET role = 'admin' WHERE id = '{token}'", token),
    "a token of another owner": (
        "UPDATE token SET owner = (SELECT owner FROM session WHERE id = 'eve-1') WHERE id = '{token}'",
        token,
    ),
}
SQLITE_DAMAGE: dict[str, tuple[str, Ask]] = {
    "an entry in another's place": (
        f"""DELETE FROM entry WHERE pos = {ANNS} << 24 | 2;
        UPDATE entry SET pos = {ANNS} << 24 | 2, owner = (SELECT owner FROM session WHERE id = 'ann-1')
        WHERE pos = {EVES} << 24 | 1""",
        history,
    ),
    "two entries that changed places": (
        f"""UPDATE entry SET pos = 1 WHERE pos = {ANNS} << 24 | 2;
        UPDATE entry SET pos = {ANNS} << 24 | 2 WHERE pos = {ANNS} << 24 | 3;
        UPDATE entry SET pos = {ANNS} << 24 | 3 WHERE pos = 1""",
        history,
    ),
    "two sessions that changed their numbers": (
        """UPDATE session SET num = 1000 WHERE id = 'ann-1'; UPDATE session SET num = 1 WHERE id = 'ann-3';
        UPDATE session SET num = 3 WHERE id = 'ann-1'""",
        history,
    ),
    "other sums beside an entry": (
        f"UPDATE entry SET bytes = bytes + 1 WHERE pos = {ANNS} << 24 | 2",
        second_forked,
    ),
    "other words of a fact": (
        "UPDATE fact SET body = CAST(replace(CAST(body AS TEXT), 'figs', 'nuts') AS BLOB) WHERE id = 'fact-ann'",
        facts,
    ),
    "a raw copy of which a bit has flipped": (
        "UPDATE raw_blob SET data = (SELECT data FROM raw_blob AS b WHERE b.digest <> raw_blob.digest)",
        raw,
    ),
    "a raw copy of another owner": (
        f"UPDATE raw_copy SET session = {ANNS}, name = 'b' WHERE session = {EVES}",
        raw,
    ),
    "a raw copy that is gone": ("DELETE FROM raw_blob", raw),
}
POSTGRES_DAMAGE: dict[str, tuple[str, Ask]] = {
    "an entry that is gone": (f"DELETE FROM entry WHERE log = {ANNS} AND seq = 2", history),
    "an entry in another's place": (
        f"""WITH gone AS (DELETE FROM entry WHERE log = {ANNS} AND seq = 2)
        UPDATE entry SET log = {ANNS}, seq = 6, owner = 'ann' WHERE log = {EVES} AND seq = 2;
        UPDATE entry SET seq = 2 WHERE log = {ANNS} AND seq = 6""",
        history,
    ),
    "other words of an entry": (
        f"UPDATE entry SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'two', 'ten'), 'UTF8') WHERE log = {ANNS}",
        history,
    ),
    "other words of a fact": ("UPDATE fact SET text = 'ann likes nuts' WHERE id = 'fact-ann'", facts),
    "a raw copy of another owner": (
        f"UPDATE raw_copy SET owner = 'ann', num = {ANNS}, name = 'b' WHERE num = {EVES}",
        raw,
    ),
    "other bytes of a raw copy": ("UPDATE raw_copy SET data = 'x'", raw),
}
ALL_DAMAGE = [
    *(("sqlite", name) for name in (*DAMAGE, *SQLITE_DAMAGE)),
    *(("postgres", name) for name in (*DAMAGE, *POSTGRES_DAMAGE)),
]


@pytest.mark.parametrize(("home", "name"), ALL_DAMAGE, indirect=["home"])
async def test_what_was_altered_or_is_in_a_wrong_place_is_noticed(damaged: Damaged, name: str) -> None:
    kept = await filled(damaged.sessions)
    own, names = (POSTGRES_DAMAGE, POSTGRES_NAMES) if damaged.is_postgres else (SQLITE_DAMAGE, SQLITE_NAMES)
    statements, ask = (DAMAGE | own)[name]
    assert (await damaged.sessions.admin.check()).problems == ()

    for statement in statements.format(token=kept.token, **names).split(";"):
        await damaged.sql(statement)

    with pytest.raises(StoreDamaged):
        await ask(damaged.sessions, kept)
    assert (await damaged.sessions.admin.check()).problems
    assert [session.id for session in (await damaged.sessions.find(EVE)).sessions]


@on_each_disk
async def test_a_store_that_is_whole_is_read_without_a_word(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    for ask in (history, fork, checkpoints, restored, lease, facts, facts_found, raw, token):
        assert await ask(damaged.sessions, kept)
    await damaged.sessions.tokens.revoke(kept.token)
    assert await token(damaged.sessions, kept) is None
    assert (await damaged.sessions.admin.check()).problems == ()
    assert (await damaged.sessions.admin.check(repair=True)).repaired == ()


OLDER_PROGRAM = {
    "a reading": "UPDATE session SET read_at = 7 WHERE id = 'ann-1'",
    "a lease": """UPDATE session SET lease_holder = 'another', lease_fence = lease_fence + 1,
        lease_acquired{at} = lease_acquired{at} + 70, lease_expires{at} = lease_expires{at} + 70 WHERE id = 'ann-1'""",
    "a revoked token": "UPDATE token SET revoked_at = 7 WHERE id = '{token}'",
}
OLDER_PROGRAM_ON_POSTGRES = {
    "a title": "UPDATE session SET title = 'new', revision = revision + 1, change = change + 1 WHERE id = 'ann-1'",
    "a fact": """INSERT INTO fact (owner, id, at, text, kind, session, entries, more)
        VALUES ('ann', 'fact-ann', 1, 'ann likes nuts', 'fact', 'ann-1', '[]', '{{}}')
        ON CONFLICT (owner, id) DO UPDATE SET text = excluded.text, said = excluded.said""",
    "a raw copy": f"""INSERT INTO raw_copy (owner, num, name, data) VALUES ('ann', {ANNS}, 'a', 'the new file')
        ON CONFLICT (owner, num, name) DO UPDATE SET data = excluded.data""",
    "an erased message": f"""UPDATE entry SET number = NULL, words = NULL, payload = convert_to(
            '{{{{"id":"' || id || '","at":1,"role":"user","meta":{{{{"erased":true,"bytes":9}}}}}}}}', 'UTF8')
        WHERE log = {ANNS} AND seq = 2""",
}
OLDER_PROGRAM_ON_SQLITE = {
    "an erased message": f"""UPDATE entry SET erased = 1, crc = NULL, payload = CAST(
            '{{{{"id":"' || id || '","at":1,"role":"user","meta":{{{{"erased":true,"bytes":9}}}}}}}}' AS BLOB)
        WHERE pos = {ANNS} << 24 | 2""",
}


@on_each_disk
async def test_what_a_program_wrote_that_knows_of_no_checksums_is_believed(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    names = POSTGRES_NAMES if damaged.is_postgres else SQLITE_NAMES
    own = OLDER_PROGRAM_ON_POSTGRES if damaged.is_postgres else OLDER_PROGRAM_ON_SQLITE
    for statement in (OLDER_PROGRAM | own).values():
        await damaged.sql(statement.format(token=kept.token, **names))

    held = await damaged.sessions.leases.current(ANN, kept.session)
    assert held is not None
    assert held.holder == "another"
    assert (await damaged.sessions.get(ANN, kept.session)).read_at == 7
    assert await token(damaged.sessions, kept) is None
    assert len(await damaged.sessions.tokens.all("ann")) == 1
    assert [bool(entry.parts) for entry in (await history(damaged.sessions, kept)).entries] == [1, 0, 1, 1, 1]
    if damaged.is_postgres:
        assert (await damaged.sessions.get(ANN, kept.session)).title == "new"
        assert [fact.text for fact in await facts(damaged.sessions, kept)] == ["ann likes nuts"]
        assert [copy.data for copy in await raw(damaged.sessions, kept)] == [b"the new file"]
    assert not [told for told in (await damaged.sessions.admin.check()).problems if "altered" in told]


FORGET_CHECKSUMS = ("session", "entry", "span", "checkpoint", "fact", "token", "raw_copy")


@on_each_disk
async def test_rows_without_a_checksum_are_believed_until_doctor_gives_them_one(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    for table in FORGET_CHECKSUMS:
        await damaged.sql(f"UPDATE {table} SET crc = NULL")
    await damaged.sql("UPDATE session SET lease_crc = NULL, read_crc = NULL")
    await damaged.sql("UPDATE entry SET row_crc = NULL")
    if damaged.is_postgres:
        await damaged.sql("UPDATE raw_copy SET digest = NULL")
    else:
        await damaged.sql("UPDATE session SET place_crc = NULL")
        await damaged.sql("UPDATE entry SET place_crc = NULL")

    for ask in (history, fork, checkpoints, lease, facts, raw, token):
        assert await ask(damaged.sessions, kept)
    assert (await damaged.sessions.admin.check()).problems == ()
    assert any("checksums" in done for done in (await damaged.sessions.admin.check(repair=True)).repaired)
    assert (await damaged.sessions.admin.check(repair=True)).repaired == ()
    for ask in (history, fork, checkpoints, lease, facts, raw, token):
        assert await ask(damaged.sessions, kept)
    for table in FORGET_CHECKSUMS:
        assert await damaged.sql(f"SELECT count(*) FROM {table} WHERE crc IS NULL") == [(0,)]
    assert await damaged.sql("SELECT id FROM session WHERE read_at IS NOT NULL AND read_crc IS NULL") == []


@on_each_disk
async def test_another_owners_messages_are_not_read_even_where_nothing_has_a_checksum(
    damaged: Damaged,
) -> None:
    kept = await filled(damaged.sessions)
    names = POSTGRES_NAMES if damaged.is_postgres else SQLITE_NAMES
    await damaged.sql("UPDATE entry SET crc = NULL")
    await damaged.sql("UPDATE span SET crc = NULL")
    if not damaged.is_postgres:
        await damaged.sql("UPDATE entry SET place_crc = NULL")
    await damaged.sql(f"UPDATE span SET log = {EVES} WHERE {names['num']} = {ANNS_FORK} AND log = {ANNS}")

    with pytest.raises(StoreDamaged):
        await fork(damaged.sessions, kept)
    assert (await damaged.sessions.admin.check()).problems


@on_each_disk
async def test_doctor_ends_a_lease_that_was_altered(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    before = await damaged.sessions.leases.current(ANN, kept.session)
    await damaged.sql("UPDATE session SET lease_holder = 'eve' WHERE id = 'ann-1'")

    mended = await damaged.sessions.admin.check(repair=True)

    assert mended.problems == ()
    assert any("leases" in done for done in mended.repaired)
    assert await damaged.sessions.leases.current(ANN, kept.session) is None
    assert before is not None
    assert (await damaged.sessions.leases.acquire(ANN, kept.session, "next")).fence > before.fence


@on_each_disk
async def test_doctor_forgets_an_altered_time_of_reading(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    await damaged.sql("UPDATE session SET read_crc = read_crc + 1 WHERE id = 'ann-1'")
    with pytest.raises(StoreDamaged):
        await history(damaged.sessions, kept)

    mended = await damaged.sessions.admin.check(repair=True)

    assert mended.problems == ()
    assert any("read marks: 1" in done for done in mended.repaired)
    assert (await damaged.sessions.get(ANN, kept.session)).read_at is None
    assert (await damaged.sessions.get(EVE, "eve-1")).read_at is not None


@on_each_disk
async def test_a_fact_that_was_altered_can_be_forgotten_and_a_token_revoked(damaged: Damaged) -> None:
    kept = await filled(damaged.sessions)
    await damaged.sql("UPDATE fact SET at = 2 WHERE id = 'fact-ann'")
    await damaged.sql("UPDATE token SET scopes = 'admin' WHERE id = ?", kept.token)

    assert await damaged.sessions.memory.forget(ANN, "fact-ann")
    assert await facts(damaged.sessions, kept) == []
    assert await damaged.sessions.tokens.revoke(kept.token)
    with pytest.raises(StoreDamaged):
        await token(damaged.sessions, kept)
    assert await damaged.sessions.tokens.all("ann") == []
