"""Where messages differ from the SDK's on purpose; docs/claude.md has a row for each."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest

from hitherto.claude import (
    Damage,
    SessionMessage,
    check_session,
    get_session_messages,
    get_subagent_messages,
    list_subagents,
    transcript,
)
from tests.claude.transcripts import Writer, compact, save, session_id

CWD = "/home/ann/project"
ID = session_id(1)


@pytest.fixture
def writer() -> Writer:
    return Writer(ID, CWD)


@pytest.fixture(autouse=True, params=["read as a whole", "read in blocks"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading a transcript, in turn: the second is meant for very large ones."""
    if request.param == "read in blocks":
        monkeypatch.setattr(transcript, "WHOLE", 0)
    return str(request.param)


def texts(messages: list[SessionMessage] | list[sdk.SessionMessage]) -> list[Any]:
    """What was said, a text where it is one."""
    contents = [message.message["content"] for message in messages]
    return [content[0]["text"] if isinstance(content, list) else content for content in contents]


def said(**options: Any) -> list[Any]:
    return texts(get_session_messages(ID, **options))


def said_to_sdk() -> list[Any]:
    return texts(sdk.get_session_messages(ID))


def test_line_ends_of_unicode_are_part_of_what_was_said(projects: Path, writer: Writer) -> None:
    text = "one\u2028two\u2029three\u0085four\x0bfive\x1csix"
    writer.user(text)
    writer.say(text)
    writer.save(projects)
    assert said() == [text, text]


def test_messages_that_a_compaction_kept_are_shown(projects: Path, writer: Writer) -> None:
    writer.user("forgotten")
    writer.say("forgotten too")
    kept = [writer.user("kept prompt")["uuid"], writer.say("kept answer")["uuid"]]
    writer.compact(keep=kept, summary="what was forgotten")
    writer.save(projects)
    assert said() == ["what was forgotten", "kept prompt", "kept answer"]

    writer.user("after")
    writer.save(projects)
    assert said_to_sdk() == ["what was forgotten", "after"]
    assert said() == said(branch="cli") == ["what was forgotten", "kept prompt", "kept answer", "after"]


def test_what_follows_may_hang_on_the_last_kept_message(projects: Path, writer: Writer) -> None:
    writer.user("forgotten")
    kept = [writer.user("kept prompt")["uuid"], writer.say("kept answer")["uuid"]]
    writer.compact(keep=kept, summary="summary")
    writer.user("after", parentUuid=kept[-1])
    writer.save(projects)
    assert said() == ["summary", "kept prompt", "kept answer", "after"]


def test_a_kept_segment_is_shown_where_only_its_ends_are_named(projects: Path, writer: Writer) -> None:
    writer.user("forgotten")
    kept = [
        writer.user("kept prompt")["uuid"],
        writer.say("between")["uuid"],
        writer.say("kept answer")["uuid"],
    ]
    writer.compact(keep=kept, summary="summary")
    del writer.records[-2]["compactMetadata"]["preservedMessages"]
    writer.user("after")
    writer.save(projects)
    assert said() == ["summary", "kept prompt", "between", "kept answer", "after"]


def test_of_several_compactions_the_last_one_counts(projects: Path, writer: Writer) -> None:
    writer.user("forgotten")
    first = [writer.user("kept once")["uuid"]]
    writer.compact(keep=first, summary="first summary")
    second = [writer.user("kept later")["uuid"], writer.say("and this")["uuid"]]
    writer.compact(keep=second, summary="second summary")
    writer.user("after")
    writer.save(projects)
    assert said() == ["second summary", "kept later", "and this", "after"]

    third = Writer(ID, CWD)
    third.user("forgotten")
    twice = [third.user("kept twice")["uuid"]]
    third.compact(keep=twice, summary="first summary")
    third.user("forgotten later")
    third.compact(keep=twice, summary="second summary")
    third.save(projects)
    assert said() == ["second summary", "kept twice"]


