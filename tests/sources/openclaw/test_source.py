"""OpenClaw's transcripts, in its agents' databases and in the files that were there before. Its secrets are not read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

import hitherto
from hitherto.model import LOCAL
from hitherto.sources.handoff.restore import original
from hitherto.sources.openclaw.source import OpenclawSource
from tests.sources.agent_home import House
from tests.sources.openclaw.openclaw_files import KEY, OLDEST, SECRET, OpenclawWriter, save
from tests.sources.pi.pi_files import CWD, SESSION, PiWriter

ID = f"openclaw:{SESSION}"
OTHER = "019a8c0e-2222-7000-8000-000000000002"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, OpenclawSource(tmp_path / "claw"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "claw"


def talk(*texts: str, session_id: str = SESSION) -> PiWriter:
    made = PiWriter(session_id)
    for place, said in enumerate(texts):
        made.say(said) if place % 2 else made.user(said)
    return made


async def test_a_transcript_is_a_session_and_a_second_sync_reads_nothing(house: House, home: Path) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION, label="Engine", created_via="channel")
    database.window(SESSION, channel="discord", chat_type="group", previous_session_id="earlier")
    database.write(talk("Mend the engine", "Done."))
    database.node(OTHER, "agent:main:sub:1", spawned_by=KEY, archived_at=7)
    database.window(OTHER, "agent:main:sub:1")
    database.write(talk("Look around", session_id=OTHER))
    database.close()
    before = house.hashes(home)
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (2, 2, ())
    session = await house.sessions.get(LOCAL, ID)
    assert (session.source, session.cwd, session.title) == ("openclaw", CWD, "Engine")
    assert (session.message_count, session.cost) == (2, 0.25)
    told = {
        name: session.meta[name] for name in ("agent", "channel", "chat_type", "continues", "created_via")
    }
    assert told == {
        "agent": "main",
        "channel": "discord",
        "chat_type": "group",
        "continues": "openclaw:earlier",
        "created_via": "channel",
    }
    assert house.source.resume(session) == ("openclaw", "tui", "--session", KEY)
    assert house.source.restorable_path(session) is None
    assert await house.sessions.transfer.raw(LOCAL, ID) == []
    child = await house.sessions.get(LOCAL, f"openclaw:{OTHER}")
    assert (child.parent, child.title, child.archived) == (ID, "Look around", True)
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (2, 0)
    assert house.hashes(home) == before


async def test_no_secret_gets_out_of_the_database(house: House, home: Path) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("one"))
    database.close()
    assert SECRET.encode() in database.path.read_bytes()
    assert (await house.sync()).new == 1
    kept = (path for path in house.folder.rglob("*") if path.is_file() and not path.is_relative_to(home))
    assert not any(SECRET.encode() in path.read_bytes() for path in kept)


async def test_what_is_added_while_it_is_in_use_is_taken_in(house: House, home: Path) -> None:
    database, made = OpenclawWriter(home), talk("one", "left")
    database.node(SESSION)
    database.window(SESSION)
    database.write(made)
    await house.sync()
    made.add("reset", reason="new")
    made.user("two")
    database.write(made)
    assert (await house.sync()).updated == 1
    assert await house.said(ID) == ["one", "left", "Begun anew (new).", "two"]
    assert await house.said(ID, "context") == ["Begun anew (new).", "two"]
    database.run("UPDATE session_nodes SET display_name = 'Engine'")
    assert (await house.sync()).updated == 1
    assert (await house.sessions.get(LOCAL, ID)).title == "Engine"


async def test_a_transcript_that_its_session_has_left_cannot_be_gone_on_with(
    house: House, home: Path
) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("one"))
    await house.sync()
    assert house.source.resume(await house.only()) is not None
    database.run("UPDATE session_nodes SET current_session_id = ?", OTHER)
    database.window(OTHER, previous_session_id=SESSION)
    database.write(talk("two", session_id=OTHER))
    await house.sync()
    assert house.source.resume(await house.sessions.get(LOCAL, ID)) is None
    new = await house.sessions.get(LOCAL, f"openclaw:{OTHER}")
    assert house.source.resume(new) == ("openclaw", "tui", "--session", KEY)
    assert new.meta["continues"] == ID


async def test_a_transcript_that_was_rewritten_is_read_again(house: House, home: Path) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("one"))
    database.add("transcript_rewrite_watermarks", session_id=SESSION, generation="a", updated_at=5)
    await house.sync()
    database.run("UPDATE transcript_events SET event_json = replace(event_json, 'one', 'two')")
    database.run("UPDATE transcript_rewrite_watermarks SET generation = 'b'")
    assert (await house.sync()).updated == 1
    assert await house.said(ID) == ["two"]
    assert (await house.sync()).parsed_files == 0


@pytest.mark.parametrize("harm", ["{torn", "", "[1]", "7", '{"type":\n"label"}'])
async def test_a_damaged_event_costs_itself_only(house: House, home: Path, harm: Any) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    made = talk("one", "two", "three")
    made.leaf = made.records[-2]["id"]
    made.records[-1]["parentId"] = made.records[1]["id"]
    database.write(made)
    database.run("UPDATE transcript_events SET event_json = ? WHERE seq = 2", harm)
    report = await house.sync()
    assert (report.failed, report.damaged_records) == ((), 0 if harm.endswith('"}') else 1)
    assert await house.said(ID) == ["one", "three"]


async def test_a_long_event_that_is_packed_is_read_like_any_other(house: House, home: Path) -> None:
    database, long = OpenclawWriter(home), "lang, sehr lang. \u6f22" * 100
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("one", long))
    database.close()
    assert long.encode() not in database.path.read_bytes()
    before = house.hashes(home)
    assert (await house.sync()).damaged_records == 0
    assert await house.said(ID) == ["one", long]
    assert (await house.sync()).parsed_files == 0
    assert house.hashes(home) == before


@pytest.mark.parametrize("harm", ["torn", "noise", "nothing", "no bytes"])
async def test_a_packed_event_that_is_damaged_costs_itself_only(house: House, home: Path, harm: str) -> None:
    database, long = OpenclawWriter(home), "long " * 1_000
    database.node(SESSION)
    database.window(SESSION)
    made = talk("one", long, "three")
    made.records[-1]["parentId"] = made.records[1]["id"]
    database.write(made)
    packed = zstandard.ZstdCompressor().compress(long.encode())
    data = {"torn": packed[:-9], "noise": b"\xff" * 40, "nothing": None, "no bytes": b""}[harm]
    database.run("UPDATE transcript_events SET event_zstd = ? WHERE seq = 2", data)
    report = await house.sync()
    assert (report.failed, report.damaged_records) == ((), 1)
    assert await house.said(ID) == ["one", "three"]


async def test_what_becomes_too_much_when_it_is_unpacked_is_not_read(
    house: House, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = OpenclawWriter(home)
    for session, texts in {SESSION: ["long " * 1_000] * 3, OTHER: ["short"]}.items():
        database.node(session, f"agent:main:{session}")
        database.window(session, f"agent:main:{session}")
        database.write(talk(*texts, session_id=session))
    monkeypatch.setattr("hitherto.sources.openclaw.source.files.LARGEST", 12_000)
    report = await house.sync()
    assert [SESSION in told and "larger than" in told for told in report.failed] == [True]
    assert await house.said(f"openclaw:{OTHER}") == ["short"]


async def test_a_packed_event_that_is_longer_than_any_is_damaged(
    house: House, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("one", "long " * 1_000))
    monkeypatch.setattr("hitherto.sources.openclaw.source.LONGEST_PACKED", 5_000)
    assert (await house.sync()).damaged_records == 1
    assert await house.said(ID) == ["one"]


async def test_a_database_with_nothing_but_transcripts_is_read(house: House, home: Path) -> None:
    OpenclawWriter(home, schema=OLDEST).write(talk("one"))
    assert (await house.sync()).new == 1
    session = await house.only()
    assert (session.title, house.source.resume(session)) == ("one", None)


async def test_a_database_of_a_later_version_is_read(house: House, home: Path) -> None:
    database = OpenclawWriter(home)
    database.run("ALTER TABLE session_nodes RENAME COLUMN label TO caption")
    database.run("ALTER TABLE session_windows ADD COLUMN mood TEXT")
    database.node(SESSION)
    database.window(SESSION)
    made = talk("one")
    made.add("hologram", beam=1)
    database.write(made)
    report = await house.sync()
    assert (report.new, report.unknown_records) == (1, 1)


async def test_an_older_transcript_lies_in_a_file(house: House, home: Path) -> None:
    path = save(home, talk("Mend the engine", "Done."))
    index = {KEY: {"sessionId": SESSION, "displayName": "Engine", "channel": "discord", "chatType": "direct"}}
    (path.parent / "sessions.json").write_text(json.dumps(index), encoding="utf-8")
    (path.parent / f"{OTHER}.jsonl.deleted.2026-11-01").write_bytes(path.read_bytes())
    before = house.hashes(home)
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (1, 1, ())
    session = await house.only()
    assert (session.id, session.title, session.meta["channel"]) == (ID, "Engine", "discord")
    assert house.source.resume(session) == ("openclaw", "tui", "--session", KEY)
    assert house.source.restorable_path(session) == path
    assert await original(house.sessions, LOCAL, ID) == path.read_bytes()
    assert (await house.sync()).parsed_files == 0
    assert house.hashes(home) == before


async def test_a_new_title_in_the_index_is_seen_and_no_other_session_is_read_again(
    house: House, home: Path
) -> None:
    path = save(home, talk("one"))
    save(home, talk("two", session_id=OTHER))
    index = path.parent / "sessions.json"
    index.write_text(json.dumps({KEY: {"sessionId": SESSION, "updatedAt": 1}}), encoding="utf-8")
    await house.sync()
    named = {"sessionId": SESSION, "updatedAt": 2, "displayName": "Engine"}
    index.write_text(json.dumps({KEY: named}), encoding="utf-8")
    report = await house.sync()
    assert (report.updated, report.parsed_files) == (1, 1)
    assert (await house.sessions.get(LOCAL, ID)).title == "Engine"
    index.write_text(json.dumps({KEY: {**named, "updatedAt": 3}}), encoding="utf-8")
    assert (await house.sync()).parsed_files == 0


async def test_while_the_index_cannot_be_read_what_it_said_stays_and_that_is_told(
    house: House, home: Path
) -> None:
    made = talk("one")
    path = save(home, made)
    index = path.parent / "sessions.json"
    whole = json.dumps({KEY: {"sessionId": SESSION, "displayName": "Engine", "channel": "discord"}})
    index.write_text(whole, encoding="utf-8")
    await house.sync()
    index.write_text(whole[:-9], encoding="utf-8")
    report = await house.sync()
    assert [failure.partition(":")[0] for failure in report.failed] == ["sessions.json"]
    assert (report.parsed_files, report.kept) == (0, 0)
    made.user("two")
    save(home, made)
    await house.sync()
    session = await house.only()
    assert (session.title, session.meta["channel"]) == ("Engine", "discord")
    assert house.source.resume(session) == ("openclaw", "tui", "--session", KEY)
    assert await house.said(ID) == ["one", "two"]


@pytest.mark.parametrize("told", ["[]", '{"a": 7, "b": {}}', '{"a": {"sessionId": 7, "label": []}}'])
async def test_an_index_that_says_nothing_does_no_harm(house: House, home: Path, told: str) -> None:
    path = save(home, talk("one"))
    (path.parent / "sessions.json").write_text(told, encoding="utf-8")
    report = await house.sync()
    assert (report.new, report.failed) == (1, ())


async def test_what_lies_in_both_is_read_from_the_database(house: House, home: Path) -> None:
    save(home, talk("old"))
    save(home, talk("other", session_id=OTHER))
    assert (await house.sync()).new == 2
    database = OpenclawWriter(home)
    database.node(SESSION)
    database.window(SESSION)
    database.write(talk("old", "new"))
    database.close()
    assert (await house.sync()).found == 2
    assert await house.said(ID) == ["old", "new"]
    whole = database.path.read_bytes()
    database.path.write_bytes(b"no database" * 1000)
    report = await house.sync()
    assert [failure.partition(":")[0] for failure in report.failed] == ["openclaw-agent.sqlite"]
    assert await house.said(ID) == ["old", "new"]
    database.path.write_bytes(whole)
    await house.sync()
    for session in (await house.sessions.find(LOCAL)).sessions:
        assert "source_gone" not in session.meta
