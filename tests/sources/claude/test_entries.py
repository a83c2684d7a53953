from __future__ import annotations

import json
from typing import Any

import pytest

from hitherto.limits import ENTRY_BYTES
from hitherto.model import (
    Entry,
    Image,
    Plan,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    decode_entry,
    encode,
    is_error,
    plain_text,
)
from hitherto.sources.claude.parse import parse
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import writer

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def entries(made: Writer) -> tuple[Entry, ...]:
    return parse(made.data()).entries


def said(made: Writer) -> list[str]:
    return [plain_text(entry) for entry in entries(made)]


def only(made: Writer) -> Entry:
    (entry,) = entries(made)
    return entry


# What becomes of messages


def test_a_prompt_is_a_user_entry_under_its_own_uuid_and_time() -> None:
    made = writer()
    record = made.user("Fix the login page")
    entry = only(made)
    assert (entry.id, entry.role, entry.parts) == (record["uuid"], "user", (Text(text="Fix the login page"),))
    assert entry.at == made.now


def test_blocks_of_a_prompt_become_text_images_and_resources() -> None:
    made = writer()
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "cGRm"}
    text = {"type": "text", "media_type": "text/plain", "data": "plain"}
    made.user(
        [
            {"type": "text", "text": "Look:"},
            PNG,
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "document", "source": pdf, "title": "Report"},
            {"type": "document", "source": text},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/b.pdf"}},
        ]
    )
    assert only(made).parts == (
        Text(text="Look:"),
        Image(mime_type="image/png", data="aGk="),
        Image(mime_type="image/*", uri="https://example.org/a.png"),
        Resource(uri="document:Report", mime_type="application/pdf", blob="cGRm"),
        Resource(uri="document:untitled", mime_type="text/plain", text="plain"),
        ResourceLink(uri="https://example.org/b.pdf"),
    )


def test_the_blocks_of_one_answer_are_one_entry_with_its_usage_once() -> None:
    made = writer()
    made.user("Read it")
    first = made.assistant({"type": "thinking", "thinking": "Hm.", "signature": "sig"}, message_id="msg_1")
    made.assistant({"type": "text", "text": "I read it."}, message_id="msg_1")
    made.call("Read", {"file_path": "/src/app.py", "offset": 12}, message_id="msg_1")
    _, answer = entries(made)
    assert answer.id == first["uuid"]
    assert answer.role == "assistant"
    assert answer.model == "claude-sonnet-4-5"
    assert answer.usage == Usage(input=12_009, output=21, cache_read=12_000, request="msg_1")
    assert answer.tokens == 21
    thought, text, call = answer.parts
    assert thought == Thought(text="Hm.", signature="sig", provider="anthropic")
    assert text == Text(text="I read it.")
    assert isinstance(call, ToolCall)
    assert (call.kind, call.title) == ("read", "Read /src/app.py")
    assert call.locations == ({"path": "/src/app.py", "line": 12},)


def test_usage_is_summed_over_answers_and_takes_the_last_state_of_each() -> None:
    made = writer()
    for output in (3, 851):
        made.assistant({"type": "text", "text": "x"}, message_id="msg_1")
        made.records[-1]["message"]["usage"] = {"input_tokens": 10, "output_tokens": output}
    made.say("y")
    made.records[-1]["message"]["usage"] = {
        "input_tokens": 20,
        "output_tokens": 9,
        "cache_creation_input_tokens": 5,
    }
    got = parse(made.data())
    assert got.info.usage == Usage(input=35, output=860, cache_write=5)
    assert got.info.models == ("claude-sonnet-4-5",)


@pytest.mark.parametrize(
    ("name", "given", "kind", "title"),
    [
        ("Bash", {"command": "git status\nls"}, "execute", "git status ls"),
        ("Edit", {"file_path": "/a.py"}, "edit", "Edit /a.py"),
        ("Write", {"file_path": "/a.py", "content": "x"}, "edit", "Write /a.py"),
        ("Grep", {"pattern": "TODO"}, "search", "Search for TODO"),
        ("Glob", {"pattern": "**/*.py"}, "search", "Find **/*.py"),
        ("WebFetch", {"url": "https://example.org"}, "fetch", "Fetch https://example.org"),
        ("WebSearch", {"query": "sqlite"}, "fetch", "Search the web for sqlite"),
        ("Agent", {"description": "Look around", "prompt": "…"}, "think", "Look around"),
        ("mcp__github__list_issues", {}, "other", "github: list_issues"),
        ("Frobnicate", {"x": 1}, "other", None),
        ("Bash", "not an object", "execute", ""),
    ],
)
def test_a_call_says_what_kind_it_is_and_what_it_is_about(
    name: str, given: Any, kind: str, title: str | None
) -> None:
    made = writer()
    made.call(name, given)
    (call,) = only(made).parts
    assert isinstance(call, ToolCall)
    assert (call.name, call.input, call.kind, call.title) == (name, given, kind, title)