@pytest.mark.parametrize("metadata", [None, 5, [], {"preservedMessages": 5}, {"preservedMessages": {"uuids": [7]}},
    {"preservedMessages": {"uuids": ["unknown"], "anchorUuid": "x"}}, {"preservedSegment": {"headUuid": "x"}},
    {"preservedSegment": {"headUuid": "x", "tailUuid": "y", "anchorUuid": "z"}}])  # fmt: skip
def test_a_compaction_that_makes_no_sense_keeps_nothing(
    projects: Path, writer: Writer, metadata: object
) -> None:
    writer.user("forgotten")
    writer.compact(summary="summary")
    writer.records[-2]["compactMetadata"] = metadata
    writer.user("after")
    writer.save(projects)
    assert said() == ["summary", "after"]


def test_system_messages_come_with_their_content(projects: Path, writer: Writer) -> None:
    writer.user("before")
    writer.compact(summary="summary")
    writer.link("system", subtype="local_command", content="<x>out</x>", level="info")
    writer.link("system", subtype="informational", content="hidden", isMeta=True)
    writer.user("after")
    writer.save(projects)

    assert said() == ["summary", "after"]
    messages = get_session_messages(ID, include_system_messages=True)
    assert [message.type for message in messages] == ["system", "user", "system", "user"]
    assert [message.role for message in messages] == ["system", "user", "system", "user"]
    assert [message.content for message in messages] == [
        "Conversation compacted",
        "summary",
        "<x>out</x>",
        "after",
    ]
    assert messages[0].message["subtype"] == "compact_boundary"
    assert messages[0].message["compactMetadata"]["trigger"] == "manual"
    assert get_session_messages(ID, include_system_messages=True, limit=1, offset=2) == messages[2:3]


def branched(writer: Writer) -> dict[str, str]:
    """Two branches of one conversation, the second later in the file."""
    root = writer.user("root")["uuid"]
    stem = writer.say("stem")["uuid"]
    writer.user("one")
    one = writer.say("one end")["uuid"]
    writer.user("two", parentUuid=stem)
    two = writer.say("two end")["uuid"]
    return {"root": root, "stem": stem, "one": one, "two": two}


@pytest.mark.parametrize(
    ("leaf", "branch"),
    [("one", "one"), ("two", "two"), ("stem", "two"), ("root", "two"), ("unknown", "two"), (None, "two")],
)
def test_the_branch_of_the_command_line_follows_its_last_prompt(
    projects: Path, writer: Writer, leaf: str | None, branch: str
) -> None:
    uuids = branched(writer)
    if leaf is not None:
        writer.last_prompt("x", leaf=uuids["two"])
        writer.last_prompt("x", leaf=uuids.get(leaf, "unknown"))
        # Without a leaf, and before a branch that goes on: neither moves it.
        writer.note("last-prompt", lastPrompt="y")
    writer.save(projects)

    assert said(branch="cli") == ["root", "stem", branch, f"{branch} end"]
    assert said(branch="sdk") == said() == said_to_sdk() == ["root", "stem", "two", "two end"]


def test_the_command_line_stays_on_its_branch_when_another_one_grows(projects: Path, writer: Writer) -> None:
    uuids = branched(writer)
    writer.last_prompt("x", leaf=uuids["one"])
    writer.user("two goes on", parentUuid=uuids["two"])
    writer.save(projects)
    assert said(branch="cli")[-1] == "one end"
    assert said()[-1] == "two goes on"

    writer.user("one goes on", parentUuid=uuids["one"])
    writer.user("two again", parentUuid=uuids["two"])
    writer.save(projects)
    assert said(branch="cli")[-1] == "one goes on"


def test_a_conversation_that_was_cleared_is_empty_for_the_command_line(
    projects: Path, writer: Writer
) -> None:
    branched(writer)
    writer.note("last-prompt", leafUuid=None, explicit=True)
    writer.save(projects)
    assert said(branch="cli") == []
    assert said() != []


