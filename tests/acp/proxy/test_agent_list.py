"""The proxy in front of an agent that has sessions of its own: they are listed, opened and recorded, each of them once."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, RECORDED_IN, RECORDS, Entry, Filter, Json, Role, Text
from hitherto.service import Sessions
from hitherto.sources.opencode.source import OpencodeSource
from hitherto.sources.sync.recordings import has_unrecorded_prompts, source_of_agent, unlink_extended
from tests.acp.proxy.in_process import editor, heard, line_agent
from tests.acp.wire import Refusal, Talk, texts, url_of
from tests.sources.agent_home import House
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.opencode.opencode_files import text as said

LISTS: Json = {"loadSession": True, "sessionCapabilities": {"list": {}}}


def own(folder: Path, *names: str) -> list[Json]:
    return [
        {
            "sessionId": name,
            "cwd": str(folder),
            "title": f"Title of {name}",
            "updatedAt": "2026-01-02T03:04:05Z",
        }
        for name in names
    ]


async def walked(talk: Talk, **given: object) -> list[Json]:
    """The whole list, page by page."""
    rows: list[Json] = []
    cursor: Json = {}
    for _ in range(20):
        page = await talk.call("session/list", {**given, **cursor})
        rows += page["sessions"]
        if "nextCursor" not in page:
            return rows
        cursor = {"cursor": page["nextCursor"]}
    raise AssertionError("the list has no end")


async def test_sessions_that_only_the_agent_has_are_listed_behind_ours_and_each_once(tmp_path: Path) -> None:
    elsewhere = {"sessionId": "far", "cwd": "/elsewhere", "title": None}
    rows = [
        *own(tmp_path, "a", "b", "c"),
        elsewhere,
        {"sessionId": "no folder"},
        "no row",
        *own(tmp_path, "d"),
    ]
    async with editor(tmp_path, line_agent(tmp_path, _own=rows, **LISTS)) as talk:
        ours = await talk.new(tmp_path)
        await talk.prompt(ours, "Paint the barn")
        listed = await walked(talk)
        here = await walked(talk, cwd=str(tmp_path))
        narrow = await walked(talk, search="barn")
        away = await walked(talk, archived="only", cwd="/elsewhere")
    assert [row["sessionId"] for row in listed] == [ours, "line:a", "line:b", "line:c", "line:far", "line:d"]
    assert (listed[1]["title"], listed[1]["archived"]) == ("Title of a", False)
    assert [row["sessionId"] for row in here] == [ours, "line:a", "line:b", "line:c", "line:d"]
    assert [row["sessionId"] for row in narrow] == [ours]
    assert away == []


async def test_an_agent_that_cannot_open_its_sessions_again_or_refuses_to_list_them_has_none(
    tmp_path: Path,
) -> None:
    half: tuple[Json, ...] = ({"sessionCapabilities": {"list": {}}}, {"loadSession": True})
    for able in half:
        async with editor(tmp_path, line_agent(tmp_path, _own=own(tmp_path, "a"), **able)) as talk:
            assert await walked(talk) == []
    broken = [{"sessionId": "a", "cwd": str(tmp_path)}] * 3  # its cursors lead nowhere
    async with editor(tmp_path, line_agent(tmp_path, _own=broken, **LISTS)) as talk:
        assert len(await walked(talk)) <= 2


async def test_a_session_that_only_the_agent_has_is_loaded_gone_on_with_and_recorded(tmp_path: Path) -> None:
    command = line_agent(tmp_path, _own=own(tmp_path, "a", "b"), **LISTS)
    async with editor(tmp_path, command) as talk:
        replay = await talk.load("line:a", tmp_path)
        assert texts(replay) == "First answerSecond answer"
        assert [u["currentModeId"] for u in talk.updates("line:a") if "currentModeId" in u] == ["calm"]
        answer = await talk.prompt("line:a", "Third question")
        goes_on = answer["_meta"]["hitherto/continuedAs"]
        assert [row["sessionId"] for row in await walked(talk)] == [goes_on, "line:b"]
        with pytest.raises(Refusal) as refused:
            await talk.load("line:unknown", tmp_path)
        assert refused.value.code == -32002
    async with editor(tmp_path, command) as talk:
        replay = await talk.load(goes_on, tmp_path)
        assert texts(replay) == "First answerSecond answerYou said: Third question"
        await talk.prompt(goes_on, "Fourth question")
    prompts = heard(tmp_path, "session/prompt")
    assert [(each["sessionId"], len(each["prompt"])) for each in prompts] == [("a", 1), ("a", 1)]
    assert len(heard(tmp_path, "session/new")) == 0
    async with hitherto.open(url_of(tmp_path)) as sessions:
        copy, recording = await sessions.get(LOCAL, "line:a"), await sessions.get(LOCAL, goes_on)
        assert (copy.title, copy.source, copy.archived) == ("Title of a", "line", True)
        assert (copy.meta[RECORDED_IN], recording.meta[RECORDS]) == (goes_on, ["line:a"])
        assert recording.message_count == 8


async def test_a_session_that_only_the_agent_has_is_forked_named_archived_and_deleted(tmp_path: Path) -> None:
    command = line_agent(tmp_path, _own=own(tmp_path, "a", "b", "c", "d"), **LISTS)
    async with editor(tmp_path, command) as talk:
        given = {"sessionId": "line:a", "cwd": str(tmp_path), "mcpServers": []}
        fork = (await talk.call("session/fork", given))["sessionId"]
        assert texts(await talk.load(fork, tmp_path)) == "First answerSecond answer"
        await talk.call("session/set_title", {"sessionId": "line:b", "title": "Mine"})
        assert texts(await talk.load("line:b", tmp_path)) == "First answerSecond answer"
        assert (await talk.call("session/status", {"sessionId": "line:c"}))["status"] == "saved"
        await talk.call("session/archive", {"sessionId": "line:c"})
        await talk.call("session/delete", {"sessionId": "line:d"})
        rows = {row["sessionId"]: row["title"] for row in await walked(talk)}
    assert rows == {fork: "Title of a", "line:a": "Title of a", "line:b": "Mine"}


async def test_deleting_a_recording_keeps_the_agents_own_session_out_of_lists(tmp_path: Path) -> None:
    rows = own(tmp_path, "a")
    async with editor(tmp_path, line_agent(tmp_path, _own=rows, **LISTS)) as talk:
        await talk.load("line:a", tmp_path)
        goes_on = (await talk.prompt("line:a", "More"))["_meta"]["hitherto/continuedAs"]
        await talk.call("session/delete", {"sessionId": goes_on})
        assert await walked(talk) == []
    async with hitherto.open(url_of(tmp_path)) as sessions:
        assert (await sessions.find(LOCAL, Filter(archived="include"))).sessions == ()


# With the agent's own files


class Timed(OpencodeWriter):
    """Writes what was said at the time that it is told."""

    at = 0

    def _next(self) -> tuple[int, int]:
        return super()._next()[0], self.at

    def turn(self, session: str, prompt: str, answer: str, at: int) -> None:
        self.at = at
        self.user(prompt, session)
        self.at = at + 1
        self.answer(said(answer), session=session)
        self.run("UPDATE session SET time_updated = ? WHERE id = ?", at + 1, session)


class Both:
    """opencode's database, a store, and an agent that calls itself so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, Timed(folder / "opencode")
        self.command = line_agent(folder, _name="OpenCode", loadSession=True)

    async def synced(self, sessions: Sessions) -> list[str]:
        """Sync as the command does, and what is listed then."""
        since = await sessions.changes.newest(LOCAL)
        report = await House(self.folder, sessions, OpencodeSource(self.folder / "opencode")).sync()
        assert report.failed == ()
        await unlink_extended(sessions, LOCAL, since)
        return [session.id for session in (await sessions.find(LOCAL)).sessions]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    return Both(tmp_path)