def test_a_to_do_list_is_a_plan_beside_the_call() -> None:
    made = writer()
    made.call(
        "TodoWrite", {"todos": [{"content": "Test it", "status": "in_progress", "activeForm": "Testing"}]}
    )
    call, plan = only(made).parts
    assert isinstance(call, ToolCall)
    assert plan == Plan(steps=({"content": "Test it", "status": "in_progress", "priority": "medium"},))


def test_a_tools_answer_is_a_tool_entry_with_its_structure() -> None:
    made = writer()
    _, call = made.call("Bash", {"command": "make"})
    block = {
        "type": "tool_result",
        "tool_use_id": call,
        "content": [{"type": "text", "text": "no"}, PNG],
        "is_error": True,
    }
    made.link(
        "user",
        message={"role": "user", "content": [block]},
        toolUseResult={"stderr": "no", "interrupted": False},
    )
    entry = entries(made)[1]
    assert entry.role == "tool"
    assert is_error(entry)
    assert entry.parts == (
        ToolResult(
            id=call,
            content=(Text(text="no"), Image(mime_type="image/png", data="aGk=")),
            is_error=True,
            output={"stderr": "no", "interrupted": False},
        ),
    )


def test_of_a_long_structure_only_the_short_fields_are_kept() -> None:
    made = writer()
    _, call = made.call("Edit", {"file_path": "/a"})
    made.result(call, "done")
    made.records[-1]["toolUseResult"] = {"originalFile": "x" * 50_000, "structuredPatch": [{"oldStart": 1}]}
    (result,) = entries(made)[1].parts
    assert isinstance(result, ToolResult)
    assert result.output == {"structuredPatch": [{"oldStart": 1}]}


def test_what_the_program_put_in_is_marked_and_is_never_the_first_prompt() -> None:
    made = writer()
    made.user("Caveat: ignore this", isMeta=True)
    made.user([{"type": "text", "text": "<system-reminder>Be brief</system-reminder>"}])
    made.user("<task-notification>done</task-notification>", origin={"kind": "task-notification"})
    made.user("Add a button")
    got = parse(made.data())
    assert [entry.meta.get("meta", False) for entry in got.entries] == [True, True, False, False]
    assert [entry.role for entry in got.entries] == ["system", "system", "system", "user"]
    assert got.info.first_prompt == "Add a button"


def test_a_command_stands_in_for_a_first_prompt() -> None:
    made = writer()
    made.user("<command-message>init</command-message><command-name>/init</command-name>")
    assert parse(made.data()).info.first_prompt == "/init"


def test_prompts_that_waited_are_user_messages() -> None:
    made = writer()
    made.user("Build it")
    made.attach("queued_command", prompt="and test it", commandMode="prompt")
    made.attach("queued_command", prompt=[{"type": "text", "text": "like this"}, PNG])
    made.attach("queued_command", prompt="<task-notification/>", commandMode="task-notification")
    got = entries(made)
    assert [entry.role for entry in got] == ["user", "user", "user", "system"]
    assert [plain_text(entry) for entry in got[:3]] == ["Build it", "and test it", "like this"]
    assert got[2].parts[1] == Image(mime_type="image/png", data="aGk=")
    assert "meta" not in got[1].meta
    assert got[3].meta["origin"] == "task-notification"


def test_a_file_that_was_pointed_at_is_a_resource() -> None:
    made = writer()
    made.attach(
        "file", filename="/a.py", content={"type": "text", "file": {"filePath": "/a.py", "content": "x = 1"}}
    )
    entry = only(made)
    assert entry.parts == (Resource(uri="/a.py", text="x = 1"),)
    assert entry.meta["meta"] is True


def test_errors_of_the_service_count_as_errors_and_name_no_model() -> None:
    made = writer()
    made.user("Hello")
    made.say("API Error: overloaded", isApiErrorMessage=True)
    made.records[-1]["message"]["model"] = "<synthetic>"
    made.link("system", subtype="api_error", content="503", level="error")
    _, answer, system = entries(made)
    assert is_error(answer)
    assert is_error(system)
    assert answer.model is None
    assert parse(made.data()).info.models == ()


def test_what_the_system_says_is_kept_and_its_bookkeeping_is_not() -> None:
    made = writer()
    made.link("system", subtype="local_command", content="<local-command-stdout>ok</local-command-stdout>")
    made.link("system", subtype="turn_duration", durationMs=5)
    got = parse(made.data())
    assert [entry.meta for entry in got.entries] == [{"subtype": "local_command"}]
    assert got.info.left_out == {"system turn_duration": 1}


# What is left out, and what is new


