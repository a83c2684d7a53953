"""The messages of Claude Code's sessions: equal to the SDK's, wherever the SDK is right."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest

from hitherto.claude import (
    SessionMessage,
    get_session_messages,
    get_subagent_messages,
    list_subagents,
    transcript,
)
from tests.claude.transcripts import Record, Writer, compact, grow, large, save, session_id

CWD = "/home/ann/project"
ID = session_id(1)
FIELDS = ("type", "uuid", "session_id", "message", "parent_tool_use_id", "parent_agent_id")


@pytest.fixture
def writer() -> Writer:
    return Writer(ID, CWD)


@pytest.fixture(params=["read as a whole", "read in blocks"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading a transcript, in turn: the second is meant for very large ones."""
    if request.param == "read in blocks":
        monkeypatch.setattr(transcript, "WHOLE", 0)
    return str(request.param)


def fields(messages: list[Any]) -> list[dict[str, Any]]:
    return [{name: getattr(message, name) for name in FIELDS} for message in messages]


def assert_as_sdk(name: str = ID, **options: Any) -> list[SessionMessage]:
    """Both show the same messages."""
    ours, theirs = get_session_messages(name, **options), sdk.get_session_messages(name, **options)
    assert fields(ours) == fields(theirs)
    return ours


def said(messages: list[SessionMessage]) -> list[Any]:
    """What was said, a text where it is one."""
    return [
        message.content[0]["text"] if isinstance(message.content, list) else message.content
        for message in messages
    ]


@pytest.mark.usefixtures("reading")
def test_conversations_are_as_the_sdk_shows_them(projects: Path) -> None:
    for path in grow(projects, 15):
        assert len(assert_as_sdk(path.stem)) > 1
    assert_as_sdk(large(projects, 3_000_000))


@pytest.mark.usefixtures("reading")
def test_every_page_is_as_the_sdk_shows_it(projects: Path) -> None:
    name = large(projects, 400_000)
    count = len(assert_as_sdk(name))
    for limit in (None, -1, 0, 1, 7, count, count + 1):
        for offset in (-3, 0, 1, count - 2, count, count + 5):
            assert_as_sdk(name, limit=limit, offset=offset)


@pytest.mark.parametrize("name", ["", "no-id", "../../x", session_id(9), ID.upper() + "x"])
def test_no_session_has_no_messages(projects: Path, writer: Writer, name: str) -> None:
    writer.user("hi")
    writer.save(projects)
    assert_as_sdk(name)
    assert get_session_messages(name, CWD) == []
    assert list_subagents(name) == []
    assert get_subagent_messages(name, "a") == []


