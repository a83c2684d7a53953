"""What was said beside the conversation, and summaries of a part of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.model import LOCAL, Text, plain_text
from hitherto.service import Sessions
from hitherto.sources.claude.parse import parse
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync, find_all
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import SESSION, random_transcript, writer


def said(made: Writer) -> list[str]:
    return [plain_text(entry) for entry in parse(made.data()).entries]


def branches(made: Writer) -> list[list[str]]:
    return [[plain_text(entry) for entry in branch.entries] for branch in parse(made.data()).branches]


def test_what_was_rewound_is_a_branch_behind_where_it_left() -> None:
    made = writer()
    made.user("one")
    answer = made.say("two")
    made.user("three")
    made.say("four")
    made.user("three, but better", parentUuid=answer["uuid"])
    made.say("five")
    assert said(made) == ["one", "two", "three, but better", "five"]
    (branch,) = parse(made.data()).branches
    assert [plain_text(entry) for entry in branch.entries] == ["three", "four"]
    assert branch.after == answer["uuid"]


def test_a_branch_of_a_branch_leaves_it_where_it_did() -> None:
    made = writer()
    made.user("one")
    made.user("two")
    first = made.say("three")
    made.user("four")
    made.user("five", parentUuid=first["uuid"])
    made.user("six", parentUuid=None)
    assert said(made) == ["six"]
    got = parse(made.data()).branches
    assert [[plain_text(entry) for entry in branch.entries] for branch in got] == [
        ["one", "two", "three", "five"],
        ["four"],
    ]
    assert [branch.after for branch in got] == [None, first["uuid"]]


def test_tools_that_ran_side_by_side_stay_together_on_a_branch() -> None:
    made = writer()
    first = made.user("Compare")
    a, one = made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    b, two = made.call("Read", {"file_path": "/b"}, message_id="msg_1")
    made.result(two, "B", parentUuid=b["uuid"])
    made.result(one, "A", parentUuid=a["uuid"])
    made.user("Something else", parentUuid=first["uuid"])
    (branch,) = parse(made.data()).branches
    assert [entry.role for entry in branch.entries] == ["assistant", "tool", "tool"]


def test_usage_and_models_of_branches_count() -> None:
    made = writer()
    first = made.user("one")
    made.say("two")
    alone = parse(made.data()).info.usage
    made.user("three", parentUuid=first["uuid"])
    made.say("four")
    both = parse(made.data()).info.usage
    assert alone is not None
    assert both is not None
    assert both.output == 2 * (alone.output or 0)


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_whatever_was_said_is_in_the_conversation_or_in_one_branch(seed: int, steps: int) -> None:
    data = random_transcript(seed, steps)
    got = parse(data)
    everywhere = [*got.entries, *(entry for branch in got.branches for entry in branch.entries)]
    texts = {part.text for entry in everywhere for part in entry.parts if isinstance(part, Text)}
    for record in map(json.loads, data.splitlines()):
        content = record.get("message", {}).get("content")
        if record["type"] == "user" and isinstance(content, str) and not record["isSidechain"]:
            assert content in texts or record.get("isMeta") or content.startswith("<system-reminder>")
    known = {entry.id for entry in got.entries}
    for branch in got.branches:
        assert branch.after is None or branch.after in known
        known |= {entry.id for entry in branch.entries}


@pytest.mark.parametrize(
    ("direction", "context"),
    [("up_to", ["S", "three", "four", "five"]), ("from", ["one", "two", "S", "five"])],
)
async def test_a_partial_summary_stands_where_it_does_for_the_agent(
    tmp_path: Path, sessions: Sessions, direction: str, context: list[str]
) -> None:
    made = writer()
    made.user("one")
    made.say("two")
    pivot = made.user("three")
    made.say("four")
    made.summarize(direction, pivot["uuid"], summary="S")
    made.user("five")
    assert branches(made) == []
    made.save(tmp_path / "projects")
    source = ClaudeSource(tmp_path)
    ledger = Ledger(tmp_path / "ledger")
    report = await Sync(sessions, LOCAL, ledger, processes=0).run([source], find_all([source]))
    ledger.close()
    assert report.failed == ()
    name = f"claude:{SESSION}"
    page = await sessions.history(LOCAL, name)
    assert [plain_text(entry) for entry in page.entries] == context
    whole = await sessions.history(LOCAL, name, view="conversation")
    everything = [plain_text(entry) for entry in whole.entries]
    assert everything == ["one", "two", "three", "four", "Conversation compacted", "S", "five"]
