"""Going on: with a session of our own, and with one that Claude Code has written."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto import LOCAL, Filter
from hitherto.claude.paths import config_home
from hitherto.errors import Busy, SessionNotFound
from hitherto.ids import now_ms
from hitherto.model import Image, Text, ToolCall, ToolResult, plain_text
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Report, Sync
from tests.claude.transcripts import Writer, session_id
from tests.support.scripted_engine import Scripted, says

UUID = session_id(1)
OURS = f"claude:{UUID}"


def transcript(*, last: str = "The answer is 42.") -> Writer:
    """A transcript with a picture, a tool and an answer."""
    made = Writer(UUID, cwd="/home/ann/project")
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    made.user([{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}])
    _, call = made.call("Read", {"file_path": "/home/ann/project/a.txt"})
    made.result(call, "42")
    made.say(last)
    return made


def saved(made: Writer) -> Path:
    return made.save(config_home() / "projects")


async def synced(store: str) -> Report:
    """What `hitherto sync` does."""
    async with hitherto.open(store) as sessions:
        ledger = Ledger(Path(os.environ["HITHERTO_DATA_DIR"]) / f"sources-{sessions.admin.store_id}.db")
        try:
            source = ClaudeSource(config_home())
            return await Sync(sessions, LOCAL, ledger).run([source], source.find())
        finally:
            ledger.close()


async def count(store: str, **given: Any) -> int:
    async with hitherto.open(store) as sessions:
        return await sessions.count(LOCAL, Filter(**given))


async def test_a_session_of_ours_goes_on_where_it_was(store: str) -> None:
    async with hitherto.create_session(engine=Scripted(), store=store, cwd="/a", title="Old") as first:
        await first.prompt("One")
    engine = Scripted()
    async with hitherto.resume_session(first.session_id, engine=engine, store=store) as second:
        assert (second.session_id, second.resumed_from) == (first.session_id, None)
        await second.send("Two")
        init, *_ = [message async for message in second.stream()]
    assert isinstance(init, hitherto.SDKSystemMessage)
    assert (init.session_id, init.cwd, init.forked_from) == (first.session_id, "/a", None)
    assert [plain_text(entry) for entry in engine.turns[0].history] == ["One", "Noted.", "Two"]


async def test_a_title_and_a_folder_given_become_the_sessions_own(store: str) -> None:
    async with hitherto.create_session(engine=Scripted(), store=store, cwd="/a", title="Old") as first:
        pass
    engine = Scripted()
    options = {"engine": engine, "store": store, "cwd": "/b", "title": "New"}
    async with hitherto.resume_session(first.session_id, options):
        assert engine.setups[0].roots == ("/b",)
    async with hitherto.open(store) as sessions:
        kept = await sessions.get(LOCAL, first.session_id)
    assert (kept.cwd, kept.title, kept.title_by) == ("/b", "New", "user")


async def test_a_session_is_resumed_by_its_whole_id_only(store: str) -> None:
    async with hitherto.create_session(engine=Scripted(), store=store) as first:
        pass
    with pytest.raises(SessionNotFound):
        await hitherto.resume_session(first.session_id[:13], engine=Scripted(), store=store).prompt("Hello")


@pytest.mark.parametrize("given", [UUID, OURS])
async def test_a_transcript_of_claude_code_goes_on_as_a_fork_with_all_that_was_said(
    store: str, given: str
) -> None:
    path = saved(transcript())
    before = path.read_bytes()
    engine = Scripted(says("As I said: 42."))
    async with hitherto.resume_session(given, engine=engine, store=store) as session:
        assert session.resumed_from == OURS
        assert session.session_id not in (UUID, OURS)
        await session.send("Say it again")
        messages = [message async for message in session.stream()]
    init = messages[0]
    assert isinstance(init, hitherto.SDKSystemMessage)
    assert (init.forked_from, init.cwd) == (OURS, "/home/ann/project")
    assert {message.session_id for message in messages} == {session.session_id}
    asked, called, answered, told, now = engine.turns[0].history
    assert asked.parts == (Text(text="What is it?"), Image(mime_type="image/png", data="iVBORw0KGgo="))
    assert isinstance(called.parts[0], ToolCall)
    (result,) = answered.parts
    assert isinstance(result, ToolResult)
    assert (result.id, result.content) == (called.parts[0].id, (Text(text="42"),))
    assert (plain_text(told), plain_text(now)) == ("The answer is 42.", "Say it again")
    assert path.read_bytes() == before


async def test_of_a_compacted_transcript_the_model_gets_the_summary_and_what_follows(store: str) -> None:
    made = transcript()
    made.compact(summary="They looked for an answer.")
    made.say("Ready.")
    saved(made)
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as session:
        await session.prompt("Go on")
    assert [plain_text(entry) for entry in engine.turns[0].history] == [
        "They looked for an answer.", "Ready.", "Go on",
    ]  # fmt: skip
    async with hitherto.open(store) as sessions:
        page = await sessions.history(LOCAL, session.session_id, view="conversation")
    assert [plain_text(entry) for entry in page.entries][3:] == [
        "The answer is 42.", "Conversation compacted", "They looked for an answer.", "Ready.", "Go on", "Noted.",
    ]  # fmt: skip


async def test_resuming_the_same_transcript_again_goes_on_with_that_fork(store: str) -> None:
    saved(transcript())
    async with hitherto.resume_session(UUID, engine=Scripted(says("Mine.")), store=store) as first:
        await first.prompt("Whose?")
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as second:
        assert (second.session_id, second.resumed_from) == (first.session_id, OURS)
        await second.prompt("Still?")
    assert [plain_text(entry) for entry in engine.turns[0].history][-3:] == ["Whose?", "Mine.", "Still?"]
    assert await count(store) == 1  # the fork takes its place
    async with hitherto.resume_session(first.session_id, engine=engine, store=store) as third:
        assert (third.session_id, third.resumed_from) == (first.session_id, None)


async def test_two_who_resume_a_transcript_at_once_get_one_fork(store: str) -> None:
    saved(transcript())
    both = [hitherto.resume_session(UUID, engine=Scripted(), store=store) for _ in range(2)]
    outcomes = await asyncio.gather(*(each.prompt("Hello") for each in both), return_exceptions=True)
    assert both[0].session_id == both[1].session_id
    assert all(isinstance(each, Busy | hitherto.SDKResultMessage) for each in outcomes)
    for each in both:
        await each.close()
    assert await count(store) == 1


async def test_what_was_written_since_the_last_sync_is_read_first(store: str) -> None:
    made = transcript()
    saved(made)
    assert (await synced(store)).new == 1
    made.user("And then?")
    made.say("Then 43.")
    saved(made)
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as session:
        await session.prompt("Go on")
    assert [plain_text(entry) for entry in engine.turns[0].history][-3:] == ["And then?", "Then 43.", "Go on"]
    assert (await synced(store)).unchanged == 1


async def test_only_that_transcript_is_read_and_no_other_counts_as_gone(store: str) -> None:
    other = Writer(session_id(2))
    other.user("Elsewhere")
    saved(other)
    assert (await synced(store)).new == 1
    saved(transcript())
    third = Writer(session_id(3))
    third.user("Not yet read")
    saved(third)
    async with hitherto.resume_session(UUID, engine=Scripted(), store=store):
        pass
    assert await count(store, source="claude", archived="include") == 2
    async with hitherto.open(store) as sessions:
        assert "source_gone" not in (await sessions.get(LOCAL, f"claude:{session_id(2)}")).meta
    report = await synced(store)
    assert (report.new, report.unchanged, report.parsed_files) == (1, 2, 1)


async def test_a_session_that_was_read_goes_on_when_its_transcript_is_gone(store: str) -> None:
    path = saved(transcript())
    await synced(store)
    path.unlink()
    async with hitherto.resume_session(UUID, engine=Scripted(), store=store) as session:
        assert session.resumed_from == OURS


async def test_of_a_store_in_memory_nothing_is_left_on_disk(tmp_path: Path) -> None:
    saved(transcript())
    async with hitherto.resume_session(UUID, engine=Scripted(), store="memory:") as session:
        assert session.resumed_from == OURS
    assert os.listdir(tmp_path) == ["claude"]


async def test_a_transcript_that_was_deleted_here_comes_back_for_whoever_asks_for_it(store: str) -> None:
    saved(transcript())
    async with hitherto.resume_session(UUID, engine=Scripted(says("Mine.")), store=store) as first:
        await first.prompt("Whose?")
    async with hitherto.open(store) as sessions:
        await sessions.delete(LOCAL, OURS)
    assert (await synced(store)).new == 0
    assert await count(store, source="claude") == 0
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as second:
        assert (second.session_id, second.resumed_from) == (first.session_id, OURS)
        await second.prompt("Still?")
    assert [plain_text(entry) for entry in engine.turns[0].history][-3:] == ["Whose?", "Mine.", "Still?"]
    assert await count(store, source="claude", archived="include") == 1
    assert await count(store) == 1  # the fork has its place


async def test_what_another_agent_said_after_the_fork_was_made_is_told_of(store: str) -> None:
    made = transcript()
    saved(made)
    async with hitherto.resume_session(UUID, engine=Scripted(), store=store) as first:
        assert (await first.prompt("Whose?")).notices == ()
    made.now = now_ms() + 60_000
    made.user("And then?")
    saved(made)
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as second:
        result = await second.prompt("Still?")
        assert (await second.prompt("Well?")).notices == ()
    assert "And then?" not in [plain_text(entry) for entry in engine.turns[0].history]
    (notice,) = result.notices
    assert OURS in notice
    assert "not part of" in notice


async def test_a_transcript_that_cannot_be_read_is_told_of(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(transcript())
    monkeypatch.setattr("hitherto.sources.shared.files.LARGEST", 10)
    with pytest.raises(SessionNotFound) as caught:
        await hitherto.resume_session(UUID, engine=Scripted(), store=store).prompt("Hello")
    assert caught.value.__notes__ == [
        f"cannot read {UUID}.jsonl: larger than 10 bytes, the most that is read"
    ]


async def test_a_folder_that_cannot_be_read_is_told_of_and_takes_no_session_away(store: str) -> None:
    saved(transcript())
    projects = config_home() / "projects"
    aside = projects.rename(config_home() / "aside")
    projects.symlink_to(projects)  # a way that leads nowhere, not even to "there is none"
    with pytest.raises(SessionNotFound) as caught:
        await hitherto.resume_session(UUID, engine=Scripted(), store=store).prompt("Hello")
    (note,) = caught.value.__notes__
    assert note.startswith("cannot read projects: ")
    projects.unlink()
    aside.rename(projects)
    await synced(store)
    projects.rename(aside)
    projects.symlink_to(projects)
    engine = Scripted()
    async with hitherto.resume_session(UUID, engine=engine, store=store) as session:
        await session.prompt("And now?")
    assert "The answer is 42." in [plain_text(entry) for entry in engine.turns[0].history]
