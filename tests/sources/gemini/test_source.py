"""Gemini CLI's transcripts: what the operations come to, each message once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Entry, Image, ResourceLink, Text, Thought, ToolCall, ToolResult, Unknown
from hitherto.sources.gemini.parse import parse, parse_document
from hitherto.sources.gemini.source import GeminiSource
from hitherto.sources.handoff.restore import original
from tests.sources.agent_home import House
from tests.sources.branches import Told, told
from tests.sources.gemini.gemini_files import CWD, SESSION, GeminiWriter, call, mark

ID = f"gemini:{SESSION}"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, GeminiSource(tmp_path / "gemini"))


def texts(entries: tuple[Entry, ...]) -> list[str]:
    return [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]


def beside(made: GeminiWriter) -> Told:
    conversation = parse(made.data()).conversation
    return told(conversation.entries, conversation.branches)


def said(made: GeminiWriter) -> list[str]:
    return texts(parse(made.data()).conversation.entries)


def test_each_kind_of_message_becomes_what_it_is() -> None:
    made = GeminiWriter()
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    page = {"fileData": {"fileUri": "gs://a/b.pdf", "mimeType": "application/pdf"}}
    user = made.add("user", ["Look", picture, page])
    thought = {"subject": "Plan", "description": "read it", "timestamp": "2026-11-01T10:00:00Z"}
    made.say(
        "Reading.", thoughts=[thought], toolCalls=[call("read_file", {"absolute_path": "/srv/a.py"}, "x = 1")]
    )
    made.add("error", "No quota.")
    told = parse(made.data()).conversation
    asked, answer, outcome, error = told.entries
    assert (asked.id, asked.role, asked.at) == (user, "user", 1_793_527_203_000)
    assert asked.parts == (
        Text(text="Look"),
        Image(mime_type="image/png", data="aGk="),
        ResourceLink(uri="gs://a/b.pdf", mime_type="application/pdf"),
    )
    thinking, text, tool = answer.parts
    assert (thinking, text) == (Thought(text="Plan\nread it"), Text(text="Reading."))
    assert isinstance(tool, ToolCall)
    assert (tool.id, tool.kind, tool.title) == ("c1", "read", "Read /srv/a.py")
    assert (answer.model, answer.tokens) == ("gemini-3-pro", 7)
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cost) == (117, 100, None)
    assert (outcome.role, outcome.parts) == ("tool", (ToolResult(id="c1", content=(Text(text="x = 1"),)),))
    assert (error.role, error.meta) == ("system", {"error": "No quota."})
    assert told.unknown == {}


def test_a_message_that_comes_again_is_the_later_one_in_its_first_place() -> None:
    made = GeminiWriter()
    id = made.say("", toolCalls=[{"id": "c1", "name": "x", "args": {}, "status": "executing"}])
    made.user("two")
    assert [entry.role for entry in parse(made.data()).conversation.entries] == ["assistant", "user"]
    made.add("gemini", "one", id=id, toolCalls=[call("x", {}, status="cancelled")])
    entries = parse(made.data()).conversation.entries
    assert [entry.role for entry in entries] == ["assistant", "tool", "user"]
    assert texts(entries) == ["one", "two"]
    assert isinstance(entries[1].parts[0], ToolResult)
    assert entries[1].parts[0].is_error


def test_calls_are_told_once_even_if_the_content_has_them_too() -> None:
    made = GeminiWriter()
    content = [{"text": "one"}, {"functionCall": {"id": "c1", "name": "x", "args": {}}}]
    made.add("gemini", content, toolCalls=[call("x", {})])
    made.add("user", call("x", {})["result"])
    lone = {"functionResponse": {"id": "c9", "name": "y", "response": {"error": "no"}}}
    made.add("user", [lone])
    answer, result, other = parse(made.data()).conversation.entries
    assert [type(part) for part in (*answer.parts, *result.parts)] == [Text, ToolCall, ToolResult]
    assert (other.role, other.parts) == (
        "tool",
        (ToolResult(id="c9", content=(Text(text="no"),), is_error=True),),
    )


def test_what_came_of_a_call_that_its_list_knows_nothing_of_is_told_by_the_content() -> None:
    made = GeminiWriter()
    made.add("gemini", "one", toolCalls=[call("x", {}, status="executing", result=None)])
    made.add("user", call("x", {})["result"])
    assert [entry.role for entry in parse(made.data()).conversation.entries] == ["assistant", "tool"]


def test_going_back_makes_a_branch_of_a_message_and_all_behind_it() -> None:
    made = GeminiWriter()
    made.user("one")
    second = made.user("two")
    made.user("three")
    made.rewind(second)
    made.user("four")
    assert beside(made) == (["one", "four"], [["one", "two", "three"]])
    made.rewind("nobody")
    assert sorted(texts(parse(made.data()).conversation.entries)) == ["four", "one", "three", "two"]
    assert beside(made)[0] == []


def test_what_is_set_later_wins() -> None:
    made = GeminiWriter()
    made.user("/help")
    made.user("Mend the engine")
    parsed = parse(made.data())
    assert (parsed.info.summary, parsed.conversation.title) == (None, "Mend the engine")
    made.set(summary="Engine")
    made.set(summary="Engine work", directories=["/srv/more", 7])
    info = parse(made.data()).info
    assert (info.session_id, info.summary, info.directories) == (SESSION, "Engine work", ("/srv/more",))


def test_masked_messages_take_the_place_of_what_they_were() -> None:
    made = GeminiWriter()
    made.user("one")
    made.user("two")
    made.set(messages=[made.messages[0], {**made.messages[1], "content": "masked"}])
    made.user("three")
    assert said(made) == ["one", "masked", "three"]


def test_a_session_that_was_gone_on_with_still_says_when_what_and_with_which_model() -> None:
    made = GeminiWriter()
    made.user("<session_context>\nToday\n</session_context>")
    made.user("one")
    answer = made.say("", toolCalls=[call("x", {"path": "/srv/a.py"}, description="a.py")])
    made.add("user", call("x", {})["result"])
    before = parse(made.data())
    made.records.append({**made.records[0], "startTime": "2026-12-01T10:00:00Z"})
    again = [
        {
            "id": each["id"],
            "timestamp": "2026-12-01T10:00:00Z",
            "type": each["type"],
            "content": each["content"],
        }
        for each in made.messages
    ]
    called = {"functionCall": {"id": "c1", "name": "x", "args": {"path": "/srv/a.py"}}}
    response = {**again[-1], "id": f"{answer}_response"}
    made.set(messages=[again[0]])
    made.set(messages=[*again[:2], {**again[2], "content": [called]}, response, again[3]])
    after = parse(made.data())
    assert after.conversation.entries == before.conversation.entries
    assert after.info.created_at == before.info.created_at


def test_the_older_document_says_the_same() -> None:
    made = GeminiWriter(summary="Engine work")
    made.user("one")
    made.say("two", toolCalls=[call("x", {})])
    new, old = parse(made.data()), parse_document(made.document())
    assert (old.conversation.entries, old.info.summary) == (new.conversation.entries, "Engine work")


def test_of_a_damaged_document_the_whole_messages_are_read() -> None:
    made = GeminiWriter(summary='Engine "work"')
    for number in range(3):
        made.user(f"say {number}")
    data = made.document()
    torn = parse_document(data[: data.index(b"say 2")])
    assert (torn.info.session_id, torn.conversation.damaged) == (SESSION, 1)
    assert (torn.info.summary, texts(torn.conversation.entries)) == ('Engine "work"', ["say 0", "say 1"])
    holed = parse_document(data.replace(b'"say 1"', b'"say \0\0'))
    assert texts(holed.conversation.entries) == ["say 0", "say 2"]


def test_records_of_new_kinds_are_kept_where_they_stand_and_counted() -> None:
    made = GeminiWriter()
    made.user("one")
    made.add("hologram", "beam")
    made.records.append({"$dance": 1})
    made.add("user", [{"text": "two"}, {"smell": "roses"}])
    told = parse(made.data()).conversation
    assert told.unknown == {"record hologram": 1, "record $dance": 1, "part smell": 1}
    assert [type(entry.parts[-1]) for entry in told.entries] == [Text, Unknown, Unknown, Unknown]
    assert texts(told.entries) == ["one", "two"]


@pytest.mark.parametrize("harm", [b"{torn", b"\0\0\0\0", b"\xff\xfe{}", b'{"id":"m9","type":"user"'])
def test_damage_costs_the_damaged_records_only(harm: bytes) -> None:
    made = GeminiWriter()
    made.user("one")
    lines = made.data().splitlines(keepends=True)
    told = parse(b"".join([*lines[:1], harm, b"\n", *lines[1:]])).conversation
    assert (texts(told.entries), told.damaged) == (["one"], 1)


async def test_a_transcript_is_a_session_and_a_second_sync_parses_nothing(house: House) -> None:
    home = house.folder / "gemini"
    made = GeminiWriter()
    made.user("Mend the engine")
    made.say("Done.")
    path = made.save(home)
    child = GeminiWriter("5e551022-2222-4000-8000-000000000002", kind="subagent")
    child.user("look")
    child.save(home, parent=SESSION)
    mark(home)
    before = house.hashes(home)
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (2, 2, ())
    session = await house.sessions.get(LOCAL, ID)
    assert (session.source, session.cwd, session.title) == ("gemini", CWD, "Mend the engine")
    assert (session.message_count, session.meta["models"]) == (2, ["gemini-3-pro"])
    assert house.source.resume(session) == ("gemini", "--resume", SESSION)
    assert house.source.restorable_path(session) == path
    assert await original(house.sessions, LOCAL, ID) == path.read_bytes()
    part = await house.sessions.get(LOCAL, f"gemini:{child.session_id}")
    assert (part.parent, part.cwd, house.source.resume(part)) == (ID, CWD, None)
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (2, 0)
    assert house.hashes(home) == before


async def test_a_torn_last_line_waits(house: House) -> None:
    made = GeminiWriter()
    made.user("one")
    path = made.save(house.folder / "gemini")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id":"m9","type":"us')
    report = await house.sync()
    assert (report.new, report.damaged_records) == (1, 0)
    path.write_bytes(whole + b'{"id":"m9","type":"user","content":"two"}\n')
    assert (await house.sync()).updated == 1
    assert await house.said(ID) == ["one", "two"]


async def test_a_document_that_was_gone_on_with_is_one_session(house: House) -> None:
    made = GeminiWriter()
    made.user("one")
    made.save(house.folder / "gemini", old=True)
    assert (await house.sync()).new == 1
    made.user("two")
    made.save(house.folder / "gemini")
    report = await house.sync()
    assert (report.found, report.updated, report.kept) == (1, 1, 0)
    session = await house.only()
    assert await house.said(session.id) == ["one", "two"]


async def test_a_second_transcript_in_which_nobody_says_anything_is_no_session(house: House) -> None:
    made = GeminiWriter()
    made.user("<session_context>\nToday\n</session_context>")
    second = made.data()
    made.user("one")
    path = made.save(house.folder / "gemini")
    await house.sync()
    path.with_name(path.name.replace("T10-00", "T10-01")).write_bytes(second)
    await house.sync()
    assert (await house.only()).id == ID
    assert (await house.said(ID))[-1] == "one"


@pytest.mark.parametrize("with_context", [False, True])
async def test_a_compression_is_a_compaction_of_ours(house: House, *, with_context: bool) -> None:
    made = GeminiWriter()
    if with_context:
        made.user("<session_context>\nToday\n</session_context>")
    made.user("one")
    made.say("two")
    made.user("three")
    summary = {"id": "s1", "timestamp": "2026-11-01T10:30:00Z", "type": "user", "content": "All was said."}
    got = {"id": "s2", "timestamp": "2026-11-01T10:30:00Z", "type": "gemini", "content": "Got it."}
    made.set(messages=[*(made.messages[:1] if with_context else ()), summary, got, made.messages[-1]])
    made.user("four")
    made.save(house.folder / "gemini")
    await house.sync()
    assert await house.said(ID, "context") == ["All was said.", "three", "Got it.", "four"]
    whole = ["one", "two", "three", "All was said.", "Got it.", "four"]
    assert (await house.said(ID))[-len(whole) :] == whole
    # Going on with it tells all of it again, as far as the model has it.
    made.records.append(made.records[0])
    context = made.messages[:1] if with_context else []
    if with_context:
        made.set(messages=context)
    made.set(messages=[*context, summary, got, *made.messages[-2:]])
    made.user("five")
    made.save(house.folder / "gemini")
    await house.sync()
    assert await house.said(ID, "context") == ["All was said.", "three", "Got it.", "four", "five"]
    assert (await house.said(ID))[-len(whole) - 1 :] == [*whole, "five"]


def test_a_message_that_takes_the_place_of_the_last_one_is_no_summary() -> None:
    made = GeminiWriter()
    made.user("one")
    made.user("two")
    made.set(messages=[made.messages[0], {"id": "m9", "type": "user", "content": "three"}])
    assert beside(made) == (["one", "three"], [["one", "two"]])
    assert parse(made.data()).conversation.compactions == ()


@pytest.mark.parametrize("how", ["slug", "hash", "broken", "nothing"])
async def test_the_folder_is_told_by_the_list_of_projects(house: House, how: str) -> None:
    home = house.folder / "gemini"
    made = GeminiWriter()
    made.user("one")
    made.save(home, slug=hashlib.sha256(CWD.encode()).hexdigest() if how == "hash" else "engine")
    told = {"slug": json.dumps({"projects": {CWD: "engine"}}), "broken": "{torn", "nothing": "[]"}
    listed = told.get(how, json.dumps({"projects": {CWD: "other"}}))
    (home / "projects.json").write_text(listed, encoding="utf-8")
    assert (await house.sync()).failed == ()
    assert (await house.only()).cwd == (CWD if how in ("slug", "hash") else None)


async def test_only_transcripts_are_read_and_links_not_followed(house: House) -> None:
    home = house.folder / "gemini"
    made = GeminiWriter()
    made.user("one")
    path = made.save(home)
    (path.parent / "session-link.jsonl").symlink_to(path)
    (path.parent / "notes.jsonl").write_bytes(made.data())
    (path.parent.parent / "logs.json").write_bytes(b"[]")
    (home / "oauth_creds.json").write_bytes(b"{}")
    assert (await house.sync()).found == 1


async def test_a_copy_in_the_folder_that_the_project_had_before_changes_nothing(house: House) -> None:
    made = GeminiWriter()
    made.user("Look")
    made.save(house.folder / "gemini", slug="z-old")
    made.say("Seen.")
    made.save(house.folder / "gemini", slug="a-new")
    report = await house.sync()
    assert (report.found, report.new) == (1, 1)
    assert await house.said((await house.only()).id) == ["Look", "Seen."]


def test_thoughts_are_there_once_after_a_resume() -> None:
    made = GeminiWriter()
    made.user("one")
    made.say("two", thoughts=[{"subject": "Considering", "description": "It is red."}])
    first = parse(made.data()).conversation.entries
    prompt, answer = made.messages
    content = [{"text": "**Considering** It is red.", "thought": True}, {"text": "two"}]
    made.set(messages=[prompt, {"id": answer["id"], "type": "gemini", "content": content}])
    assert [entry.parts for entry in parse(made.data()).conversation.entries] == [
        entry.parts for entry in first
    ]


@pytest.mark.parametrize("wrapped", ["{}", "<untrusted_context>\n{}\n</untrusted_context>"])
@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("Output: grass\nExit Code: 6\nProcess Group PGID: 804", True),
        ("Output: grass\nExit Code: 0", False),
        ("Output: Exit Code: 6\nExit Code: 0", False),
        ("Output: grass", False),
    ],
)
def test_a_command_that_exits_with_an_error_has_failed(wrapped: str, output: str, failed: bool) -> None:
    made = GeminiWriter()
    told = wrapped.format(output)
    made.say("", toolCalls=[call("run_shell_command", {"command": "x"}, told)])
    made.say("", toolCalls=[call("read_file", {"path": "x"}, told, id="c2")])
    results = [entry.parts[0] for entry in parse(made.data()).conversation.entries if entry.role == "tool"]
    assert [part.is_error for part in results if isinstance(part, ToolResult)] == [failed, False]
