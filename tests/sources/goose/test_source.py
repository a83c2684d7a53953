"""goose's sessions: what was said, what it cost, and what of it the agent still sees."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import hitherto
from hitherto.model import LOCAL, Audio, Image, Resource, Text, Thought, ToolCall, ToolResult, Unknown
from hitherto.sources import AGENTS
from hitherto.sources.goose.source import GooseSource
from hitherto.sources.port import Reading
from tests.sources.agent_home import House
from tests.sources.goose.goose_files import (
    AGENT_ONLY,
    CWD,
    NOBODY,
    OLDEST,
    SESSION,
    START,
    USER_ONLY,
    GooseWriter,
    request,
    response,
    text,
)

ID = f"goose:{SESSION}"


@pytest.fixture
def made(tmp_path: Path) -> GooseWriter:
    writer = GooseWriter(tmp_path / "goose")
    writer.session()
    return writer


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, GooseSource(tmp_path / "goose"))


def read(made: GooseWriter) -> Reading:
    source = GooseSource(made.path.parent.parent)
    (found,) = source.find()
    return source.read(found, None)


def texts(made: GooseWriter) -> list[str]:
    return [part.text for entry in read(made).entries for part in entry.parts if isinstance(part, Text)]


def test_each_kind_of_content_becomes_what_it_is(made: GooseWriter) -> None:
    user = made.message("user", text("Look"), {"type": "image", "data": "aGk=", "mimeType": "image/gif"})
    made.message(
        "assistant",
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        text("Reading."),
        request("developer__shell", {"command": "make"}),
        {"type": "toolConfirmationRequest", "id": "c1", "toolName": "shell", "arguments": {}},
    )
    made.message("user", response("no rule", isError=True))
    made.message("user", {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Note."})
    asked, answer, outcome, note = read(made).entries
    assert (asked.id, asked.role, asked.at) == (user, "user", (START + 1) * 1000)
    assert asked.parts == (Text(text="Look"), Image(mime_type="image/gif", data="aGk="))
    thought, said, call = answer.parts
    assert (thought, said) == (Thought(text="hm", signature="s"), Text(text="Reading."))
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.kind, call.title) == ("c1", "developer__shell", "execute", "make")
    result = ToolResult(id="c1", content=(Text(text="no rule"),), is_error=True)
    assert (outcome.role, outcome.parts) == ("tool", (result,))
    assert note.parts == (Text(text="Note."),)


def test_calls_and_results_that_went_wrong_say_so(made: GooseWriter) -> None:
    wrong = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "error", "error": "no such tool"}}
    made.message("assistant", wrong)
    failed = {"status": "error", "error": "Tool not found"}
    made.message("user", {"type": "toolResponse", "id": "c1", "toolResult": failed})
    sound = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
    page = {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}
    old = {"status": "success", "value": [sound, page]}
    made.message("user", {"type": "toolResponse", "id": "c2", "toolResult": old})
    call, bad, good = (entry.parts[0] for entry in read(made).entries)
    assert isinstance(call, ToolCall)
    assert call.input == {"error": "no such tool"}
    assert bad == ToolResult(id="c1", content=(Text(text="Tool not found"),), is_error=True)
    assert isinstance(good, ToolResult)
    assert good.content == (
        Audio(mime_type="audio/wav", data="aGk="),
        Resource(uri="file:///a", text="x"),
    )


def test_messages_come_in_the_order_of_their_times_in_whatever_unit(made: GooseWriter) -> None:
    made.user("one")
    made.user("three")
    made.user("two")
    made.run("UPDATE messages SET created_timestamp = ? WHERE id = 3", (START + 1) * 1000 + 500)
    assert texts(made) == ["one", "two", "three"]


def test_answers_of_the_same_second_have_what_each_of_them_used(made: GooseWriter) -> None:
    made.say("one")
    made.used()
    made.say("two")
    made.used(0.5)
    made.run("UPDATE messages SET created_timestamp = ?", START)
    made.run("UPDATE usage_ledger SET created_timestamp = ?", START)
    costs = [entry.usage.cost for entry in read(made).entries if entry.usage is not None]
    assert costs == [0.25, 0.5]


def test_what_was_used_is_told_by_the_answer_before_it(made: GooseWriter) -> None:
    made.run("UPDATE sessions SET provider_name = 'anthropic'")
    made.user("one")
    made.say("two")
    made.used()
    made.used(0.5)
    made.user("three")
    made.say("four")
    made.used()
    reading = read(made)
    used = {entry.id: entry.usage for entry in reading.entries if entry.usage is not None}
    first, second = used.values()
    assert (first.input, first.output, first.cache_read, first.cost) == (234, 10, 200, 0.75)
    assert (second.input, second.cost) == (117, 0.25)
    assert reading.entries[1].model == "anthropic:claude-sonnet-5"
    assert (reading.imported.meta["cost"], reading.imported.meta["models"]) == (
        1.0,
        ["anthropic:claude-sonnet-5"],
    )


def test_content_of_new_kinds_is_kept_and_counted(made: GooseWriter) -> None:
    made.message("user", text("one"), {"type": "smell", "of": "roses"})
    made.message("ghost", text("boo"))
    reading = read(made)
    assert reading.unknown == {"content smell": 1, "message ghost": 1}
    assert [type(entry.parts[-1]) for entry in reading.entries] == [Unknown, Unknown]


@pytest.mark.parametrize("harm", ["{torn", "", "{}", b"\xff\xfe", 7])
def test_a_damaged_message_costs_itself_only(made: GooseWriter, harm: Any) -> None:
    for said in ("one", "two", "three"):
        made.user(said)
    made.run("UPDATE messages SET content_json = ? WHERE id = 2", harm)
    assert texts(made) == ["one", "three"]
    assert read(made).damaged == 1


def test_a_database_of_the_first_version_is_read(tmp_path: Path) -> None:
    made = GooseWriter(tmp_path, schema=OLDEST)
    made.session(description="Engine work", accumulated_input_tokens=7)
    made.user("one")
    reading = read(made)
    assert (reading.imported.title, reading.imported.meta["usage"]) == ("Engine work", {"input": 7})
    assert [entry.id for entry in reading.entries] == ["1"]


def test_a_database_of_a_later_version_is_read(made: GooseWriter) -> None:
    made.run("ALTER TABLE sessions ADD COLUMN mood TEXT DEFAULT 'calm'")
    made.run("DROP TABLE usage_ledger")
    made.run("INSERT INTO schema_version VALUES (18)")
    made.run(
        "UPDATE sessions SET provider_name = 'openai', model_config_json = '{\"model_name\": \"gpt-5\"}'"
    )
    made.user("one")
    assert texts(made) == ["one"]
    assert read(made).imported.meta["models"] == ["openai:gpt-5"]


async def test_a_session_is_one_of_ours_and_a_second_sync_reads_nothing(
    made: GooseWriter, house: House
) -> None:
    made.run("UPDATE sessions SET name = 'CLI Session'")
    made.user("Mend the engine")
    made.say("Done.")
    made.used()
    made.session("20261101_2", name="Look around", session_type="sub_agent", parent_session_id=SESSION)
    made.user("look", session="20261101_2")
    made.session("20261101_3", session_type="hidden")
    made.user("name this", session="20261101_3")
    made.close()
    before = house.hashes(house.folder / "goose")
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (2, 2, ())
    session = await house.sessions.get(LOCAL, ID)
    assert (session.source, session.cwd, session.title) == ("goose", CWD, "Mend the engine")
    assert (session.message_count, session.cost) == (2, 0.25)
    assert (session.created_at, session.updated_at) == (START * 1000, (START + 2) * 1000)
    assert house.source.resume(session) == ("goose", "session", "--resume", "--session-id", SESSION)
    assert house.source.restorable_path(session) is None
    child = await house.sessions.get(LOCAL, "goose:20261101_2")
    assert (child.parent, child.title) == (ID, "Look around")
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (2, 0)
    assert house.hashes(house.folder / "goose") == before


async def test_what_is_added_and_what_was_taken_back_is_seen_within_the_same_second(
    made: GooseWriter, house: House
) -> None:
    made.user("one")
    made.user("two")
    await house.sync()
    made.run("DELETE FROM messages WHERE id = 2")
    made.user("three")
    assert (await house.sync()).updated == 1
    assert await house.said(ID) == ["one", "three"]
    assert len(await house.sessions.checkpoints(LOCAL, ID)) == 1


@pytest.mark.parametrize(
    ("column", "given"),
    [("content_json", [text("one"), text("more")]), ("metadata_json", USER_ONLY)],
)
async def test_what_is_written_anew_where_it_was_is_read_again(
    made: GooseWriter, house: House, column: str, given: Any
) -> None:
    made.user("one")
    await house.sync()
    made.run(f"UPDATE messages SET {column} = ?", json.dumps(given))
    assert (await house.sync()).updated == 1
    assert (await house.sync()).parsed_files == 0


async def test_a_compaction_is_one_of_ours_and_the_prompt_that_it_copies_comes_once(
    made: GooseWriter, house: House
) -> None:
    def compact(summary: str, prompt: str) -> None:
        made.run(
            "UPDATE messages SET metadata_json = json_set(metadata_json, '$.agentVisible', json('false'))"
        )
        newest = "(SELECT max(id) FROM messages)"
        made.run(f"UPDATE messages SET metadata_json = ? WHERE id = {newest}", json.dumps(NOBODY))
        made.user(summary, **AGENT_ONLY)
        made.say("The previous message is a summary.", **AGENT_ONLY)
        made.user(prompt)

    made.user("one")
    made.say("two")
    made.user("three")
    compact("All was said.", "three")
    made.message("assistant", {"type": "systemNotification", "msg": "Compacted."}, **USER_ONLY)
    await house.sync()
    told = "The previous message is a summary."
    assert await house.said(ID, "context") == ["All was said.", told, "three", "Compacted."]
    assert await house.said(ID) == ["one", "two", "All was said.", told, "three", "Compacted."]
    made.user("four")
    compact("All again.", "four")
    await house.sync()
    assert await house.said(ID, "context") == ["All again.", told, "four"]
    assert (await house.said(ID))[-4:] == ["Compacted.", "All again.", told, "four"]
    assert len(await house.sessions.checkpoints(LOCAL, ID)) >= 2


@pytest.mark.parametrize("told", [(), ("Go on.",)])
async def test_a_summary_of_a_few_calls_is_a_note(
    made: GooseWriter, house: House, told: tuple[str, ...]
) -> None:
    made.user("one")
    made.user("It ran two commands.", **AGENT_ONLY)
    for said in told:
        made.say(said, **AGENT_ONLY)
    made.say("two")
    await house.sync()
    whole = ["one", "It ran two commands.", *told, "two"]
    assert await house.said(ID, "context") == whole
    assert [entry.role for entry in await house.entries(ID)] == [
        "user",
        *["system"] * (len(told) + 1),
        "assistant",
    ]


async def test_a_note_stays_one_when_all_is_summarised_later(made: GooseWriter, house: House) -> None:
    made.user("one", **USER_ONLY)
    made.user("It ran two commands.", **NOBODY)
    made.say("two", **USER_ONLY)
    made.user("All was said.", **AGENT_ONLY)
    made.say("Go on.", **AGENT_ONLY)
    await house.sync()
    assert await house.said(ID, "context") == ["All was said.", "Go on."]
    assert len(await house.sessions.checkpoints(LOCAL, ID)) == 1


def test_a_time_without_a_zone_is_one_of_utc(made: GooseWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    made.user("one")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert read(made).imported.created_at == START * 1000
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_a_damaged_database_is_told_of_and_takes_nothing_away(made: GooseWriter, house: House) -> None:
    made.user("one")
    made.close()
    await house.sync()
    made.path.write_bytes(b"no database" * 1000)
    report = await house.sync()
    assert (report.kept, [failure.partition(":")[0] for failure in report.failed]) == (0, ["sessions.db"])
    assert "source_gone" not in (await house.sessions.get(LOCAL, ID)).meta


def test_the_environment_says_where_the_database_is(tmp_path: Path) -> None:
    home = AGENTS["goose"].home
    assert home({}) == Path.home() / ".local/share/goose"
    assert home({"XDG_DATA_HOME": str(tmp_path)}) == tmp_path / "goose"
    assert home({"XDG_DATA_HOME": "/x", "GOOSE_PATH_ROOT": str(tmp_path)}) == tmp_path / "data"
