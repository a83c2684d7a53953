from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.claude.chain import links
from hitherto.claude.lines import read_records
from hitherto.claude.tree import conversation
from hitherto.model import (
    Entry,
    ToolResult,
    plain_text,
)
from hitherto.sources.claude.parse import Compacted, parse
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import random_transcript, writer


def entries(made: Writer) -> tuple[Entry, ...]:
    return parse(made.data()).entries


def said(made: Writer) -> list[str]:
    return [plain_text(entry) for entry in entries(made)]


def test_the_branch_with_the_newest_message_is_the_conversation() -> None:
    made = writer()
    first = made.user("one")
    made.say("two")
    made.user("three", parentUuid=first["uuid"])
    assert said(made) == ["one", "three"]


def test_the_leaf_that_the_program_named_wins_with_what_followed_it() -> None:
    made = writer()
    first = made.user("one")
    kept = made.say("two")
    made.user("three", parentUuid=first["uuid"])
    made.last_prompt(leaf=kept["uuid"])
    assert said(made) == ["one", "two"]
    made.user("four", parentUuid=kept["uuid"])
    assert said(made) == ["one", "two", "four"]


def test_a_named_leaf_that_is_not_there_or_null_changes_nothing() -> None:
    made = writer()
    made.user("one")
    made.note("last-prompt", leafUuid="nobody")
    assert said(made) == ["one"]
    made.note("last-prompt", leafUuid=None, explicit=True)
    assert said(made) == ["one"]


def test_results_of_tools_that_ran_side_by_side_are_all_there_in_the_order_of_the_file() -> None:
    made = writer()
    made.user("Compare")
    a, first = made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    b, second = made.call("Read", {"file_path": "/b"}, message_id="msg_1")
    made.result(second, "B", parentUuid=b["uuid"])
    made.result(first, "A", parentUuid=a["uuid"])
    made.say("Same", parentUuid=made.records[-2]["uuid"])
    got = entries(made)
    assert [entry.role for entry in got] == ["user", "assistant", "tool", "tool", "assistant"]
    assert len(got[1].parts) == 2
    assert [entry.parts[0].id for entry in got[2:4] if isinstance(entry.parts[0], ToolResult)] == [
        second,
        first,
    ]


def test_what_was_before_a_compaction_stays_and_the_boundary_is_marked() -> None:
    made = writer()
    made.user("one")
    made.say("two")
    made.compact(summary="They counted.")
    made.user("three")
    got = entries(made)
    assert [entry.role for entry in got] == ["user", "assistant", "system", "system", "user"]
    boundary = {"compaction_boundary": True, "trigger": "manual", "pre_tokens": 90_000, "post_tokens": 4_000}
    assert got[2].meta == boundary
    assert got[3].meta == {"compact_summary": True}
    assert plain_text(got[3]) == "They counted."


@pytest.mark.parametrize("follows", ["the summary", "what was kept"])
def test_messages_that_a_compaction_kept_are_there_once(follows: str) -> None:
    made = writer()
    made.user("one")
    kept = [made.user("two")["uuid"], made.say("three")["uuid"]]
    summary = made.compact(keep=kept, summary="sum")
    made.user("four", parentUuid=summary["uuid"] if follows == "the summary" else kept[-1])
    assert said(made) == ["one", "two", "three", "Conversation compacted", "sum", "four"]


def test_a_compaction_is_told_with_its_boundary_its_summary_and_what_it_kept() -> None:
    made = writer()
    made.user("one")
    kept = [made.user("two")["uuid"], made.say("three")["uuid"]]
    summary = made.compact(keep=kept)
    made.user("four")
    again = made.compact()
    got = parse(made.data())
    first, second = [entry.id for entry in got.entries if entry.meta.get("compaction_boundary")]
    assert got.compactions == (
        Compacted(boundary=first, summary=summary["uuid"], kept=tuple(kept)),
        Compacted(boundary=second, summary=again["uuid"]),
    )


def test_the_older_way_to_tell_what_a_compaction_kept_is_understood() -> None:
    made = writer()
    kept = made.user("one")["uuid"]
    made.compact(keep=[kept])
    del made.records[-2]["compactMetadata"]["preservedMessages"]
    (told,) = parse(made.data()).compactions
    assert told.kept == (kept,)


def test_a_boundary_waits_for_its_summary_to_be_written() -> None:
    made = writer()
    made.user("one")
    made.compact()
    summary = made.records.pop()
    before = parse(made.data())
    assert before.compactions == ()
    made.records.append(summary)
    (told,) = parse(made.data()[before.state.offset :], before.state).compactions
    assert (told.boundary, told.summary) == (before.entries[-1].id, summary["uuid"])


def test_a_lost_parent_hides_nothing() -> None:
    made = writer()
    made.user("one")
    made.say("two")
    made.user("three", parentUuid="never written")
    assert said(made) == ["one", "two", "three"]


def test_a_lost_parent_hides_nothing_after_a_note_to_something_earlier() -> None:
    made = writer()
    first = made.user("one")
    made.user("two")
    made.link("system", subtype="informational", content="note", parentUuid=first["uuid"])
    made.user("three", parentUuid="never written")
    assert said(made) == ["one", "two", "note", "three"]


def test_what_hangs_from_the_conversation_beside_its_course_is_there() -> None:
    made = writer()
    first = made.user("one")
    made.attach("queued_command", prompt="and this")
    made.say("two", parentUuid=first["uuid"])
    assert said(made) == ["one", "and this", "two"]


def test_parents_that_go_round_in_circles_hide_nothing() -> None:
    made = writer()
    first = made.user("one")
    first["parentUuid"] = made.say("two")["uuid"]
    made.records[-1]["parentUuid"] = made.records[-1]["uuid"]
    assert said(made) == ["one", "two"]


def test_a_record_written_again_stays_in_its_place_and_says_the_newer_thing() -> None:
    made = writer()
    first = made.user("one")
    made.say("two")
    made.records.append({**first, "message": {"role": "user", "content": "one, better"}})
    made.say("three")
    assert said(made) == ["one, better", "two", "three"]


def test_uuids_that_no_store_could_keep_get_another_name() -> None:
    made = writer()
    made.user("one", uuid="a\0b")
    made.user("two", uuid="x" * 10_000)
    ids = [entry.id for entry in entries(made)]
    assert len(set(ids)) == 2
    assert all(entry_id.startswith("id-") and len(entry_id) < 50 for entry_id in ids)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 40))
def test_everything_that_the_program_would_go_on_with_is_there(seed: int, steps: int) -> None:
    data = random_transcript(seed, steps, usual=True)
    found = links(read_records(data)[0])
    own = (found[place] for place in conversation(found, "cli"))
    prompts = {link.uuid for link in own if link.type == "user" and not link.is_sidechain}
    assert prompts <= {entry.id for entry in parse(data).entries}