def test_snapshots_of_the_vendors_prompt_are_left_out_and_counted() -> None:
    made = writer()
    made.user("Hello")
    made.attach("prompt_snapshot", system="You are …", tools=[{"name": "Bash"}])
    made.note("api-request-blob", blob={"system": "You are …"})
    made.note("api-request", hash="x")
    made.say("Hi")
    got = parse(made.data())
    assert [plain_text(entry) for entry in got.entries] == ["Hello", "Hi"]
    assert got.info.left_out == {"attachment prompt_snapshot": 1, "api-request-blob": 1, "api-request": 1}
    assert b"You are" not in encode(got)


def test_what_is_of_a_new_kind_is_kept_as_it_came_and_counted() -> None:
    made = writer()
    made.user([{"type": "hologram", "depth": 3}])
    linked = made.link("telepathy", thought="…")
    attached = made.attach("scent", note="roses")
    made.link("system", subtype="mood", mood="good")
    made.say("Hi")
    for count in range(12):
        made.note("weather", count=count)
    got = parse(made.data())
    assert got.info.unknown == {"block hologram": 1, "telepathy": 1, "attachment scent": 1, "weather": 12}
    raws = [part.raw for entry in got.entries for part in entry.parts if isinstance(part, Unknown)]
    assert raws[:3] == [{"type": "hologram", "depth": 3}, linked, attached]
    assert raws[3]["mood"] == "good"
    assert got.info.extra["weather"]["count"] == 11
    assert len(got.entries) == 5


def test_blocks_without_a_part_of_ours_are_kept_without_being_new() -> None:
    made = writer()
    made.assistant({"type": "redacted_thinking", "data": "xyz"})
    got = parse(made.data())
    assert got.entries[0].parts == (Unknown(raw={"type": "redacted_thinking", "data": "xyz"}),)
    assert got.info.unknown == {}


def test_tools_that_run_beside_the_model_are_calls_and_results() -> None:
    made = writer()
    made.assistant({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "cats"}})
    pages = [
        {"type": "web_search_result", "url": "https://example.org", "title": "Cats", "encrypted_content": "…"}
    ]
    made.assistant({"type": "web_search_tool_result", "tool_use_id": "s1", "content": pages})
    call, result = (entry.parts[0] for entry in entries(made))
    assert isinstance(call, ToolCall)
    assert call.title == "Search the web for cats"
    assert result == ToolResult(id="s1", content=(ResourceLink(uri="https://example.org", title="Cats"),))


def test_progress_is_passed_over_and_links_what_is_around_it() -> None:
    made = writer()
    made.user("Hello")
    for _ in range(3):
        made.link("progress", data={"type": "hook_progress"})
    made.say("Hi")
    assert said(made) == ["Hello", "Hi"]


@pytest.mark.parametrize("strange", [{"filename": 7}, {"commandMode": []}, {"prompt": "\ud800"}])
def test_an_attachment_with_a_strange_field_is_still_of_its_kind(strange: dict[str, Any]) -> None:
    made = writer()
    made.attach("prompt_snapshot", **strange)
    made.attach("file", content={"content": "its text"}, **strange)
    got = parse(made.data())
    assert got.info.left_out == {"attachment prompt_snapshot": 1}
    assert [part.text for part in got.entries[0].parts if isinstance(part, Resource)] == ["its text"]


@pytest.mark.parametrize("nothing", [None, "text", 5, []])
def test_an_attachment_that_is_none_is_of_an_unknown_kind(nothing: object) -> None:
    made = writer()
    made.link("attachment", {"attachment": nothing})
    assert parse(made.data()).info.unknown == {"attachment ?": 1}


def test_fields_of_strange_types_cost_nothing_but_themselves() -> None:
    made = writer()
    made.user("Hello", cwd=7, gitBranch=["x"], isMeta="no", timestamp="soon", origin=3)
    made.say("Hi")
    made.records[-1]["message"] |= {"usage": {"output_tokens": "many"}, "model": 5}
    made.link("user", message="not a message")
    made.link("assistant", message={"content": {"type": "text"}})
    got = entries(made)
    assert [plain_text(entry) for entry in got] == ["Hello", "Hi", "", ""]
    assert got[1].usage is None


def test_lone_surrogates_and_huge_numbers_come_back_as_they_were() -> None:
    made = writer()
    made.user("half a smile \ud83d")
    made.call("Bash", {"n": 10**30, "s": "\ud83d"})
    data = b"".join(json.dumps(record).encode() + b"\n" for record in made.records)
    first, second = parse(data).entries
    assert plain_text(first) == "half a smile \ud83d"
    assert decode_entry(encode(second)).parts == second.parts


def test_line_separators_within_a_message_do_not_part_it() -> None:
    made = writer()
    made.user("one\u2028two\u2029three\u0085four\x0bfive")
    assert said(made) == ["one\u2028two\u2029three\u0085four\x0bfive"]