def test_a_missing_parent_does_not_hide_what_was_said_before(projects: Path, writer: Writer) -> None:
    writer.user("before")
    writer.user("of a subagent", isSidechain=True, parentUuid=None)
    writer.say("after", parentUuid="never written")
    writer.save(projects)
    assert said_to_sdk() == ["after"]
    assert said() == ["before", "after"]
    assert said(branch="cli") == ["after"]


def test_a_circle_is_walked_once(projects: Path, writer: Writer) -> None:
    writer.user("one", uuid="a", parentUuid="b")
    writer.say("two", uuid="b", parentUuid="a")
    writer.save(projects)
    assert said_to_sdk() == []
    assert said() == ["one", "two"]

    writer.user("three", parentUuid="b")
    writer.user("its own parent", uuid="c", parentUuid="c")
    writer.save(projects)
    assert said() == said_to_sdk() == ["one", "two", "three"]


def test_of_a_repeated_leaf_the_last_one_counts(projects: Path, writer: Writer) -> None:
    root = writer.user("root")["uuid"]
    writer.say("first version", uuid="same", parentUuid=root)
    writer.say("second version", uuid="same", parentUuid=root)
    writer.save(projects)
    assert said_to_sdk() == ["root", "first version"]
    assert said() == ["root", "second version"]


def test_prompts_given_while_the_model_was_at_work_are_shown(projects: Path, writer: Writer) -> None:
    writer.user("begin")
    writer.attach("queued_command", prompt="and also this", commandMode="prompt")
    writer.attach("date", date="today")
    writer.say("done")
    writer.save(projects)
    assert said_to_sdk() == ["begin", "done"]
    assert said() == ["begin", "and also this", "done"]
    assert [message.role for message in get_session_messages(ID)] == ["user", "user", "assistant"]