async def test_a_session_that_was_recorded_is_not_listed_again_when_it_is_synced(both: Both) -> None:
    async with editor(both.folder, both.command) as talk:
        recording = await talk.new(both.folder)
        await talk.prompt(recording, "Paint the barn")
    (behind,) = {each["sessionId"] for each in heard(both.folder, "session/prompt")}
    async with hitherto.open(url_of(both.folder)) as sessions:
        at = (await sessions.history(LOCAL, recording)).entries[0].at
        both.made.session(behind, directory=str(both.folder))
        both.made.turn(behind, "Paint the barn", "You said: Paint the barn", at + 1)
        assert await both.synced(sessions) == [recording]
        copy = await sessions.get(LOCAL, f"opencode:{behind}")
        assert (copy.message_count, copy.archived, copy.meta[RECORDED_IN]) == (2, True, recording)
        hits = (await sessions.search(LOCAL, "barn")).hits
        assert [hit.session.id for hit in hits] == [recording]
        assert await both.synced(sessions) == [recording]

        both.made.turn(behind, "And the fence", "Done", at + 3_600_000)  # said past the proxy
        assert set(await both.synced(sessions)) == {recording, copy.id}
        assert RECORDED_IN not in (await sessions.get(LOCAL, copy.id)).meta
    async with editor(both.folder, both.command) as talk:  # which does not make it vanish again
        await talk.load(recording, both.folder)
        await talk.prompt(recording, "Which colour?")
    async with hitherto.open(url_of(both.folder)) as sessions:
        assert set(await both.synced(sessions)) == {recording, copy.id}
        await sessions.delete(LOCAL, recording)
        assert await both.synced(sessions) == [copy.id]


