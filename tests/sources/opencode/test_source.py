"""opencode's sessions, in both forms that its database has for them: each message once, and nothing of the rest read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import apsw
import pytest

import hitherto
from hitherto.limits import ENTRY_BYTES
from hitherto.model import (
    LOCAL,
    Entry,
    Image,
    Plan,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    encode,
)
from hitherto.model import Unknown as Strange
from hitherto.sources import AGENTS
from hitherto.sources.opencode.source import OpencodeSource
from hitherto.sources.port import Reading
from hitherto.sources.shared import database
from tests.sources.agent_home import House
from tests.sources.branches import told
from tests.sources.opencode.opencode_files import CWD, OLDEST, SESSION, OpencodeWriter, text, tool

ID = f"opencode:{SESSION}"
MODEL: dict[str, Any] = {"model": {"id": "claude-sonnet-5", "providerID": "anthropic"}}


@pytest.fixture
def made(tmp_path: Path) -> OpencodeWriter:
    writer = OpencodeWriter(tmp_path / "opencode")
    writer.session()
    return writer


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, OpencodeSource(tmp_path / "opencode"))


def read(made: OpencodeWriter) -> Reading:
    source = OpencodeSource(made.path.parent)
    (found,) = source.find()
    return source.read(found, None)


def texts(made: OpencodeWriter) -> list[str]:
    return [part.text for entry in read(made).entries for part in entry.parts if isinstance(part, Text)]


def shape(entries: Iterable[Entry]) -> list[tuple[str, list[type]]]:
    return [(entry.role, [type(part) for part in entry.parts]) for entry in entries]


def test_each_kind_of_part_becomes_what_it_is(made: OpencodeWriter) -> None:
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="}
    page = {"type": "file", "mime": "text/plain", "url": "file:///srv/engine/a.py", "filename": "a.py"}
    user = made.message("user", text("Look"), picture, page)
    message = made.answer(
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm", "time": {"start": 1}},
        text("Reading."),
        tool("read", {"filePath": "/srv/engine/a.py"}),
        tool("bash", {"command": "make"}, "c2", metadata={"exit": 2}),
        {"type": "step-finish", "cost": 0.25},
        text("It failed."),
    )
    asked, answer, results, rest = read(made).entries
    assert (asked.id, asked.role, answer.id) == (user, "user", message)
    assert asked.parts == (
        Text(text="Look"),
        Image(mime_type="image/png", data="aGk="),
        ResourceLink(uri="file:///srv/engine/a.py", name="a.py", mime_type="text/plain"),
    )
    assert shape([answer, results, rest]) == [
        ("assistant", [Thought, Text, ToolCall, ToolCall]),
        ("tool", [ToolResult, ToolResult]),
        ("assistant", [Text]),
    ]
    call, (good, bad) = answer.parts[2], results.parts
    assert isinstance(call, ToolCall)
    assert isinstance(good, ToolResult)
    assert isinstance(bad, ToolResult)
    assert (call.id, call.kind, call.title) == ("c1", "read", "Read /srv/engine/a.py")
    assert (good.id, good.is_error, good.content) == ("c1", False, (Text(text="done"),))
    assert (bad.id, bad.is_error) == ("c2", True)
    assert (answer.model, answer.tokens) == ("anthropic:claude-sonnet-5", 7)
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.cost) == (117, 100, 0.25)
    assert rest.usage is None


def test_a_tool_that_runs_has_no_result_yet_and_one_that_failed_says_why(made: OpencodeWriter) -> None:
    made.answer(tool("bash", {"command": "make"}, status="running"))
    made.answer(tool("bash", {"command": "make"}, "c2", status="error", error="not allowed", output=None))
    made.answer(tool("invalid", {"tool": "x"}, "c3"))
    first, second, failed, third, invalid = read(made).entries
    assert shape([first, second, third]) == [("assistant", [ToolCall])] * 3
    assert failed.parts == (ToolResult(id="c2", content=(Text(text="not allowed"),), is_error=True),)
    assert isinstance(invalid.parts[0], ToolResult)
    assert invalid.parts[0].is_error


def test_a_list_of_things_to_do_is_a_plan(made: OpencodeWriter) -> None:
    made.answer(tool("todowrite", {"todos": [{"content": "mend", "status": "pending", "priority": "high"}]}))
    entry, _ = read(made).entries
    assert entry.parts[1] == Plan(steps=({"content": "mend", "status": "pending", "priority": "high"},))


def test_the_newer_form_is_read_and_the_older_not_a_second_time(made: OpencodeWriter) -> None:
    made.user("old one")
    made.row("agent-switched", agent="build")
    made.row("user", text="Look", files=[{"uri": "file:///a.py", "mime": "text/plain", "name": "a.py"}])
    state = {
        "status": "completed",
        "input": {"path": "/a.py"},
        "content": [{"type": "text", "text": "x = 1"}],
    }
    call = {"type": "tool", "id": "c1", "name": "read", "state": state}
    made.row("assistant", content=[{"type": "reasoning", "text": "hm"}, call, text("Done.")], **MODEL)
    made.answer(text("Done."))
    made.row("shell", command="ls", output="a.py", exit=1)
    made.row("synthetic", text="A note.")
    entries = read(made).entries
    assert shape(entries) == [
        ("user", [Text, ResourceLink]),
        ("assistant", [Thought, ToolCall]),
        ("tool", [ToolResult]),
        ("assistant", [Text]),
        ("user", [Text]),
        ("system", [Text]),
    ]
    assert entries[1].model == "anthropic:claude-sonnet-5"
    assert entries[2].parts == (ToolResult(id="c1", content=(Text(text="x = 1"),)),)
    assert entries[4].parts == (Text(text="$ ls\na.py\n(exit code 1)"),)


def test_what_only_the_older_form_has_of_the_time_before_comes_first(made: OpencodeWriter) -> None:
    made.user("one")
    made.answer(text("two"))
    made.row("user", text="three")
    assert texts(made) == ["one", "two", "three"]


def test_what_was_reverted_is_a_branch(made: OpencodeWriter) -> None:
    made.user("one")
    message = made.answer(text("two"), text("three"))
    made.user("four")
    made.run("UPDATE session SET revert = ?", f'{{"messageID": "{message}", "partID": "prt_000000021"}}')
    there = read(made)
    assert told(there.entries, there.branches) == (["one", "two"], [["one", "two", "three", "four"]])
    made.run("UPDATE session SET revert = ?", f'{{"messageID": "{message}"}}')
    there = read(made)
    assert told(there.entries, there.branches) == (["one"], [["one", "two", "three", "four"]])


def test_rows_and_parts_of_new_kinds_are_kept_and_counted(made: OpencodeWriter) -> None:
    made.answer(text("one"), {"type": "smell", "of": "roses"})
    made.message("ghost")
    reading = read(made)
    assert reading.unknown == {"part smell": 1, "message ghost": 1}
    assert [type(entry.parts[-1]) for entry in reading.entries] == [Strange, Strange]
    made.row("user", text="two")
    made.row("hologram", beam=[1])
    assert read(made).unknown["hologram"] == 1


def test_an_answer_that_failed_says_so_and_one_that_was_stopped_did_not_fail(made: OpencodeWriter) -> None:
    made.answer(error={"name": "APIError", "data": {"message": "no credit"}})
    made.answer(text("Well"), error={"name": "MessageAbortedError", "data": {"message": "x"}})
    assert [entry.meta for entry in read(made).entries] == [
        {"error": "no credit"},
        {"stop_reason": "aborted"},
    ]


@pytest.mark.parametrize("harm", ["{torn", "", "[1]", b"\xff\xfe", 7, "[" * 100_000])
def test_a_damaged_row_costs_itself_only(made: OpencodeWriter, harm: Any) -> None:
    made.user("one")
    message = made.user("two")
    made.user("three")
    made.run("UPDATE part SET data = ? WHERE message_id = ?", harm, message)
    assert texts(made) == ["one", "three"]
    assert read(made).damaged == 1


def test_a_message_that_could_not_be_kept_is_cut(made: OpencodeWriter) -> None:
    made.answer(*(text(letter * (ENTRY_BYTES // 2)) for letter in "abc"))
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    made.answer(tool("x", {"given": deep}))
    made.user("whole")
    long, deep_call, _, whole = read(made).entries
    assert len(encode(long)) < ENTRY_BYTES
    assert (long.meta, deep_call.meta, whole.meta) == ({"cut": True}, {"cut": True}, {})


async def test_a_locked_database_takes_nothing_away(
    made: OpencodeWriter, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 10)
    made.user("one")
    made.run("PRAGMA journal_mode = DELETE")
    made.close()
    await house.sync()
    holder = apsw.Connection(str(made.path))
    holder.execute("BEGIN EXCLUSIVE; UPDATE session SET title = 'Two'")
    report = await house.sync()
    assert (report.kept, len(report.failed)) == (0, 1)
    holder.execute("COMMIT")
    holder.close()
    assert (await house.sync()).updated == 1
    assert (await house.only()).title == "Two"


def test_text_that_is_no_utf8_is_read_with_a_mark_for_the_bad_bytes(made: OpencodeWriter) -> None:
    made.user("one")
    made.run("UPDATE part SET data = CAST(? AS TEXT)", b'{"type":"text","text":"a\xffb"}')
    assert texts(made) == ["a\ufffdb"]


def test_a_database_of_the_first_version_is_read(tmp_path: Path) -> None:
    made = OpencodeWriter(tmp_path, schema=OLDEST)
    made.session()
    made.user("one")
    assert texts(made) == ["one"]


def test_a_database_of_a_later_version_is_read(made: OpencodeWriter) -> None:
    made.run("ALTER TABLE session ADD COLUMN mood TEXT DEFAULT 'calm'")
    made.run("ALTER TABLE message RENAME COLUMN time_updated TO changed")
    made.user("one")
    assert texts(made) == ["one"]


async def test_a_session_is_one_of_ours_and_a_second_sync_reads_nothing(
    made: OpencodeWriter, house: House
) -> None:
    made.user("Mend the engine")
    made.answer(text("Done."))
    made.session("ses_child", parent_id=SESSION, title="Look around", version="1.4.0", time_archived=5)
    made.user("look", session="ses_child")
    made.close()
    before = house.hashes(house.folder / "opencode")
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (2, 2, ())
    session = await house.sessions.get(LOCAL, ID)
    assert (session.source, session.cwd, session.title) == ("opencode", CWD, "Mend the engine")
    assert (session.message_count, session.cost) == (2, 0.25)
    assert house.source.resume(session) == ("opencode", "--session", SESSION)
    assert house.source.restorable_path(session) is None
    assert await house.sessions.transfer.raw(LOCAL, ID) == []
    child = await house.sessions.get(LOCAL, "opencode:ses_child")
    assert (child.parent, child.title, child.archived) == (ID, "Look around", True)
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (2, 0)
    assert house.hashes(house.folder / "opencode") == before


async def test_what_is_added_while_it_is_in_use_is_taken_in(made: OpencodeWriter, house: House) -> None:
    made.user("one")
    await house.sync()
    made.run("BEGIN IMMEDIATE")
    made.user("not yet")
    assert (await house.sync()).parsed_files == 0
    made.run("COMMIT")
    made.session("ses_other")
    made.user("elsewhere", session="ses_other")
    report = await house.sync()
    assert (report.new, report.updated, report.parsed_files) == (1, 1, 2)
    assert await house.said(ID) == ["one", "not yet"]


@pytest.mark.parametrize("column", ["title", "revert", "time_archived"])
async def test_a_change_that_moves_no_time_is_seen(made: OpencodeWriter, house: House, column: str) -> None:
    made.user("one")
    await house.sync()
    made.run(f"UPDATE session SET {column} = 7")
    assert (await house.sync()).updated == 1


async def test_what_is_written_anew_where_it_was_is_read_again(made: OpencodeWriter, house: House) -> None:
    made.row("user", text="Look")
    made.row("shell", command="make", status="running")
    other = made.session("ses_old")
    made.answer(tool("bash", {"command": "make"}, status="running"), session=other)
    await house.sync()
    done = '{"command": "make", "output": "all is made"}'
    made.run("UPDATE session_message SET data = ?, time_updated = 7 WHERE type = 'shell'", done)
    report = await house.sync()
    assert (report.updated, report.parsed_files) == (1, 1)
    assert await house.said(ID) == ["Look", "$ make\nall is made"]
    failed = tool("bash", {"command": "make"}, status="error", error="not allowed", output=None)
    made.run("UPDATE part SET data = ?, time_updated = 7", json.dumps(failed))
    report = await house.sync()
    assert (report.updated, report.parsed_files) == (1, 1)
    result = (await house.entries(f"opencode:{other}"))[-1].parts[0]
    assert result == ToolResult(id="c1", content=(Text(text="not allowed"),), is_error=True)
    made.run("UPDATE message SET time_updated = 7")
    assert (await house.sync()).parsed_files == 1
    assert (await house.sync()).parsed_files == 0


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63), 1e300, "late", b"\xff", None])
async def test_a_strange_time_of_a_row_does_no_harm(made: OpencodeWriter, house: House, time: Any) -> None:
    made.user("one")
    made.user("two")
    made.run("UPDATE part SET time_updated = ?", time)
    assert (await house.sync()).failed == ()
    assert (await house.sync()).parsed_files == 0


async def test_a_compaction_is_one_of_ours(made: OpencodeWriter, house: House) -> None:
    made.user("one")
    kept = made.answer(text("two"))
    made.message("user", {"type": "compaction", "auto": True, "tail_start_id": kept})
    made.answer(text("All was said."), summary=True)
    made.user("three")
    await house.sync()
    assert await house.said(ID, "context") == ["All was said.", "two", "three"]
    assert await house.said(ID) == ["one", "two", "All was said.", "three"]
    made.row("user", text="four")
    made.row("compaction", status="running", reason="auto", summary="All", recent="")
    made.row("compaction", status="completed", reason="auto", summary="All again.", recent="")
    await house.sync()
    assert await house.said(ID, "context") == ["All again."]
    assert (await house.said(ID))[-2:] == ["four", "All again."]


async def test_sessions_of_a_database_that_cannot_be_read_are_not_gone(
    made: OpencodeWriter, house: House
) -> None:
    made.user("one")
    made.close()
    other = OpencodeWriter(house.folder / "opencode", "opencode-beta.db")
    other.session("ses_beta")
    other.user("beta", session="ses_beta")
    await house.sync()
    whole = made.path.read_bytes()
    made.path.write_bytes(b"no database" * 1000)
    other.user("more", session="ses_beta")
    report = await house.sync()
    assert (report.kept, report.updated) == (0, 1)
    assert [failure.partition(":")[0] for failure in report.failed] == ["opencode.db"]
    assert "source_gone" not in (await house.sessions.get(LOCAL, ID)).meta
    made.path.write_bytes(whole)
    report = await house.sync()
    assert (report.unchanged, report.parsed_files, report.failed) == (2, 0, ())
    made.path.unlink()
    assert (await house.sync()).kept == 1


def test_a_database_elsewhere_is_the_only_one(tmp_path: Path) -> None:
    for name in ("opencode.db", "mine.db", "opencode-dev.db"):
        made = OpencodeWriter(tmp_path, name)
        made.session(f"ses_{name}")
        made.close()
    assert {each.key.partition("#")[2] for each in OpencodeSource(tmp_path).find()} == {
        "ses_opencode.db",
        "ses_opencode-dev.db",
    }
    (found,) = OpencodeSource(tmp_path / "mine.db").find()
    assert found.key == f"{tmp_path / 'mine.db'}#ses_mine.db"


def test_the_environment_says_where_the_databases_are(tmp_path: Path) -> None:
    def home(**environ: str) -> Path:
        return AGENTS["opencode"].home(environ)

    assert home() == Path.home() / ".local/share/opencode"
    assert home(XDG_DATA_HOME=str(tmp_path)) == tmp_path / "opencode"
    assert home(XDG_DATA_HOME=str(tmp_path), OPENCODE_DB="x.db") == tmp_path / "opencode" / "x.db"
    assert home(OPENCODE_DB=str(tmp_path / "x.db")) == tmp_path / "x.db"
    assert home(OPENCODE_DB=":memory:") == home()