def test_a_session_without_subagents_has_none(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.save(projects)
    assert list_subagents(ID) == []
    for agent in ("", "a1", "../../x"):
        assert get_subagent_messages(ID, agent) == []


def test_a_message_says_who_speaks_and_what(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.say("hello")
    writer.user(None)
    writer.link("user")
    writer.save(projects)

    messages = get_session_messages(ID, dir=CWD)
    assert [message.role for message in messages] == ["user", "assistant", "user", "user"]
    assert [message.content for message in messages] == [
        "hi",
        [{"type": "text", "text": "hello"}],
        None,
        None,
    ]


def test_the_directory_is_looked_up_as_in_the_sdk(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.save(projects)
    assert len(assert_as_sdk(directory=CWD)) == 1
    assert assert_as_sdk(directory="/home/ann/other") == []
    assert len(get_session_messages(ID, dir=CWD)) == 1


def test_what_stands_beside_the_conversation_is_not_shown(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.user("caveat", isMeta=True)
    writer.say("hello")
    writer.user("of a team", teamName="t")
    writer.link("system", subtype="informational", content="note")
    writer.link("progress", data={"x": 1})
    writer.user("again")
    writer.user("of a subagent", isSidechain=True)
    writer.save(projects)
    assert said(assert_as_sdk()) == ["hi", "hello", "again"]


def test_the_last_branch_of_the_file_is_shown(projects: Path, writer: Writer) -> None:
    root = writer.user("root")["uuid"]
    writer.say("one")
    writer.user("one more")
    writer.say("two", parentUuid=root)
    writer.attach("date", date="today")
    writer.save(projects)
    assert said(assert_as_sdk()) == ["root", "two"]


@pytest.mark.usefixtures("reading")
def test_calls_that_ran_side_by_side_are_shown_whole(projects: Path, writer: Writer) -> None:
    writer.user("look at three files")
    calls = [writer.call("Read", {"n": number}, message_id="msg_1") for number in range(3)]
    results = [writer.result(call, "x", parentUuid=made["uuid"]) for made, call in calls]
    writer.say("done", parentUuid=results[1]["uuid"])
    writer.save(projects)
    assert len(assert_as_sdk()) == 8


def test_whatever_hangs_wherever_is_shown_as_the_sdk_shows_it(projects: Path) -> None:
    for number in range(300):
        writer = Writer(session_id(number), CWD, rng=random.Random(number))
        _Wild(writer).grow()
        writer.save(projects)
        assert_as_sdk(session_id(number))


class _Wild:
    """A transcript in which anything may hang on anything that is there."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._rng = writer.rng
        self._uuids = [writer.user("begin")["uuid"]]
        self._calls = ["toolu_nobody"]

    def grow(self) -> None:
        for _ in range(self._rng.randrange(3, 40)):
            made = self._rng.choice(
                (self._call, self._call, self._answer, self._answer, self._other, self._prompt)
            )()
            self._uuids.append(made["uuid"])

    def _place(self) -> dict[str, Any]:
        rng = self._rng
        values = {
            "parentUuid": self._uuids[-1] if rng.random() < 0.6 else rng.choice(self._uuids),
            "timestamp": f"2026-01-01T00:00:{rng.randrange(60):02d}.000Z",
        }
        seldom = {"isSidechain": True, "agentId": "a1", "sourceToolAssistantUUID": rng.choice(self._uuids)}
        return values | {name: value for name, value in seldom.items() if rng.random() < 0.1}

    def _call(self) -> Record:
        made, call = self._writer.call(
            "Read", {}, message_id=f"msg_{self._rng.randrange(4)}", **self._place()
        )
        if self._rng.random() < 0.1:
            made["message"]["content"][0]["id"] = call = self._rng.choice(self._calls)
        self._calls.append(call)
        return made

    def _answer(self) -> Record:
        return self._writer.result(self._rng.choice(self._calls), "x", **self._place())

    def _other(self) -> Record:
        return self._writer.link(self._rng.choice(["progress", "system", "attachment"]), **self._place())

    def _prompt(self) -> Record:
        return self._writer.user("on", **self._place(), isMeta=self._rng.random() < 0.2)


@pytest.mark.usefixtures("reading")
def test_of_records_with_one_uuid_the_last_counts(projects: Path, writer: Writer) -> None:
    root = writer.user("root")["uuid"]
    writer.say("first version", uuid="same", parentUuid=root)
    writer.say("second version", uuid="same", parentUuid=root)
    writer.user("on", parentUuid="same")
    writer.save(projects)
    assert said(assert_as_sdk()) == ["root", "second version", "on"]


@pytest.mark.usefixtures("reading")
def test_a_compaction_that_kept_nothing_hides_what_was_before(projects: Path, writer: Writer) -> None:
    writer.user("before")
    writer.say("hello")
    writer.compact(summary="what was before")
    writer.user("after")
    writer.save(projects)
    assert said(assert_as_sdk()) == ["what was before", "after"]


ODD: dict[str, list[Any]] = {
    "values of other types": [
        {
            "type": "user",
            "uuid": "a",
            "parentUuid": 5,
            "isMeta": 0,
            "sessionId": "s",
            "message": {"content": "hi"},
        },
        {"type": "user", "uuid": "b", "parentUuid": "a", "teamName": [], "agentId": 7, "message": [1]},
        {"type": "user", "uuid": 3, "parentUuid": "b", "message": {"content": "no uuid"}},
        {
            "type": "assistant",
            "uuid": "c",
            "parentUuid": "b",
            "message": {"id": 5, "content": [1, {"type": 2}]},
        },
        {"type": "assistant", "uuid": "d", "parentUuid": "c", "isSidechain": None, "message": "text"},
        {"type": 5, "uuid": "e", "parentUuid": "d"},
    ],
    "no messages": [{"type": "user", "uuid": "a"}, {"type": "assistant", "uuid": "b", "parentUuid": "a"}],
    "nothing said": [{"type": "system", "uuid": "a"}, {"type": "progress", "uuid": "b", "parentUuid": "a"}],
    "big numbers": [{"type": "user", "uuid": "a", "message": {"content": [10**40, 1e300, -0.0]}}],
    "an empty uuid": [{"type": "user", "uuid": "", "message": {"content": "hi"}}],
    "no session": [{"type": "user", "uuid": "a", "sessionId": "other", "message": {}}, {"type": "mode"}],
    "only what stands beside": [
        {"type": "user", "uuid": "a", "isSidechain": True, "message": {}},
        {"type": "user", "uuid": "b", "isMeta": True, "parentUuid": "a", "message": {}},
    ],
}


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("records", ODD.values(), ids=ODD.keys())
def test_odd_records_are_read_as_the_sdk_reads_them(projects: Path, records: list[Any]) -> None:
    save(projects, CWD, ID, b"".join(map(compact, records)))
    assert_as_sdk()


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize(
    "text", ['"\\ud800"', "NaN", "[Infinity]", "1e999", '"\\u0000"', '"\u2028 \u2029 \u0085"']
)
def test_what_only_the_standard_library_reads_is_read(projects: Path, text: str) -> None:
    record = f'"type":"user","uuid":"a","sessionId":"s","message":{{"content":{text}}}'
    save(projects, CWD, ID, f"{{{record}}}\n".encode())
    (message,) = get_session_messages(ID)
    (theirs,) = sdk.get_session_messages(ID)
    assert repr(message.message) == repr(theirs.message)


@pytest.fixture
def subagents(projects: Path, writer: Writer) -> Path:
    """The folder of subagents of a session; one of them is in a folder of a workflow."""
    writer.user("hi")
    folder = writer.save(projects).with_suffix("") / "subagents"
    (folder / "workflows" / "run1").mkdir(parents=True)
    for name, place in {"b2": folder, "a1": folder, "c3": folder / "workflows" / "run1"}.items():
        agent = Writer(ID, CWD, rng=random.Random(name))
        agent.user(f"task of {name}", isSidechain=True, agentId=name)
        agent.user("meta", isSidechain=True, agentId=name, isMeta=True)
        agent.say("done", isSidechain=True, agentId=name)
        agent.attach("date", date="today")
        (place / f"agent-{name}.jsonl").write_bytes(agent.data())
    (folder / "agent-b2.meta.json").write_text(json.dumps({"toolUseId": "toolu_1", "parentAgentId": "a1"}))
    (folder / "agent-a1.meta.json").write_text('{"toolUseId": 5}')
    (folder / "workflows" / "run1" / "agent-c3.meta.json").write_text("torn {")
    (folder / "notes.txt").write_text("no agent")
    (folder / "agent-d4.jsonl").mkdir()
    return folder


@pytest.mark.usefixtures("subagents", "reading")
def test_subagents_are_as_the_sdk_shows_them() -> None:
    assert list_subagents(ID) == sdk.list_subagents(ID) == ["a1", "b2", "c3"]
    assert list_subagents(ID, dir=CWD) == sdk.list_subagents(ID, CWD)
    for agent in ("a1", "b2", "c3", "d4", "zz", ""):
        options: dict[str, Any]
        for options in ({}, {"limit": 1}, {"offset": 1}, {"directory": CWD}, {"directory": "/elsewhere"}):
            ours = get_subagent_messages(ID, agent, **options)
            assert fields(ours) == fields(sdk.get_subagent_messages(ID, agent, **options))
    assert [message.parent_tool_use_id for message in get_subagent_messages(ID, "b2")] == ["toolu_1"] * 3


def test_an_unknown_branch_is_refused(projects: Path, writer: Writer) -> None:
    writer.user("hi")
    writer.save(projects)
    with pytest.raises(ValueError, match="branch"):
        get_session_messages(ID, branch="main")  # type: ignore[arg-type]
