"""What `claude-agent-sdk` mirrors is read like the file of the same transcript, and is one session with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

import hitherto
from hitherto.claude import HithertoSessionStore, SessionKey, SessionStoreEntry
from hitherto.model import LOCAL, Draft, Entry, Filter, Session, Text, plain_text
from hitherto.ports import Writer as StoreWriter
from hitherto.service import Sessions
from hitherto.service.catalog.quarantined import source_id
from hitherto.service.catalog.sessions import add_session
from hitherto.service.history.append import append_entries
from hitherto.sources.claude.mirror_key import TranscriptKey
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Report, Sync, find_all
from hitherto.values.days import day_of, day_text
from tests.claude import transcripts
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import SESSION, random_transcript, writer
from tests.support.homes import Home

ID = f"claude:{SESSION}"
EARLIER = TranscriptKey(project_key="-home-ann-project", session_id=SESSION).own_id


class House:
    """Claude Code's folder, a store that its sessions are mirrored to, and sync."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.config, self.sessions = folder / "claude", sessions
        self.mirror = HithertoSessionStore(sessions)
        self._ledger = folder / "ledger.db"

    async def sync(self) -> Report:
        ledger = Ledger(self._ledger)
        try:
            source = ClaudeSource(self.config)
            return await Sync(self.sessions, LOCAL, ledger).run([source], find_all([source]))
        finally:
            ledger.close()

    def save(self, made: Writer) -> Path:
        return transcripts.save(self.config / "projects", made.cwd, SESSION, made.data())

    async def append(self, records: list[Any], size: int = 1_000, **more: str) -> None:
        """Mirror records, in batches."""
        for start in range(0, len(records), size):
            part = cast("list[SessionStoreEntry]", records[start : start + size])
            await self.mirror.append(cast(SessionKey, {**_key(), **more}), part)

    async def told(self, session_id: str = ID) -> tuple[list[Entry], dict[str, Any]]:
        """What was said in a session, with its branches, and what is known of it."""
        page = await self.sessions.history(LOCAL, session_id, limit=1_000)
        session = await self.sessions.get(LOCAL, session_id)
        about = {
            name: getattr(session, name)
            for name in (
                "title",
                "cwd",
                "created_at",
                "updated_at",
                "message_count",
                "token_count",
                "tags",
                "cost",
            )
        }
        branches = await self.sessions.branches.known(LOCAL, session_id)
        about["branches"] = {source_id(each.first or ""): each.message_count for each in branches}
        about["models"] = session.meta.get("models")
        # What grew while it was read has a number behind its id.
        return [replace(entry, id=source_id(entry.id)) for entry in page.entries], about


def _key() -> SessionKey:
    return {"project_key": "-home-ann-project", "session_id": SESSION}


@pytest.fixture
async def house(tmp_path: Path, home: Home) -> AsyncIterator[House]:
    async with hitherto.open(home.url) as sessions:
        yield House(tmp_path, sessions)


