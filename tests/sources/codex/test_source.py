"""Codex's rollouts: one conversation from both of its streams, in both of its ways, with forks and subagents."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import hitherto
from hitherto.model import (
    LOCAL,
    Entry,
    Image,
    Plan,
    ResourceLink,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from hitherto.service.compaction.imported import Branch
from hitherto.sources import AGENTS
from hitherto.sources.codex.parse import Parsed, parse
from hitherto.sources.codex.source import CodexSource
from hitherto.sources.codex.tools import of_changes, of_patch
from hitherto.sources.handoff.restore import original
from hitherto.sources.shared import database as databases
from tests.sources.agent_home import House
from tests.sources.branches import told
from tests.sources.codex.codex_files import CWD, MODES, PARENT, SESSION, CodexWriter, Mode, name_threads

BOTH = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield House(tmp_path, sessions, CodexSource(tmp_path / "codex"))


def read(made: CodexWriter) -> Parsed:
    parsed = parse(made.data())
    assert parsed is not None
    return parsed


def beside(made: CodexWriter) -> tuple[Sequence[Entry], Sequence[Branch]]:
    parsed = read(made)
    return parsed.entries, parsed.branches


def texts(entries: tuple[Entry, ...]) -> list[str]:
    return [part.text for entry in entries for part in entry.parts if isinstance(part, Text)]


def results(entries: tuple[Entry, ...]) -> list[ToolResult]:
    return [part for entry in entries for part in entry.parts if isinstance(part, ToolResult)]


def calls(entries: tuple[Entry, ...]) -> list[ToolCall]:
    return [part for entry in entries for part in entry.parts if isinstance(part, ToolCall)]


async def by_id(house: House, uuid: str) -> Session:
    return await house.sessions.get(LOCAL, f"codex:{uuid}")


# One conversation


@BOTH
def test_everything_is_said_once_and_as_what_it_is(mode: Mode) -> None:
    made = CodexWriter(mode)
    made.message("developer", "<permissions instructions>ask</permissions instructions>")
    made.message("user", "<environment_context>\n<cwd>/srv</cwd>\n</environment_context>")
    made.user("Mend the engine")
    made.think("Where is it broken?")
    made.say("Looking.")
    made.run("c1", "make", "boom", 2)
    made.patch("p1", "/srv/engine/a.py", "old", "new")
    made.say("Mended.")
    made.end()
    parsed = read(made)
    assert texts(parsed.entries) == ["Mend the engine", "Looking.", "Mended."]
    assert [entry.role for entry in parsed.entries] == (
        ["user", "assistant", "assistant", "assistant", "tool", "assistant", "tool", "assistant"]
    )
    assert parsed.entries[1].parts == (Thought(text="Where is it broken?", provider="openai"),)
    run, patch = calls(parsed.entries)
    assert (run.name, run.kind, run.title) == ("exec_command", "execute", "make")
    assert (patch.kind, patch.locations) == ("edit", ({"path": "/srv/engine/a.py"},))
    edit = {"path": "/srv/engine/a.py", "old_string": "old", "new_string": "new"}
    assert patch.input == {"path": "/srv/engine/a.py", "edits": [edit]}
    assert [(result.id, result.is_error) for result in results(parsed.entries)] == [
        ("c1", True),
        ("p1", False),
    ]
    assert parsed.memory.unknown == {}


@BOTH
def test_each_answer_has_its_model_and_what_it_used(mode: Mode) -> None:
    made = CodexWriter(mode)
    made.user("one", model="gpt-5.5")
    made.say("two")
    made.records.append(made.records[-1] | {"ordinal": 99})  # told again with other rate limits
    made.end()
    made.user("three", model="gpt-5.5-mini")
    made.run("c1", "ls", "a.py")
    made.say("four")
    entries = [entry for entry in read(made).entries if entry.role == "assistant"]
    assert [entry.model for entry in entries] == ["gpt-5.5", "gpt-5.5-mini", "gpt-5.5-mini"]
    assert [entry.tokens for entry in entries] == [5, 5, 5]
    usage = entries[0].usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output) == (120, 100, 5)
    spent = read(made).memory.spent
    assert spent is not None
    assert (spent.input, spent.output) == (360, 15)


@BOTH
def test_turns_that_were_rolled_back_are_branches(mode: Mode) -> None:
    made = CodexWriter(mode)
    for said in ("one", "two", "three"):
        made.user(said)
        made.say(f"{said}!")
        made.end()
    made.event("thread_rolled_back", num_turns=2)
    made.user("four")
    back = ["one", "one!", "two", "two!", "three", "three!"]
    assert told(*beside(made)) == (["one", "one!", "four"], [back])
    made.event("thread_rolled_back", num_turns=9)
    assert told(*beside(made)) == ([], [["one", "one!", "four"], back])


def test_old_rollouts_without_turns_are_rolled_back_by_what_the_user_said() -> None:
    made = CodexWriter("legacy")
    for said in ("one", "two"):
        made.message("user", said)
        made.message("assistant", f"{said}!")
    made.event("thread_rolled_back", num_turns=1)
    assert told(*beside(made)) == (["one", "one!"], [["one", "one!", "two", "two!"]])


def test_a_command_that_ends_later_is_told_by_the_model_first_and_by_the_program_at_the_end() -> None:
    made = CodexWriter()
    made.user("Serve")
    made.call("c1", "exec_command", cmd="serve")
    made.item("function_call_output", call_id="c1", output="Process running with session ID 7")
    made.end()
    made.begin()
    made.shown(
        "CommandExecution", id="c1", command="serve", status="completed", exitCode=0, aggregatedOutput="bye"
    )
    entries = read(made).entries
    assert len(calls(entries)) == 1
    assert [result.content[0] for result in results(entries)] == [
        Text(text="Process running with session ID 7"),
        Text(text="bye"),
    ]


def test_what_is_told_again_is_said_once() -> None:
    made = CodexWriter("legacy").talk("one", "two")
    made.shown("AgentMessage", id="m1", content=[{"type": "Text", "text": "two"}])
    assert texts(read(made).entries) == ["one", "two"]
    made = CodexWriter().talk("one")
    for _ in range(2):
        made.shown("CommandExecution", id="c1", command="ls", status="completed")
    assert len(results(read(made).entries)) == 1


def test_what_only_the_program_tells_of_is_a_call_with_its_outcome() -> None:
    made = CodexWriter()
    made.user("Go")
    made.shown(
        "McpToolCall",
        id="m1",
        server="docs",
        tool="lookup",
        arguments={"q": 1},
        status="failed",
        error={"message": "no"},
    )
    made.shown("DynamicToolCall", id="d1", tool="tab", arguments={}, status="completed", success=True,
               contentItems=[{"type": "inputText", "text": "opened"}])  # fmt: skip
    made.shown("WebSearch", id="w1", query="rust", action={"type": "search", "query": "rust"})
    made.shown("ImageView", id="i1", path="/srv/a.png")
    made.shown(
        "CollabAgentToolCall",
        id="s1",
        tool="spawnAgent",
        status="completed",
        prompt="Look",
        receiverThreadIds=["x"],
    )
    made.shown("FileChange", id="f1", status="completed", changes={"/b": {"type": "add", "content": "hi\n"}})
    entries = read(made).entries
    assert [(call.name, call.kind) for call in calls(entries)] == [
        ("mcp__docs__lookup", "other"), ("tab", "other"), ("web_search", "fetch"), ("view_image", "read"),
        ("spawn_agent", "think"), ("apply_patch", "edit"),
    ]  # fmt: skip
    assert [result.is_error for result in results(entries)] == [True, False, False, False, False, False]
    assert results(entries)[0].content == (Text(text="no"),)
    assert results(entries)[1].content == (Text(text="opened"),)


def test_older_rollouts_tell_outcomes_in_many_ways() -> None:
    made = CodexWriter("legacy")
    made.user("Go")
    made.item(
        "local_shell_call", call_id="a", status="completed", action={"type": "exec", "command": ["ls", "-l"]}
    )
    made.item(
        "function_call_output", call_id="a", output=json.dumps({"output": "x", "metadata": {"exit_code": 1}})
    )
    made.call("b", "shell", command=["bash", "-lc", "true"])
    made.item("function_call_output", call_id="b", output="Exit code: 0\nOutput:\nok")
    made.item("function_call", name="lookup", namespace="mcp__docs__", arguments="{broken", call_id="c")
    made.event(
        "mcp_tool_call_end",
        call_id="c",
        invocation={"server": "docs", "tool": "lookup"},
        result={"Err": "gone"},
    )
    made.item("function_call_output", call_id="c", output="gone, as the model was told")
    made.call("d", "view_image", path="/a.png")
    made.item(
        "function_call_output",
        call_id="d",
        output=[{"type": "input_image", "image_url": "data:image/png;base64,aGk="}],
    )
    made.call("e", "update_plan", plan=[{"step": "Look", "status": "completed"}])
    made.item("function_call_output", call_id="e", output={"content": "no plan", "success": False})
    entries = read(made).entries
    assert [(call.name, call.title) for call in calls(entries)] == [
        ("local_shell", "ls -l"), ("shell", "true"), ("mcp__docs__lookup", "docs: lookup"), ("view_image", "Read /a.png"),
        ("update_plan", "Plan the work"),
    ]  # fmt: skip
    assert [result.is_error for result in results(entries)] == [True, False, True, False, True]
    assert results(entries)[3].content == (Image(mime_type="image/png", data="aGk="),)
    plan = next(part for entry in entries for part in entry.parts if isinstance(part, Plan))
    assert plan.steps[0]["content"] == "Look"


def test_what_the_user_pointed_at_and_ran_is_kept() -> None:
    made = CodexWriter()
    made.begin()
    content = [{"type": "text", "text": "See"}, {"type": "image", "image_url": "https://a.example/b.png"},
               {"type": "local_image", "path": "/srv/c.png"}]  # fmt: skip
    made.shown("UserMessage", id="u1", content=content)
    made.shown("CommandExecution", id="x", source="user_shell", command=["bash", "-lc", "ls"], status="failed",
               exitCode=2, aggregatedOutput="none")  # fmt: skip
    see, ran = read(made).entries
    assert [type(part).__name__ for part in see.parts] == ["Text", "Image", "ResourceLink"]
    assert (ran.role, ran.parts) == ("user", (Text(text="$ ls\nnone\n(exit code 2)"),))


@BOTH
def test_records_of_new_kinds_are_kept_and_counted(mode: Mode) -> None:
    made = CodexWriter(mode)
    made.user("one")
    made.line("hologram", {"beam": 1})
    made.event("sneeze", loud=True)
    made.item("smell", of="roses")
    made.shown("Dance", steps=3)
    made.line("world_state", {"large": "x" * 1_000})
    parsed = read(made)
    assert parsed.memory.unknown == {"hologram": 1, "event sneeze": 1, "item smell": 1, "shown Dance": 1}
    kept = [part.raw for entry in parsed.entries for part in entry.parts if isinstance(part, Unknown)]
    assert kept[0] == {"beam": 1}
    assert len(kept) == 4


def test_an_error_is_one_and_notes_of_the_programs_are_not_the_users() -> None:
    made = CodexWriter("legacy")
    made.user("one")
    made.message("user", "<subagent_notification>{}</subagent_notification>")
    made.event("error", message="no credit")
    made.item(
        "agent_message", author="/lead/x", recipient="/lead", content=[{"type": "input_text", "text": "done"}]
    )
    _, note, error, told = read(made).entries
    assert (note.role, error.role, error.meta["error"]) == ("system", "system", "no credit")
    assert (told.role, told.meta["author"]) == ("user", "/lead/x")


def test_the_first_versions_wrote_bare_items() -> None:
    lines = [
        {
            "id": SESSION,
            "timestamp": "2025-05-07T17:24:21.000Z",
            "instructions": None,
            "git": {"branch": "main"},
        },
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    ]
    parsed = parse(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert parsed is not None
    assert texts(parsed.entries) == ["hello", "hi"]
    assert parsed.memory.meta is not None
    assert (parsed.memory.meta.id, parsed.memory.meta.branch, parsed.memory.unknown) == (SESSION, "main", {})


def test_a_tool_that_is_given_edits_of_its_own_kind_is_a_call_like_any_other() -> None:
    made = CodexWriter()
    made.user("Edit it")
    made.call("c1", "mcp__files__change", edits=[{"line": 3}, 4, {"path": "/p/x"}])
    (call,) = calls(read(made).entries)
    assert call.locations == ({"path": "/p/x"},)


def test_a_patch_tells_what_goes_and_what_comes_in_each_place() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a\n*** Move to: c\n@@ def f\n same\n-x\n+y\n@@\n-z\n"
        "*** Add File: b\n+new\n+file\n*** Delete File: d\n*** End Patch"
    )
    assert of_patch(patch) == {
        "path": "a",
        "edits": [
            {"path": "a", "old_string": "same\nx", "new_string": "same\ny"},
            {"path": "a", "old_string": "z", "new_string": ""},
            {"path": "b", "old_string": "", "new_string": "new\nfile"},
        ],
    }
    changes = {
        "a": {"update": {"unified_diff": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}},
        "b": {"type": "delete", "content": "z"},
    }
    assert of_changes(changes) == {
        "path": "a",
        "edits": [
            {"path": "a", "old_string": "x", "new_string": "y"},
            {"path": "b", "old_string": "z", "new_string": ""},
        ],
    }
    assert of_patch("ls") is of_changes(None) is of_changes({}) is None


# In pieces


def _long(mode: Mode) -> CodexWriter:
    made = CodexWriter(mode)
    for number in range(3):
        made.user(f"question {number}")
        made.think("hm")
        made.run(f"c{number}", "ls", "a.py", number)
        made.patch(f"p{number}", "/a.py", "x", "y")
        made.say(f"answer {number}")
        made.line("compacted", {"message": f"summary {number}"})
        made.end()
    return made


LONG = {mode: _long(mode).data() for mode in MODES}


@settings(max_examples=40)
@given(mode=st.sampled_from(MODES), cuts=st.lists(st.floats(0, 1), max_size=4).map(sorted))
def test_read_in_pieces_or_at_once_it_is_the_same(mode: Mode, cuts: list[float]) -> None:
    data = LONG[mode]
    whole = parse(data)
    assert whole is not None
    entries, parsed = list[Entry](), None
    for cut in [*(int(cut * len(data)) for cut in cuts), len(data)]:
        state = None if parsed is None else parsed.state
        parsed = parse(data[state.offset if state else 0 : cut], state)
        if parsed is None:
            parsed, entries = parse(data[:cut]), []
            assert parsed is not None
        if parsed.amended is not None:
            place = next(place for place, entry in enumerate(entries) if entry.id == parsed.amended.id)
            entries[place] = parsed.amended
        entries += parsed.entries
    assert parsed is not None
    assert entries == list(whole.entries)
    assert parsed.memory == whole.memory


@BOTH
def test_what_takes_back_or_repeats_what_was_read_wants_the_whole(mode: Mode) -> None:
    made = CodexWriter(mode)
    made.user("one")
    made.end()
    known = read(made)
    head = len(made.data())
    made.event("thread_rolled_back", num_turns=1)
    assert parse(made.data()[head:], known.state) is None
    if mode == "paginated":
        assert parse(made.lines()[1], known.state) is None


# In the store


@BOTH
async def test_a_rollout_is_a_session_and_a_second_sync_parses_nothing(house: House, mode: Mode) -> None:
    made = CodexWriter(mode).talk("Mend the engine", "Done.")
    path = made.save(house.folder / "codex")
    before = house.hashes(house.folder / "codex")
    report = await house.sync()
    assert (report.found, report.new, report.failed) == (1, 1, ())
    session = await house.only()
    assert (session.id, session.source, session.cwd) == (f"codex:{SESSION}", "codex", CWD)
    assert (session.title, session.message_count, session.branch) == ("Mend the engine", 2, "main")
    assert session.project == "github.com/ada/engine"
    assert (session.meta["models"], session.meta["version"]) == (["gpt-5.5"], "0.158.0")
    assert session.meta["usage"] == {"input": 120, "output": 5, "cache_read": 100, "cache_write": 0}
    assert house.source.resume(session) == ("codex", "resume", SESSION)
    assert house.source.restorable_path(session) == path
    assert await original(house.sessions, LOCAL, session.id) == path.read_bytes()
    again = await house.sync()
    assert (again.unchanged, again.parsed_files) == (1, 0)
    assert house.hashes(house.folder / "codex") == before


@BOTH
async def test_growth_reads_the_new_bytes_only_and_a_torn_line_waits(house: House, mode: Mode) -> None:
    made = CodexWriter(mode).talk("one", "two")
    path = made.save(house.folder / "codex")
    await house.sync()
    head = len(made.data())
    made.user("three")
    tail = made.data()[head:]
    with path.open("ab") as file:
        file.write(tail[:-20])
    await house.sync()
    with path.open("ab") as file:
        file.write(tail[-20:])
    report = await house.sync()
    last = len(made.lines()[-1])
    assert (report.updated, report.parsed_bytes) == (1, last)
    session = await house.only()
    assert await house.said(session.id) == ["one", "two", "three"]
    assert await original(house.sessions, LOCAL, session.id) == made.data()


async def test_what_an_answer_used_is_told_when_it_comes_later(house: House) -> None:
    made = CodexWriter().talk("one", "two")
    used = made.records.pop()
    path = made.save(house.folder / "codex")
    await house.sync()
    made.records.append(used)
    path.write_bytes(made.data())
    await house.sync()
    session = await house.only()
    assert [entry.tokens for entry in await house.entries(session.id)] == [None, 5]
    assert await house.said(session.id) == ["one", "two"]


async def test_a_rollback_leaves_a_checkpoint_and_a_compaction_is_one_of_ours(house: House) -> None:
    made = CodexWriter().talk("one", "two", "three", "four")
    made.save(house.folder / "codex")
    await house.sync()
    made.event("thread_rolled_back", num_turns=1)
    made.line(
        "compacted",
        {
            "message": "",
            "replacement_history": [{"type": "message", "content": [{"type": "input_text", "text": "All."}]}],
        },
    )
    made.user("five")
    made.save(house.folder / "codex")
    await house.sync()
    session = await house.only()
    assert await house.said(session.id) == ["one", "two", "All.", "five"]
    assert await house.said(session.id, "context") == ["All.", "five"]
    assert len(await house.sessions.checkpoints(LOCAL, session.id)) == 2
    assert (await house.sessions.admin.check(repair=True)).problems == ()


async def test_a_fork_begins_with_what_was_said_up_to_its_place(house: House) -> None:
    parent = CodexWriter(session_id=PARENT).talk("one", "two")
    place = parent.place()
    parent.talk("not in the fork", "nor this")
    parent.save(house.folder / "codex", packed=True)
    fork = CodexWriter(first=place["end_ordinal_exclusive"], forked_from_id=PARENT, history_base=place).talk(
        "three", "four"
    )
    again = "019a8c0e-2222-7000-8000-000000000009"
    second = CodexWriter(session_id=again, first=99, forked_from_id=SESSION, history_base=fork.place()).talk(
        "five"
    )
    fork.talk("not in the second")
    path = fork.save(house.folder / "codex")
    second.save(house.folder / "codex")
    assert (await house.sync()).failed == ()
    assert await house.said(f"codex:{SESSION}") == ["one", "two", "three", "four", "not in the second"]
    assert await house.said(f"codex:{again}") == ["one", "two", "three", "four", "five"]
    session = await by_id(house, SESSION)
    assert session.meta["forked_from"] == f"codex:{PARENT}"
    assert session.meta["usage"]["output"] == 5
    assert session.title == "one"
    fork.say("six")
    path.write_bytes(fork.data())
    assert (await house.sync()).parsed_bytes == sum(map(len, fork.lines()[-3:]))
    assert (await house.said(f"codex:{SESSION}"))[-1] == "six"


@pytest.mark.parametrize("wrong", ["end_byte_offset", "end_ordinal_exclusive"])
async def test_either_bound_ends_what_a_fork_begins_with(house: House, wrong: str) -> None:
    parent = CodexWriter(session_id=PARENT).talk("one")
    place = {**parent.place(), wrong: 1_000_000}
    parent.say("not in the fork")
    parent.save(house.folder / "codex")
    CodexWriter(first=50, history_base=place).talk("two").save(house.folder / "codex")
    await house.sync()
    assert await house.said(f"codex:{SESSION}") == ["one", "two"]


async def test_a_fork_whose_beginning_is_gone_says_so_and_keeps_the_rest(house: House) -> None:
    place = CodexWriter(session_id=PARENT).talk("one").place()
    CodexWriter(first=9, forked_from_id=PARENT, history_base=place).talk("three").save(house.folder / "codex")
    itself = "019a8c0e-2222-7000-8000-000000000007"
    turning = {"thread_id": itself, "end_ordinal_exclusive": 3, "end_byte_offset": 9}
    CodexWriter(session_id=itself, first=3, history_base=turning).talk("x").save(house.folder / "codex")
    assert (await house.sync()).failed == ()
    for uuid, said in ((SESSION, "three"), (itself, "x")):
        assert await house.said(f"codex:{uuid}") == [said]
        assert (await by_id(house, uuid)).meta["history_is_lost"] is True


@BOTH
async def test_a_subagents_session_is_a_child_without_what_it_was_given(house: House, mode: Mode) -> None:
    parent = CodexWriter(mode, PARENT).talk("Do it", "I ask somebody.")
    parent.save(house.folder / "codex")
    spawned = {"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada", "agent_role": "explorer"}
    child = CodexWriter(mode, source={"subagent": {"thread_spawn": spawned}}, forked_from_id=PARENT)
    for record in parent.records:
        child.line(record["type"], record["payload"])
    if mode == "paginated":
        child.records[0]["payload"]["subagent_history_start_ordinal"] = len(child.records)
    child.talk("Look there", "Nothing there.")
    child.save(house.folder / "codex")
    assert (await house.sync()).failed == ()
    session = await by_id(house, SESSION)
    assert (session.parent, session.meta["agent"]) == (f"codex:{PARENT}", "Ada")
    assert await house.said(session.id) == ["Look there", "Nothing there."]
    assert session.meta["usage"]["output"] == 5
    assert house.source.resume(session) is None


async def test_packed_and_archived_rollouts_are_sessions_too(house: House) -> None:
    made = CodexWriter().talk("one", "two")
    plain = made.save(house.folder / "codex")
    await house.sync()
    plain.unlink()
    packed = made.save(house.folder / "codex", packed=True)
    assert (await house.sync()).kept == 0
    session = await house.only()
    assert (session.archived, session.meta["path"]) == (False, str(packed))
    assert await original(house.sessions, LOCAL, session.id) == packed.read_bytes()
    assert house.source.restorable_path(session) == packed
    packed.unlink()
    made.save(house.folder / "codex", archived=True)
    await house.sync()
    session = await house.only()
    assert session.archived
    assert "source_gone" not in session.meta
    assert await house.said(session.id) == ["one", "two"]


async def test_a_thread_that_went_back_goes_on_in_its_newest_rollout(house: House) -> None:
    first = CodexWriter().talk("one", "two")
    place = first.place()
    first.talk("regretted")
    old = first.save(house.folder / "codex")
    await house.sync()
    later = CodexWriter(first=place["end_ordinal_exclusive"], history_base=place).talk("three")
    new = later.save(house.folder / "codex", own="019a8c0e-2222-7000-8000-000000000077")
    await house.sync()
    session = await house.only()
    assert await house.said(session.id) == ["one", "two", "three"]
    name_threads(house.folder / "codex", {SESSION: None}, paths={SESSION: old})
    await house.sync()
    assert (await house.only()).meta["path"] == str(old)
    name_threads(house.folder / "codex", {SESSION: None}, paths={SESSION: new})
    await house.sync()
    assert await house.said(session.id) == ["one", "two", "three"]


async def test_names_come_from_codexs_own_database_without_touching_it(house: House) -> None:
    home = house.folder / "codex"
    other = "019a8c0e-2222-7000-8000-000000000002"
    CodexWriter().talk("one").save(home)
    CodexWriter(session_id=other).talk("two").save(home)
    (home / "session_index.jsonl").write_text(json.dumps({"id": other, "thread_name": "Indexed"}) + "\n{torn")
    name_threads(home, {SESSION: "Engine work"})
    before = house.hashes(home)
    await house.sync()
    assert (await by_id(house, SESSION)).title == "Engine work"
    assert (await by_id(house, other)).title == "Indexed"
    assert house.hashes(home) == before
    name_threads(home, {SESSION: "Engine mended"})
    report = await house.sync()
    assert (report.parsed_files, report.parsed_bytes) == (1, 0)
    assert (await by_id(house, SESSION)).title == "Engine mended"


def nonsense(database: Path) -> None:
    database.write_bytes(b"nonsense" * 1_000)


def held(database: Path) -> apsw.Connection:
    holder = apsw.Connection(str(database))
    holder.execute(
        "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE threads SET name = 'Other'"
    ).fetchall()
    return holder


@pytest.mark.parametrize("harm", [nonsense, held])
async def test_while_the_database_cannot_be_read_names_stay_and_that_is_told(
    house: House, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], apsw.Connection | None]
) -> None:
    monkeypatch.setattr(databases, "BUSY_MS", 10)
    home, other = house.folder / "codex", "019a8c0e-2222-7000-8000-000000000002"
    database = home / "state_5.sqlite"
    CodexWriter().talk("one").save(home)
    grown = CodexWriter(session_id=other).talk("two")
    path = grown.save(home)
    name_threads(home, {SESSION: "Engine work", other: "Barn work"})
    await house.sync()
    whole = database.read_bytes()
    holder = harm(database)
    os.symlink("/nowhere", home / "state_6.sqlite")
    report = await house.sync()
    (failure,) = report.failed
    assert failure.startswith("state_5.sqlite: ")
    assert (report.unchanged, report.parsed_files, report.kept) == (2, 0, 0)
    path.write_bytes(grown.talk("three").data())
    assert (await house.sync()).parsed_files == 1
    assert (await by_id(house, SESSION)).title == "Engine work"
    assert (await by_id(house, other)).title == "Barn work"
    assert await house.said(f"codex:{other}") == ["two", "three"]
    if holder is not None:
        holder.close()
    database.write_bytes(whole)
    report = await house.sync()
    assert (report.failed, report.parsed_files, report.parsed_bytes) == ((), 1, 0)
    assert (await by_id(house, other)).title == "Barn work"
    assert (await house.sync()).parsed_files == 0


async def test_without_a_database_that_can_be_read_a_new_session_has_its_first_words(house: House) -> None:
    home = house.folder / "codex"
    CodexWriter().talk("one").save(home)
    nonsense(home / "state_5.sqlite")
    await house.sync()
    assert (await house.only()).title == "one"
    (home / "state_5.sqlite").unlink()
    name_threads(home, {SESSION: "Engine work"})
    await house.sync()
    assert (await house.only()).title == "Engine work"


@pytest.mark.parametrize(
    "begun", ["CREATE TABLE other (id TEXT)", "CREATE TABLE threads (id TEXT, rollout_path TEXT, name TEXT)"]
)
async def test_a_newer_database_without_threads_says_nothing_yet(house: House, begun: str) -> None:
    home = house.folder / "codex"
    old = CodexWriter().talk("one").save(home)
    CodexWriter().talk("newer").save(home, own="019a8c0e-2222-7000-8000-000000000077")
    name_threads(home, {SESSION: "Engine work"}, paths={SESSION: old})
    apsw.Connection(str(home / "state_12.sqlite")).execute(begun)
    assert (await house.sync()).failed == ()
    session = await house.only()
    assert (session.title, session.meta["path"]) == ("Engine work", str(old))


async def test_a_name_that_is_no_utf8_costs_its_bad_bytes_only(house: House) -> None:
    home, other = house.folder / "codex", "019a8c0e-2222-7000-8000-000000000002"
    CodexWriter().talk("one").save(home)
    CodexWriter(session_id=other).talk("two").save(home)
    name_threads(home, {SESSION: "Engine work", other: "x"})
    bad = "UPDATE threads SET name = CAST(? AS TEXT) WHERE id = ?"
    apsw.Connection(str(home / "state_5.sqlite")).execute(bad, (b"Bar\xffn", other))
    assert (await house.sync()).failed == ()
    assert (await by_id(house, SESSION)).title == "Engine work"
    assert (await by_id(house, other)).title == "Bar\ufffdn"


async def test_a_fork_is_read_again_when_what_it_begins_with_comes(house: House) -> None:
    home = house.folder / "codex"
    parent = CodexWriter(session_id=PARENT).talk("one", "two")
    fork = CodexWriter(first=50, forked_from_id=PARENT, history_base=parent.place()).talk("three")
    path = fork.save(home)
    await house.sync()
    path.write_bytes(fork.talk("four").data())
    assert (await house.sync()).parsed_bytes < len(fork.data())
    assert (await by_id(house, SESSION)).meta["history_is_lost"] is True
    assert (await house.sync()).parsed_files == 0
    parent.save(home)
    report = await house.sync()
    assert (report.parsed_files, report.failed) == (2, ())
    assert await house.said(f"codex:{SESSION}") == ["one", "two", "three", "four"]
    assert (await by_id(house, SESSION)).meta["history_is_lost"] is False
    assert (await house.sync()).parsed_files == 0


@pytest.mark.parametrize(
    ("shorter", "fuller"),
    [
        ({"archived": True}, {}),
        ({}, {"archived": True}),
        ({"archived": True, "packed": True}, {"packed": True}),
        ({"packed": True}, {"archived": True}),
    ],
)
async def test_of_a_rollout_that_is_there_twice_the_fullest_is_read(
    house: House, shorter: dict[str, Any], fuller: dict[str, Any]
) -> None:
    made = CodexWriter().talk("one", "two")
    made.save(house.folder / "codex", **shorter)
    path = made.talk("three", "four").save(house.folder / "codex", **fuller)
    report = await house.sync()
    assert (report.found, report.new) == (1, 1)
    session = await house.only()
    assert await house.said(session.id) == ["one", "two", "three", "four"]
    assert (session.meta["path"], session.archived) == (str(path), fuller.get("archived", False))


async def test_nothing_but_rollouts_is_read_and_nothing_written_elsewhere(house: House) -> None:
    home = house.folder / "codex"
    path = CodexWriter().talk("one").save(home)
    (home / "auth.json").write_text("secret")
    (path.parent / "notes.jsonl").write_text("{}")
    (path.parent / path.name.replace("00000001", "00000003")).symlink_to(path)
    assert (await house.sync()).found == 1
    for elsewhere in (home / "auth.json", home / "sessions" / ".." / path.name, house.folder / path.name):
        session = await house.sessions.set_meta(LOCAL, f"codex:{SESSION}", {"path": str(elsewhere)})
        assert house.source.restorable_path(session) is None


def test_codex_is_where_its_variable_says(tmp_path: Path) -> None:
    assert AGENTS["codex"].home({"CODEX_HOME": str(tmp_path)}) == tmp_path
    assert AGENTS["codex"].home({}) == Path.home() / ".codex"


def test_pictures_have_their_bytes_wherever_the_rollout_has_them() -> None:
    made = CodexWriter()
    made.begin()
    pictures = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{data}"} for data in ("aGk=", "eW8=")
    ]
    around = [{"type": "input_text", "text": '<image name=[Image #1] path="/a.png">'}]
    made.item("message", role="user", content=[*around, *pictures, {"type": "input_text", "text": "See"}])
    names = [{"type": "local_image", "path": path} for path in ("/a.png", "/b.png", "/lost.png")]
    made.shown("UserMessage", id="u", content=[*names, {"type": "text", "text": "See"}])
    made.call("c1", "view_image", path="/b.png")
    made.shown("ImageView", id="c1", path="file:///b.png")
    made.item("function_call_output", call_id="c1", output=[pictures[1]])
    prompt, _, result = read(made).entries
    a, b = (Image(mime_type="image/png", data=data) for data in ("aGk=", "eW8="))
    kept = (
        replace(a, uri="/a.png"),
        replace(b, uri="/b.png"),
        ResourceLink(uri="/lost.png"),
        Text(text="See"),
    )
    assert prompt.parts == kept
    assert result.parts == (ToolResult(id="c1", content=(b,)),)
    # What was read between the two records of a prompt is not lost.
    data, cut = made.data(), len(b"".join(made.lines()[:4]))
    first = parse(data[:cut])
    assert first is not None
    rest = parse(data[cut:], first.state)
    assert rest is not None
    assert (*first.entries, *rest.entries) == read(made).entries
