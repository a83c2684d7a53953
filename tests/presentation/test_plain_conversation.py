"""Plain conversations: what is word for word, what is summarised, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.model import (
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from hitherto.presentation.plain_conversation import RESULT_CHARS, Turn, plain_conversation


def said(role: Role, *parts: Part | str, at: int = 0, model: str | None = None, **meta: Any) -> Entry:
    told = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Entry(id=f"e{at}", at=at, role=role, parts=told, model=model, meta=meta)


def texts(*entries: Entry) -> list[tuple[str, str]]:
    turns = plain_conversation(entries).turns
    return [(turn.side, turn.text) for turn in turns if isinstance(turn, Turn)]


CALL = ToolCall(id="1", name="Bash", input={"command": "ls"})


def answer(text: str, *, failed: bool = False) -> ToolResult:
    return ToolResult(id="1", content=(Text(text=text),), is_error=failed)


def test_what_is_said_and_done_between_two_prompts_is_one_turn() -> None:
    found = plain_conversation(
        [
            said("user", "One", at=1),
            said("user", "Two", at=2),
            said("assistant", Thought(text="hm"), "I look.", CALL, at=3, model="m"),
            said("tool", answer("barn\n"), at=4),
            said("assistant", "There it is.", at=5),
            said("user", "Three", at=6),
        ]
    )
    assert found.fidelity == "replayed"
    told = 'I look.\n\n[Bash: {"command": "ls"}]\n\n[Bash answered: barn]\n\nThere it is.'
    assert found.turns == (
        Turn("user", "One", 1),
        Turn("user", "Two", 2),
        Turn("assistant", told, 5, "m"),
        Turn("user", "Three", 6),
    )


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (answer("no such file", failed=True), "[the tool failed: no such file]"),
        (ToolResult(id="1"), "[the tool answered: nothing]"),
        (ToolResult(id="1", output={"a": 1}), '[the tool answered: {\n  "a": 1\n}]'),
        (Plan(steps=({"content": "Paint", "status": "completed"},)), "- Paint (completed)"),
        (Image(mime_type="image/png", data="AAAA"), "[image image/png]"),
        (Resource(uri="file:///a.txt", text="A\nB"), "file:///a.txt:\nA\nB"),
        (Text(text="half \ud83d of one, \U0001f40e and \u2028"), "half \ufffd of one, \U0001f40e and \u2028"),
    ],
)
def test_whatever_is_in_a_turn_is_told_as_text(part: Part, told: str) -> None:
    assert texts(said("assistant", part)) == [("assistant", told)]


def test_long_results_are_told_by_their_beginning_and_prompts_in_full() -> None:
    long = "x" * 50_000
    (prompt, told) = texts(said("user", long), said("tool", answer(long)))
    assert prompt == ("user", long)
    assert told[1].startswith("[the tool answered: xxx")
    assert f"({50_000 - RESULT_CHARS} more characters)" in told[1]
    assert len(told[1]) < RESULT_CHARS + 100


def test_results_that_come_in_the_users_name_are_the_assistants() -> None:
    assert texts(said("user", answer("barn"), "Now paint it")) == [
        ("assistant", "[the tool answered: barn]"),
        ("user", "Now paint it"),
    ]


@pytest.mark.parametrize(
    "entry",
    [
        said("user", "<reminder>", meta=True),
        said("system", "out of tokens", error=True),
        said("assistant", "No response requested.", synthetic=True),
        said("assistant", Thought(text="hm"), Unknown(raw={"a": 1}), "  \n"),
        said("system", compaction_boundary=True),
    ],
)
def test_what_a_program_tells_about_itself_is_left_out(entry: Entry) -> None:
    assert texts(entry) == []


def test_instructions_are_told_as_notes() -> None:
    assert texts(said("system", "Speak German")) == [("user", "<note>\nSpeak German\n</note>")]


@pytest.mark.parametrize("mark", ["compaction", "compact_summary"])
def test_the_summary_that_a_context_begins_with_stays_its_summary(mark: str) -> None:
    marked: Any = {mark: True}
    found = plain_conversation(
        [said("system", "They built a barn.", **marked), said("user", "Paint it", at=7)]
    )
    assert (found.fidelity, found.summary) == ("summarised", "They built a barn.")
    assert found.turns == (Turn("user", "Paint it", 7),)


def test_of_a_long_conversation_the_newest_turns_are_told_and_the_rest_is_summarised() -> None:
    entries = [said("system", "- They chose the colour red for Hodge's barn.", compact_summary=True)]
    for number in range(40):
        entries.append(said("user", f"Please build stall {number} with zqx{number}.", at=2 * number))
        entries.append(said("assistant", f"Built stall {number}. " + "word " * 400, at=2 * number + 1))
    found = plain_conversation(entries, largest=10_000)
    assert found.fidelity == "summarised"
    assert found.summary is not None
    assert "Hodge" in found.summary
    assert len(found.summary) < 20_000
    assert 2 <= len(found.turns) < 60
    assert [turn.text for turn in found.turns if isinstance(turn, Turn)] == [
        entry.parts[0].text for entry in entries[-len(found.turns) :] if isinstance(entry.parts[0], Text)
    ]
    assert isinstance(found.turns[0], Turn)
    assert found.turns[0].side == "user"
    assert plain_conversation(entries, largest=10_000) == found
    assert plain_conversation(entries).summary == "- They chose the colour red for Hodge's barn."
