from __future__ import annotations

from hitherto.model import (
    Entry,
    plain_text,
)
from hitherto.sources.claude.parse import Child, child_id, parse, session_id
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import SESSION, writer

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def entries(made: Writer) -> tuple[Entry, ...]:
    return parse(made.data()).entries


def test_a_title_by_hand_goes_before_one_by_the_program_wherever_it_stands() -> None:
    made = writer()
    made.title("By hand")
    made.user("Hello " + "x" * 100_000)
    made.ai_title("By the program")
    info = parse(made.data()).info
    assert (info.title, info.title_by) == ("By hand", "user")
    made.title("")
    info = parse(made.data()).info
    assert (info.title, info.title_by) == ("By the program", "source")


def test_a_tool_input_never_becomes_the_title() -> None:
    made = writer()
    made.call("Write", {"customTitle": "hijacked", "summary": "hijacked", "type": "custom-title"})
    assert parse(made.data()).info.title is None


def test_an_old_summary_is_the_title_if_it_is_of_this_conversation() -> None:
    made = writer()
    leaf = made.user("Hello")["uuid"]
    made.note("summary", summary="Greetings", leafUuid="of another file")
    assert parse(made.data()).info.title is None
    made.note("summary", summary="Greetings", leafUuid=leaf)
    assert parse(made.data()).info.title == "Greetings"


def test_tags_folder_branch_times_cost_and_version_are_told() -> None:
    made = writer()
    begun = made.user("Hello")
    made.tag("old")
    made.tag("bug")
    made.link(
        "assistant", gitBranch="feature", message={"id": "m", "content": [{"type": "text", "text": "Hi"}]}
    )
    made.note("cost-state", totalCostUSD=0.25)
    info = parse(made.data()).info
    assert info.tags == ("bug",)
    assert (info.cwd, info.git_branch) == ("/home/ann/project", "feature")
    assert info.cost == 0.25
    assert (info.session_id, info.version, info.entrypoint) == (SESSION, begun["version"], "cli")
    assert (info.created_at, info.updated_at) == tuple(entry.at for entry in entries(made))
    made.tag("")
    made.note("relocated", relocatedCwd="/elsewhere")
    made.note("continued-in", continuedInSessionId="next")
    info = parse(made.data()).info
    assert (info.tags, info.cwd, info.continued_in) == ((), "/elsewhere", "next")


def test_a_session_without_a_cost_or_a_usage_says_so() -> None:
    made = writer()
    made.user("Hello")
    info = parse(made.data()).info
    assert (info.cost, info.usage, info.models) == (None, None, ())


def test_subagents_are_named_with_the_call_that_started_them() -> None:
    made = writer()
    _, call = made.call("Agent", {"description": "Look", "prompt": "Look around"})
    made.result(call, "started")
    made.records[-1]["toolUseResult"] = {"isAsync": True, "status": "async_launched", "agentId": "a17"}
    assert parse(made.data()).info.children == (Child(agent_id="a17", tool_use_id=call),)
    assert child_id(SESSION, "a17") == f"{session_id(SESSION)}:agent-a17"


def test_a_subagents_transcript_is_read_like_any_other() -> None:
    made = writer()
    made.note("agent-name", agentName="x")
    made.user("Look around", isSidechain=True, agentId="a17")
    made.say("Nothing here", isSidechain=True, agentId="a17")
    got = parse(made.data())
    assert [plain_text(entry) for entry in got.entries] == ["Look around", "Nothing here"]
    assert (got.info.sidechain, got.info.agent_id) == (True, "a17")


def test_what_a_subagent_said_in_an_old_transcript_is_no_part_of_the_conversation() -> None:
    made = writer()
    made.user("one")
    tip = made.last
    made.user("aside", isSidechain=True, parentUuid=None)
    made.say("answer aside", isSidechain=True)
    made.say("two", parentUuid=tip)
    got = parse(made.data())
    assert [plain_text(entry) for entry in got.entries] == ["one", "two"]
    assert got.info.left_out == {"sidechain": 2}
    assert got.info.agent_id is None


def test_an_empty_transcript_is_an_empty_conversation() -> None:
    got = parse(b"")
    assert (got.change, got.entries, got.total, got.info.created_at) == ("whole", (), 0, None)


def test_a_session_of_images_alone_is_a_conversation() -> None:
    made = writer()
    made.user([PNG])
    got = parse(made.data())
    assert len(got.entries) == 1
    assert got.info.first_prompt is None


def test_a_cost_is_known_for_what_was_said_until_then_and_requests_have_their_provider_s_names() -> None:
    made = writer()
    made.user("Hello")
    said = made.assistant({"type": "text", "text": "Hi"}, message_id="msg_1", requestId="req_1")
    made.note("cost-state", totalCostUSD=0.25)
    first = parse(made.data())
    made.assistant({"type": "text", "text": "More"}, message_id="msg_2")
    second = parse(made.data())
    assert (first.info.cost, second.info.cost) == (0.25, 0.25)
    assert first.info.cost_at == second.info.cost_at == first.entries[-1].at
    assert second.entries[-1].at > first.entries[-1].at
    assert said["uuid"] == first.entries[-1].id
    used = [entry.usage.request for entry in second.entries if entry.usage]
    assert used == ["msg_1 req_1", "msg_2"]
