"""Pi's transcripts: the conversation of the newest branch, and nothing lost of the rest."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL, Image, Text, Thought, ToolCall, ToolResult, Unknown
from hitherto.sources.handoff.restore import original
from hitherto.sources.pi.parse import parse
from hitherto.sources.pi.source import PiSource
from tests.sources.agent_home import House
from tests.sources.branches import Told, told
from tests.sources.pi.pi_files import CWD, SESSION, PiWriter


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, PiSource(tmp_path / "pi"))


def beside(made: PiWriter) -> Told:
    parsed = parse(made.data())
    return told(parsed.entries, parsed.branches)


def texts(made: PiWriter) -> list[str]:
    parts = (part for entry in parse(made.data()).entries for part in entry.parts)
    return [part.text for part in parts if isinstance(part, Text)]


def test_each_kind_of_message_becomes_what_it_is() -> None:
    made = PiWriter()
    made.user("Look")
    made.answer(
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
        {"type": "text", "text": "Reading."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "/srv/engine/a.py"}},
    )
    result = {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": True}
    made.add("message", message={**result, "content": [{"type": "text", "text": "no such file"}]})
    made.add("message", message={"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 2})
    image = {"type": "image", "data": "aGk=", "mimeType": "image/gif"}
    made.add("message", message={"role": "user", "content": [image]})
    parsed = parse(made.data())
    user, answer, outcome, command, picture = parsed.entries
    assert (user.role, user.parts) == ("user", (Text(text="Look"),))
    thought, said, call = answer.parts
    assert (thought, said) == (Thought(text="hm", signature="s"), Text(text="Reading."))
    assert isinstance(call, ToolCall)
    assert (call.name, call.kind, call.title) == ("read", "read", "Read /srv/engine/a.py")
    assert call.locations == ({"path": "/srv/engine/a.py"},)
    assert (answer.model, answer.tokens) == ("anthropic:claude-sonnet-5", 5)
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cost) == (117, 100, 0.25)
    (told,) = outcome.parts
    assert isinstance(told, ToolResult)
    assert (told.id, told.is_error, told.content) == ("c1", True, (Text(text="no such file"),))
    assert command.parts == (Text(text="$ ls\na.py\n(exit code 2)"),)
    assert picture.parts == (Image(mime_type="image/gif", data="aGk="),)
    assert parsed.unknown == {}


def test_the_newest_branch_is_the_conversation_and_others_are_beside_it() -> None:
    made = PiWriter()
    first = made.user("one")
    made.say("left")
    made.user("further left")
    made.leaf = first
    made.say("right")
    made.leaf = "00000002"
    made.say("further right")
    made.leaf = first
    made.say("straight on")
    right = ["one", "left", "further right"]
    assert beside(made) == (
        ["one", "straight on"],
        [right, ["one", "right"], ["one", "left", "further left"]],
    )


def test_the_conversation_may_go_back_to_another_branch() -> None:
    made = PiWriter()
    made.user("one")
    left = made.say("left")
    made.user("further left")
    made.add("leaf", targetId=left)
    further = ["one", "left", "further left"]
    assert beside(made) == (["one", "left"], [further])
    made.leaf = left
    made.say("right")
    assert beside(made) == (["one", "left", "right"], [further])
    assert parse(made.data()).unknown == {}


def test_names_labels_and_forks_are_told() -> None:
    made = PiWriter(parentSession="/srv/other.jsonl")
    first = made.user("one")
    made.add("session_info", name="Old name")
    made.add("label", targetId=first, label="start")
    made.add("session_info", name="Engine work")
    info = parse(made.data()).info
    assert (info.name, info.labels, info.forked_from) == ("Engine work", {first: "start"}, "/srv/other.jsonl")
    assert (info.session_id, info.cwd, info.first_prompt) == (SESSION, CWD, "one")


def test_a_record_of_a_new_kind_is_kept_and_counted() -> None:
    made = PiWriter()
    made.user("one")
    made.add("hologram", beam=[1])
    made.answer({"type": "smell", "of": "roses"})
    parsed = parse(made.data())
    assert parsed.unknown == {"hologram": 1, "block smell": 1}
    assert [type(entry.parts[0]) for entry in parsed.entries] == [Text, Unknown, Unknown]


def test_the_first_version_is_a_plain_list() -> None:
    made = PiWriter(version=1)
    made.user("one")
    made.say("two")
    for record in made.records[1:]:
        del record["id"], record["parentId"]
    assert texts(made) == ["one", "two"]


@pytest.mark.parametrize("harm", [b"{torn", b"\0\0\0\0", b"\xff\xfe{}", b'{"type":"message"'])
def test_damage_costs_the_damaged_records_only(harm: bytes) -> None:
    made = PiWriter()
    made.user("one")
    lines = made.data().splitlines(keepends=True)
    parsed = parse(b"".join([*lines[:1], harm, b"\n", *lines[1:]]))
    assert [entry.parts for entry in parsed.entries] == [(Text(text="one"),)]
    assert parsed.damage


async def test_a_transcript_is_a_session_and_a_second_sync_parses_nothing(house: House) -> None:
    made = PiWriter()
    made.user("Mend the engine")
    made.say("Done.")
    path = made.save(house.folder / "pi")
    before = house.hashes(house.folder / "pi")
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (1, 1, ())
    session = await house.only()
    assert (session.id, session.source, session.cwd) == (f"pi:{SESSION}", "pi", CWD)
    assert (session.title, session.message_count, session.cost) == ("Mend the engine", 2, 0.25)
    assert (session.meta["models"], session.meta["cost"]) == (["anthropic:claude-sonnet-5"], 0.25)
    assert house.source.resume(session) == ("pi", "--session", str(path))
    assert house.source.restorable_path(session) == path
    assert await original(house.sessions, LOCAL, session.id) == path.read_bytes()
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (1, 0)
    assert house.hashes(house.folder / "pi") == before


async def test_what_is_added_is_taken_in_and_a_branch_left_becomes_a_checkpoint(house: House) -> None:
    made = PiWriter()
    first = made.user("one")
    made.say("left")
    made.save(house.folder / "pi")
    await house.sync()
    made.say("more")
    made.save(house.folder / "pi")
    assert (await house.sync()).updated == 1
    session = await house.only()
    assert await house.said(session.id) == ["one", "left", "more"]
    made.leaf = first
    made.say("right")
    made.save(house.folder / "pi")
    await house.sync()
    assert await house.said(session.id) == ["one", "right"]
    assert len(await house.sessions.checkpoints(LOCAL, session.id)) == 1


async def test_a_compaction_is_one_of_ours(house: House) -> None:
    made = PiWriter()
    made.user("one")
    kept = made.say("two")
    made.add("compaction", summary="All was said.", tokensBefore=10, firstKeptEntryId=kept)
    made.user("three")
    made.save(house.folder / "pi")
    await house.sync()
    session = await house.only()
    assert await house.said(session.id, "context") == ["All was said.", "two", "three"]
    assert await house.said(session.id) == ["one", "two", "All was said.", "three"]


async def test_files_whose_names_are_no_text_are_known_again_and_missed(house: House) -> None:
    made = PiWriter()
    made.user("Look")
    strange = made.save(house.folder / "pi", os.fsdecode(b"n\xe4mlich"))
    assert (await house.sync()).new == 1
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (1, 0)
    strange.unlink()
    assert (await house.sync()).kept == 1
