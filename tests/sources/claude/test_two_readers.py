"""What the two readers of a transcript take for the conversation, side by side: docs/claude.md states the differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from hitherto.claude.chain import Link, links
from hitherto.claude.lines import decode, decode_object, read_records
from hitherto.claude.tree import Branch, conversation
from hitherto.model import plain_text
from hitherto.sources.claude.parse import parse
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import writer
from tests.support.paths import ROOT

SECTION = "## Which messages are the conversation"
BOUNDARY = "Conversation compacted"


class Case(NamedTuple):
    """A transcript, and the texts that each reader finds in it."""

    write: Callable[[Writer], object]
    sdk: list[str]
    cli: list[str]
    sync: list[str]


def _named_leaf(made: Writer) -> None:
    first = made.user("one")
    named = made.say("two")
    made.user("three", parentUuid=first["uuid"])
    made.last_prompt(leaf=named["uuid"])


def _empty_leaf(made: Writer) -> None:
    made.user("one")
    made.say("two")
    made.note("last-prompt", leafUuid=None, explicit=True)


def _compaction(made: Writer) -> None:
    made.user("one")
    made.say("two")
    made.compact(summary="summary")
    made.user("three")


def _kept_messages(made: Writer) -> None:
    made.user("one")
    kept = [made.user("two")["uuid"], made.say("three")["uuid"]]
    summary = made.compact(keep=kept, summary="summary")
    made.user("four", parentUuid=summary["uuid"])


def _summary_of_the_end(made: Writer) -> None:
    made.user("one")
    made.say("two")
    pivot = made.user("three")
    made.summarize("from", pivot["uuid"], summary="summary")
    made.user("four")


def _other_branch(made: Writer) -> None:
    first = made.user("one")
    made.say("two")
    made.user("three", parentUuid=first["uuid"])


def _missing_parent(made: Writer) -> None:
    made.user("one")
    made.say("two")
    made.user("three", parentUuid="never written")


def _note_beside(made: Writer) -> None:
    first = made.user("one")
    made.attach("queued_command", prompt="queued")
    made.link("system", subtype="informational", content="note", parentUuid=first["uuid"])
    made.say("two", parentUuid=first["uuid"])


def _newer_branch_with_note(made: Writer) -> None:
    first = made.user("one")
    made.say("two")
    made.user("three", parentUuid=first["uuid"])
    made.user("note", isMeta=True)


CASES = {
    "a `last-prompt` that names a leaf of an earlier branch": Case(
        _named_leaf, sdk=["one", "three"], cli=["one", "two"], sync=["one", "two"]
    ),
    "a `last-prompt` that says the conversation is empty": Case(
        _empty_leaf, sdk=["one", "two"], cli=[], sync=["one", "two"]
    ),
    "a compaction": Case(
        _compaction,
        sdk=[BOUNDARY, "summary", "three"],
        cli=[BOUNDARY, "summary", "three"],
        sync=["one", "two", BOUNDARY, "summary", "three"],
    ),
    "messages that a compaction kept": Case(
        _kept_messages,
        sdk=[BOUNDARY, "summary", "two", "three", "four"],
        cli=[BOUNDARY, "summary", "two", "three", "four"],
        sync=["one", "two", "three", BOUNDARY, "summary", "four"],
    ),
    "a summary of only the end (*Summarize from here*)": Case(
        _summary_of_the_end,
        sdk=[BOUNDARY, "one", "two", "summary", "four"],
        cli=[BOUNDARY, "one", "two", "summary", "four"],
        sync=["one", "two", "three", BOUNDARY, "summary", "four"],
    ),
    "another branch: rewound, edited, resumed elsewhere": Case(
        _other_branch, sdk=["one", "three"], cli=["one", "three"], sync=["one", "three"]
    ),
    "a record whose parent is missing": Case(
        _missing_parent, sdk=["one", "two", "three"], cli=["three"], sync=["one", "two", "three"]
    ),
    "a note or a queued prompt beside the path": Case(
        _note_beside, sdk=["one", "two"], cli=["one", "two"], sync=["one", "queued", "note", "two"]
    ),
    "a newer branch that ends with a note of the program": Case(
        _newer_branch_with_note, sdk=["one", "two"], cli=["one", "two"], sync=["one", "three", "note"]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_reader_finds_what_the_page_says(case: Case) -> None:
    made = writer()
    case.write(made)
    assert _messages(made, "sdk") == case.sdk
    assert _messages(made, "cli") == case.cli
    assert [plain_text(entry) for entry in parse(made.data()).entries] == case.sync


def test_the_page_names_every_case() -> None:
    section = (
        (ROOT / "docs" / "claude.md").read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    assert rows[2:] == list(CASES)


def _messages(made: Writer, branch: Branch) -> list[str]:
    found = links(read_records(made.data())[0])
    return [_text(found[place]) for place in conversation(found, branch)]


def _text(link: Link) -> str:
    if link.type == "system":
        return str(decode(bytes(link.content)))
    content = decode_object(bytes(link.message))["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)