def test_a_message_too_large_to_be_kept_is_shortened_and_says_so() -> None:
    made = writer()
    made.user([{"type": "text", "text": "x" * ENTRY_BYTES}, PNG])
    entry = only(made)
    assert entry.meta["cut"] is True
    assert 0 < len(encode(entry)) < ENTRY_BYTES
    assert len(encode(parse(made.data()))) < ENTRY_BYTES


@pytest.mark.parametrize("depth", [200, 450, 900, 5_000])
def test_what_is_nested_too_deeply_leaves_a_note_in_its_place(depth: int) -> None:
    made = writer()
    made.user("one")
    nest = json.dumps("x")
    for _ in range(depth):
        nest = f'[{{"type":"tool_result","tool_use_id":"t","content":{nest}}}]'
    deep = made.user("DEEP")["uuid"]
    made.call("Bash", {"command": "DEEP"})
    made.attach("of a new kind", value="DEEP")
    made.note("of-a-new-kind", value="DEEP")
    made.say("two", parentUuid=deep)
    got = parse(made.data().replace(b'"DEEP"', nest.encode()))
    said = [plain_text(entry) for entry in got.entries]
    assert said[0] == "one"
    assert said[-1] == "two"
    assert set(said[1:-1]) <= {"[left out: nested too deeply]"}
    assert decode_entry(encode(got.entries[0])) == got.entries[0]
    assert encode(got)


def test_what_was_typed_is_shown_as_typed_and_what_the_program_made_of_it_is_not_the_users() -> None:
    made = writer()
    made.user(
        "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the parser</command-args>"
    )
    made.user("Base directory for this skill: /s\n\nRead it all.", isMeta=True)
    made.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    made.user("<bash-input>ls -l</bash-input>")
    made.user("<bash-stdout>a.txt</bash-stdout><bash-stderr>a warning</bash-stderr>")
    made.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    made.user("What does <command-name> mean?")
    got = [(entry.role, plain_text(entry)) for entry in entries(made)]
    assert got == [
        ("user", "/review the parser"),
        ("system", "Base directory for this skill: /s\n\nRead it all."),
        ("system", "Set model to opus"),
        ("user", "! ls -l"),
        ("system", "a.txt\na warning"),
        ("system", "[Request interrupted by user for tool use]"),
        ("user", "What does <command-name> mean?"),
    ]
    assert entries(made)[0].meta["command"] == "/review"
    assert entries(made)[5].meta == {"meta": True, "interrupted": True}


def test_what_hooks_said_is_kept_and_their_silence_is_counted() -> None:
    made = writer()
    made.user("Build it")
    made.attach("hook_success", hookName="PostToolUse:Edit", content="", stdout="formatted\n", stderr="")
    made.attach("hook_success", hookName="Stop", content="", stdout="", stderr="")
    made.attach("hook_additional_context", hookName="SessionStart", content=["one", "two"])
    made.attach(
        "hook_blocking_error", hookName="Stop", blockingError={"blockingError": "no tests", "command": "x"}
    )
    made.link("system", subtype="stop_hook_summary", hookCount=1, hookErrors=["it broke"], stopReason="")
    made.link("system", subtype="stop_hook_summary", hookCount=1, hookErrors=[])
    got = parse(made.data())
    assert [(entry.role, plain_text(entry)) for entry in got.entries[1:]] == [
        ("system", "PostToolUse:Edit: formatted"),
        ("system", "SessionStart: one\ntwo"),
        ("system", "Stop: no tests"),
        ("system", "Stop hooks: it broke"),
    ]
    assert got.info.left_out == {"attachment hook_success": 1, "system stop_hook_summary": 1}


def test_a_picture_that_was_attached_has_its_bytes_and_one_that_was_read_has_them_once() -> None:
    made = writer()
    made.user("Look")
    told = {"base64": "iVBORw0=", "type": "image/png", "originalSize": 5}
    made.attach("file", filename="/w/a.png", content={"type": "image", "file": told})
    made.attach("file", filename="/w/a.pdf", content={"type": "pdf", "file": {"base64": "JVBE"}})
    _, call = made.call("Read", {"file_path": "/w/b.png"})
    block = {"tool_use_id": call, "type": "tool_result", "content": [PNG]}
    made.link(
        "user",
        {"message": {"role": "user", "content": [block]}},
        toolUseResult={"type": "image", "file": told},
    )
    got = entries(made)
    assert got[1].parts == (Image(mime_type="image/png", data="iVBORw0=", uri="/w/a.png"),)
    assert got[2].parts == (Resource(uri="/w/a.pdf", mime_type="application/pdf", blob="JVBE"),)
    (result,) = got[4].parts
    assert isinstance(result, ToolResult)
    assert result.output == {"type": "image", "file": {"type": "image/png", "originalSize": 5}}