async def test_a_synced_session_goes_on_in_its_own_agent_and_is_listed_once(both: Both) -> None:
    both.made.session("ses_1", directory=str(both.folder))
    both.made.turn("ses_1", "Paint the barn", "Painted", 1_700_000_000_000)
    async with hitherto.open(url_of(both.folder)) as sessions:
        assert await both.synced(sessions) == ["opencode:ses_1"]
    async with editor(both.folder, both.command) as talk:
        assert texts(await talk.load("opencode:ses_1", both.folder)) == "Painted"
        goes_on = (await talk.prompt("opencode:ses_1", "Again"))["_meta"]["hitherto/continuedAs"]
        assert [row["sessionId"] for row in await walked(talk)] == [goes_on]
    (prompt,) = heard(both.folder, "session/prompt")
    assert (prompt["sessionId"], len(prompt["prompt"])) == ("ses_1", 1)  # it knows what was said
    async with hitherto.open(url_of(both.folder)) as sessions:
        at = (await sessions.history(LOCAL, goes_on)).entries[2].at
        both.made.turn("ses_1", "Again", "You said: Again", at + 1)
        assert await both.synced(sessions) == [goes_on]
        assert (await sessions.get(LOCAL, "opencode:ses_1")).message_count == 4
        await sessions.delete(LOCAL, goes_on)
        both.made.turn("ses_1", "Once more", "No", at + 60_000)
        assert await both.synced(sessions) == []
    async with editor(both.folder, both.command) as talk:  # no word of having gone on elsewhere
        with pytest.raises(Refusal):
            await talk.load("opencode:ses_1", both.folder)


@pytest.mark.parametrize(
    ("agent", "source"),
    [
        ("OpenCode", "opencode"),
        ("goose", "goose"),
        ("@agentclientprotocol/claude-agent-acp", "claude"),
        ("Codex CLI", "codex"),
        ("Copilot", "copilot"),
        ("!", "agent"),
    ],
)
def test_an_agent_is_known_by_a_word_of_its_name(agent: str, source: str) -> None:
    assert source_of_agent(agent) == source


def test_what_was_prompted_while_nothing_was_recorded_is_more() -> None:
    recorded = [_said("user", 100_000), _said("assistant", 200_000), _said("user", 300_000)]
    assert not has_unrecorded_prompts([_said("user", 100_010), _said("user", 300_020)], recorded, 90_000)
    assert not has_unrecorded_prompts([_said("user", 299_000)], recorded, 90_000)  # rounded to a second
    assert not has_unrecorded_prompts([_said("user", 150_000)], recorded, 90_000)  # while a turn ran
    assert not has_unrecorded_prompts([_said("user", 50_000)], recorded, 90_000)
    assert has_unrecorded_prompts([_said("user", 250_000)], recorded, 90_000)
    assert has_unrecorded_prompts([_said("user", 400_000)], recorded, 90_000)
    assert not has_unrecorded_prompts([_said("assistant", 400_000)], recorded, 90_000)


def _said(role: Role, at: int) -> Entry:
    return Entry(id=str(at), at=at, role=role, parts=(Text(text="x"),))