def _records(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize(("seed", "size"), [(0, 30), (1, 400)])
async def test_a_mirrored_session_reads_exactly_like_its_file(
    tmp_path: Path, house: House, seed: int, size: int
) -> None:
    # The SDK gives each record once.
    records = _unrepeated(_records(random_transcript(seed, 40)))
    data = b"".join(map(transcripts.compact, records))
    await house.append(records, size=size)
    transcripts.save(tmp_path / "claude" / "projects", "/home/ann/project", SESSION, data)
    async with hitherto.open(f"memory:file-{tmp_path.name}-{seed}") as sessions:
        by_file = House(tmp_path, sessions)
        await by_file.sync()
        assert await house.told() == await by_file.told()
    assert await house.mirror.load(_key()) == records


def _unrepeated(records: list[Any]) -> list[Any]:
    first = {each["uuid"]: number for number, each in reversed([*enumerate(records)]) if "uuid" in each}
    return [each for number, each in enumerate(records) if first.get(each.get("uuid"), number) == number]


async def test_file_and_mirror_are_one_session_whichever_comes_first(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    made.say("Red or blue?")
    await house.append(made.records)
    house.save(made)
    report = await house.sync()
    assert (report.failed, report.new, report.unchanged) == ((), 0, 1)
    alone = await house.told()
    made.user("Blue")
    house.save(made)
    await house.sync()
    made.say("Blue it is.")
    await house.append(made.records)
    assert [plain_text(entry) for entry in (await house.told())[0]] == [
        "Paint the barn", "Red or blue?", "Blue", "Blue it is.",
    ]  # fmt: skip
    assert (await house.told())[0][:2] == alone[0]
    (listed,) = (await house.sessions.find(LOCAL)).sessions
    assert (listed.id, listed.source) == (ID, "claude")
    (hit,) = (await house.sessions.search(LOCAL, "barn")).hits
    assert hit.session.id == ID
    house.save(made)
    await house.sync()
    assert len((await house.told())[0]) == 4
    assert not await house.sessions.checkpoints(LOCAL, ID)
    assert (await house.sessions.admin.check(repair=False)).problems == ()


async def test_what_only_the_mirror_has_stays_when_the_file_is_read_again(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    house.save(made)
    await house.sync()
    elsewhere = [*made.records]
    made.say("Said on another machine.")
    await house.append(made.records)
    made.records[:] = elsewhere
    made.title("The barn")
    house.save(made)
    await house.sync()
    entries, about = await house.told()
    assert [plain_text(entry) for entry in entries] == ["Paint the barn", "Said on another machine."]
    assert about["title"] == "The barn"


async def test_a_subagent_of_the_mirror_belongs_to_the_call_that_started_it(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    await house.append(made.records)
    agent = Writer(SESSION)
    agent.user("Look for a brush", isSidechain=True, agentId="a1")
    meta = {"type": "agent_metadata", "agentType": "general", "toolUseId": "toolu_1"}
    await house.append([*agent.records, meta], subpath="subagents/agent-a1")
    child = await house.sessions.get(LOCAL, f"{ID}:agent-a1")
    assert (child.parent, child.meta["agent_type"], child.meta["tool_use_id"]) == (ID, "general", "toolu_1")
    listed = await house.sessions.find(LOCAL, Filter(subagents=False))
    assert [session.id for session in listed.sessions] == [ID]


async def test_what_is_erased_is_gone_from_the_records_and_from_what_quotes_them(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    secret = made.user("The code is 4711")
    made.say("Noted.")
    made.last_prompt("The code is 4711")
    await house.append(made.records)
    await house.sessions.erase(LOCAL, ID, secret["uuid"])
    left = json.dumps(await house.mirror.load(_key()))
    assert "4711" not in left
    assert "Paint the barn" in left
    await house.append([secret])
    made.user("Go on")
    await house.append(made.records[-1:])
    assert "4711" not in json.dumps(await house.mirror.load(_key()))
    assert "4711" not in json.dumps(await house.mirror.list_session_summaries(_key()["project_key"]))
    entries, _ = await house.told()
    assert [plain_text(entry) for entry in entries] == ["Paint the barn", "", "Noted.", "Go on"]
    assert (await house.sessions.search(LOCAL, "4711")).hits == ()


async def test_records_are_no_messages_in_any_count(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    made.note("mode", mode="plan")
    made.say("Red.")
    await house.append(made.records)
    day = (await house.sessions.get(LOCAL, ID)).created_at
    said = await house.sessions.find(LOCAL, Filter(day=day_text(day_of(day))))
    assert [session.message_count for session in said.sessions] == [2]
    on = day_text(day_of(day))
    overview = await house.sessions.statistics.overview(LOCAL, since_day=on, until_day=on)
    assert sum(each.messages for each in overview.days) == 2


async def _kept_earlier(house: House, records: list[Any]) -> Session:
    """What an earlier version of the program kept of a mirrored transcript: each record as a message."""
    core = house.sessions.core
    meta = {
        "claude_sdk": {**_key(), "summary": {"first_prompt": "Paint the barn", "first_prompt_locked": True}}
    }
    session = Session(
        id=EARLIER, revision=1, created_at=1_000, updated_at=1_000, agent_id="claude",
        channel="claude-sdk:-home-ann-project", source="claude-agent-sdk", title="Barn", title_by="auto", meta=meta,
    )  # fmt: skip
    entries = [
        Entry(
            id=each.get("uuid") or f"own-{number}",
            at=5_000,
            role=each["type"] if each["type"] in ("user", "assistant") else "system",
            parts=(Text(text=str(each.get("message", {}).get("content"))),) if "message" in each else (),
            meta={"claude_sdk": each},
        )
        for number, each in enumerate(records)
    ]

    async def work(tx: StoreWriter) -> Session:
        record = await add_session(tx, LOCAL.owner, session)
        return (await append_entries(tx, record, entries, 6_000, core.store.secret)).session

    return await core.store.write(work)


async def test_what_an_earlier_version_kept_is_read_again_and_joined_with_its_file(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    made.say("Red or blue?")
    secret = made.user("The code is 4711")
    made.note("mode", mode="plan")
    await _kept_earlier(house, made.records)
    await house.sessions.erase(LOCAL, EARLIER, secret["uuid"])
    await house.sessions.rename(LOCAL, EARLIER, "Mine")
    await house.sessions.tag(LOCAL, EARLIER, add=["red"])
    fork = await house.sessions.fork(LOCAL, EARLIER)
    house.save(made)
    report = await house.sync()
    assert report.failed == ()
    for name in (EARLIER, ID):
        session = await house.sessions.get(LOCAL, name)
        assert (session.id, session.title, session.tags) == (ID, "Mine", ("red",))
    assert await house.sessions.resolve(LOCAL, EARLIER) == ID
    assert (await house.sessions.get(LOCAL, fork.id)).parent == ID
    assert len((await house.sessions.find(LOCAL, Filter(native=False))).sessions) == 1
    entries, about = await house.told()
    assert [plain_text(entry) for entry in entries] == ["Paint the barn", "Red or blue?", ""]
    assert about["created_at"] == entries[0].at > 1_000
    kept = [made.records[0], made.records[1], made.records[3]]
    assert await house.mirror.load(_key()) == kept
    await house.append(made.records[:2])
    assert await house.mirror.load(_key()) == kept
    await house.sessions.append(LOCAL, fork.id, Draft(role="user", parts=(Text(text="go on"),)))
    assert (await house.sessions.admin.check(repair=False)).problems == ()


async def test_what_an_earlier_version_kept_is_loaded_before_it_is_read_again(house: House) -> None:
    made = writer()
    made.user("Paint the barn")
    await _kept_earlier(house, made.records)
    assert await house.mirror.load(_key()) == made.records
    (listed,) = await house.mirror.list_sessions(_key()["project_key"])
    assert listed["session_id"] == SESSION
    made.say("Red.")
    await house.append(made.records)
    assert await house.mirror.load(_key()) == made.records
    assert [plain_text(entry) for entry in (await house.told())[0]] == ["Paint the barn", "Red."]