def test_calls_of_a_subagent_that_ran_side_by_side_are_shown_whole(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    folder = writer.save(projects).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    agent = Writer(ID, CWD)
    own: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    agent.user("task", **own)
    calls = [agent.call("Read", {}, message_id="msg_1", **own) for _ in range(2)]
    for made, call in calls:
        agent.result(call, "x", parentUuid=made["uuid"], **own)
    (folder / "agent-a1.jsonl").write_bytes(agent.data())

    assert len(sdk.get_subagent_messages(ID, "a1")) == 4
    assert len(get_subagent_messages(ID, "a1")) == 5


def test_links_to_transcripts_are_not_followed(projects: Path, writer: Writer, tmp_path: Path) -> None:
    writer.user("hi")
    path = writer.save(projects)
    outside = tmp_path / "outside.jsonl"
    path.rename(outside)
    path.symlink_to(outside)
    assert get_session_messages(ID) == []
    path.unlink()
    outside.rename(path)

    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").symlink_to(path)
    os.mkfifo(folder / "agent-b2.jsonl")
    (folder / "more").symlink_to(folder)
    assert list_subagents(ID) == []
    assert get_subagent_messages(ID, "a1") == get_subagent_messages(ID, "b2") == []


def record(name: str, parent: str | None, text: str) -> bytes:
    message = {"role": "user", "content": text}
    return compact({"parentUuid": parent, "type": "user", "message": message, "uuid": name, "sessionId": ID})


A, B, C = record("a", None, "one"), record("b", "a", "two"), record("c", "b", "three")
LOG = compact({"type": "api-request-shape", "sessionId": ID, "shape": {"tools": [{"a": "x" * 9_000}] * 3}})
DAMAGED: dict[str, tuple[bytes, list[str], Damage]] = {
    "none": (A + B + C, ["one", "two", "three"], Damage()),
    "a byte order mark": (b"\xef\xbb\xbf" + A + B, ["one", "two"], Damage(byte_order_marks=1)),
    "NULs between records": (A + b"\0" * 4_096 + B + b"\0\0\n" + C, ["one", "two", "three"], Damage(nul_runs=2)),
    "NULs in a record": (A + B[:20] + b"\0" * 9 + B[29:] + C, ["one", "three"], Damage(nul_runs=1, unreadable=2)),
    "bad UTF-8": (A + B.replace(b"two", b"tw\xffo") + C, ["one", "tw\ufffdo", "three"], Damage(bad_utf8=1)),
    "a torn record": (A + B[:30] + b"\n" + C, ["one", "three"], Damage(unreadable=1)),
    "a torn tail": (A + B + C[:30], ["one", "two"], Damage(torn_tail=1)),
    "no line end": (A + B + C.strip(), ["one", "two", "three"], Damage()),
    "two in a line": (A + B.strip() + C, ["one", "two", "three"], Damage(spliced=1)),
    "one behind a torn one": (A + B[:40] + C, ["one", "three"], Damage(spliced=1)),
    "one behind a torn log": (A + LOG[:12_000] + B + C, ["one", "two", "three"], Damage(spliced=1)),
    "not objects": (A + b'5\n"x"\n[]\nnull\n' + B, ["one", "two"], Damage(unreadable=4)),
    "too deep": (A + b'{"type":' + b"[" * 99_999 + b"\n" + B, ["one", "two"], Damage(unreadable=1)),
    "blank lines": (A + b"\n \r\n\t\n" + B.strip() + b"\r\n", ["one", "two"], Damage()),
    "everything": (
        b"\xef\xbb\xbf" + A + b"\0\0" + B[:9] + b"\n" + B.strip() + C.replace(b"three", b"\xc3") + A[:5],
        ["one", "two", "\ufffd"],
        Damage(byte_order_marks=1, nul_runs=1, unreadable=1, spliced=1, bad_utf8=1, torn_tail=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "texts", "damage"), DAMAGED.values(), ids=DAMAGED.keys())
def test_every_intact_record_is_read_and_damage_is_counted(
    projects: Path, data: bytes, texts: list[str], damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    path = save(projects, CWD, ID, data)

    with caplog.at_level(logging.WARNING):
        assert said() == texts
    assert check_session(ID) == check_session(ID, dir=CWD) == damage
    if damage.unreadable or damage.torn_tail:
        assert "damaged" in caplog.text
    if not damage:
        assert caplog.text == ""
    assert path.read_bytes() == data


def test_what_is_no_session_cannot_be_checked(projects: Path) -> None:
    assert projects.exists()
    assert check_session(ID) is None
    assert check_session("no id") is None


def test_a_prompt_snapshot_keeps_its_place_in_the_chain(projects: Path, writer: Writer) -> None:
    """Most snapshots are passed over undecoded; however one is written, what hangs on it is found."""
    writer.user("one")
    writer.attach("prompt_snapshot", systemPrompt=["x" * 20_000])
    writer.say("two")
    odd = writer.attach("prompt_snapshot", systemPrompt=["y" * 20_000])
    odd["slug"] = {"nested": [1]}
    writer.user("three")
    torn = writer.attach("prompt_snapshot", systemPrompt=["z" * 20_000])
    whole = writer.attach("prompt_snapshot", systemPrompt=["w" * 20_000])
    writer.say("four")
    data = writer.data().replace(compact(torn), compact(torn)[:15_000])
    assert data.count(b"\n") == len(writer.records) - 1
    assert whole["parentUuid"] == torn["uuid"]
    save(projects, CWD, ID, data)
    assert said() == ["one", "two", "three", "four"]

    # With a whole record behind it in the same line.
    snapshot = compact(writer.attach("prompt_snapshot", systemPrompt=["v" * 20_000]))
    save(
        projects, CWD, ID, data + snapshot.strip() + compact(writer.user("five")) + compact(writer.say("six"))
    )
    assert said() == ["one", "two", "three", "four", "five", "six"]
