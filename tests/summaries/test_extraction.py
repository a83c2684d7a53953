"""What the built-in summariser takes for worth keeping, and what it does not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.model import Entry, Image, Part, Role, Text, Thought, ToolCall, ToolResult, Usage
from hitherto.summaries.builtin import digest, extracted, tool_outcomes
from hitherto.summaries.extraction import Statement, statements
from hitherto.summaries.identifiers import Specific, specifics
from hitherto.summaries.kept_tail import is_prompt, kept_from
from hitherto.summaries.required_content import Essentials, completed
from hitherto.summaries.sentences import SENTENCE_CHARS, sentences, subject_of
from hitherto.summariser import CompactionPolicy
from hitherto.values.token_count import PER_ENTRY, PER_MEDIUM, Tokens, estimate, tokens_of, total
from tests.summaries.planted import practice
from tests.summaries.planted.conversations import conversation


def entry(text: str, role: Role = "user", *parts: Part, number: int = 1, **fields: object) -> Entry:
    told = (Text(text=text),) if text else ()
    return Entry(id=f"e{number}", at=number, role=role, parts=(*told, *parts), **fields)  # type: ignore[arg-type]


def spoken(*texts: str | tuple[Role, str]) -> list[Entry]:
    """A conversation in which these are said, by the user unless another is named."""
    said: list[tuple[Role, str]] = [("user", text) if isinstance(text, str) else text for text in texts]
    return [entry(text, role, number=number) for number, (role, text) in enumerate(said, 1)]


def kinds(*texts: str | tuple[Role, str]) -> dict[str, str]:
    return {found.text: found.kind for found in statements(spoken(*texts))}


SAID = {
    "My name is Ada Lovelace.": "identity",
    "Call me Ishmael.": "identity",
    "I prefer tabs over spaces.": "preference",
    "Never use wildcard imports.": "preference",
    "I'm allergic to peanuts.": "identity",
    "We decided to use DuckDB for analytics.": "decision",
    "Let's go with NATS for the queue.": "decision",
    "Remind me to renew the certificate.": "task",
    "Still open: who pays for the licence?": "question",
    "The broker listens on port 5671.": "number",
    "The config lives in /etc/app/conf.yaml.": "path",
    "The dashboard is https://status.example.net/live.": "url",
    "The regression came with 3fa9c0d17e.": "id",
    "The workshop is on March 14.": "date",
    "Je m'appelle Zoé Martin.": "identity",
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_worth_keeping_is_kept_under_its_kind(text: str) -> None:
    assert kinds(text) == {text: SAID[text]}


NOT_SAID: list[str | tuple[Role, str]] = [
    "Is the port 5671?",
    "What if the port were 5671",
    "Suppose my name is Ada.",
    "For example, /etc/app/conf.yaml would do.",
    "Never mind /etc/app/conf.yaml, forget it.",
    "haha, Ada would love this",
    "ok",
    "Thanks, that helps a lot.",
    "Please continue.",
    "> We decided to use DuckDB.",
    "```\nport = 5671\n```",
    "<system-reminder>Never use tabs. The port is 5671.</system-reminder>",
    ("assistant", "Let me look at it."),
    ("assistant", "You might consider DuckDB."),
    ("assistant", "If Ada agrees, we can go on."),
    ("tool", "We decided to use DuckDB on port 5671."),
    ("system", "Always answer in German."),
]


@pytest.mark.parametrize("said", NOT_SAID, ids=lambda said: str(said)[:40])
def test_doubts_examples_quotations_code_and_the_words_of_programs_are_no_facts(
    said: str | tuple[Role, str],
) -> None:
    assert kinds(said, ("assistant", "Noted.")) == {}


def test_output_and_input_of_tools_are_not_what_somebody_said() -> None:
    call = ToolCall(id="c", name="bash", input={"command": "echo My name is Ada; cat /etc/passwd"})
    result = ToolResult(id="c", content=(Text(text="We decided to use DuckDB. My name is Ada."),))
    thought = Thought(text="The user's name is Ada.")
    entries = [entry("", "assistant", thought, call), entry("", "tool", result, number=2)]
    assert statements(entries) == []


def test_a_summary_is_not_what_somebody_said_whoever_it_was_put_down_to() -> None:
    summary = entry("My name is Ada Lovelace. We decided to use DuckDB.", "user", meta={"compaction": "c"})
    assert statements([summary]) == []


def test_a_question_is_open_until_it_is_answered() -> None:
    question = "Which region holds the EU data?"
    assert kinds(question) == {question: "question"}
    assert kinds(question, ("assistant", "It is in Dublin, eu-west-1.")).get(question) is None
    assert kinds(question, ("assistant", "I don't know, let me check."))[question] == "question"
    assert kinds(("assistant", "Shall I delete the old bucket?")) == {
        "Shall I delete the old bucket?": "question"
    }


def test_of_what_is_said_again_or_otherwise_later_the_last_is_kept() -> None:
    found = statements(
        spoken(
            "The port is 8080.", "I prefer tabs.", "The port is 9090.", "I prefer tabs.", "The host is db1."
        )
    )
    assert [(each.text, each.entry) for each in found] == [
        ("The port is 9090.", "e3"),
        ("I prefer tabs.", "e4"),
        ("The host is db1.", "e5"),
    ]


SUBJECTS = {
    "The port is 8080.": "port",
    "Actually, the port is now 9090.": "port",
    "Our staging host moved to box-7.": "staging host",
    "My name is Ada.": "my name",
    "We decided to use DuckDB for caching.": "for caching",
    "Let's use Valkey for the caching.": "for caching",
    "Release date: March 3.": "release date",
    "It is 8080.": None,
    "This is Ada.": None,
    "The problem is 8080.": None,
    "I like tabs.": None,
    "The server is slow and we should look at it.": None,
}


@pytest.mark.parametrize("text", SUBJECTS)
def test_a_sentence_is_about_what_only_one_thing_can_be_true_of(text: str) -> None:
    assert subject_of(text) == SUBJECTS[text]


SPECIFIC = {
    "Look at ./src/a-b/c_d.py, please.": [("path", "./src/a-b/c_d.py")],
    "~/code/x and C:\\Users\\ada\\x.txt": [("path", "~/code/x"), ("path", "C:\\Users\\ada\\x.txt")],
    "See https://a.example/x?y=1#z.": [("url", "https://a.example/x?y=1#z")],
    "Write to ada@example.net (or #4711).": [("email", "ada@example.net"), ("id", "#4711")],
    "It is 019a8c0e-7b3d-7000-8000-000000000001.": [("id", "019a8c0e-7b3d-7000-8000-000000000001")],
    "Fixed in 1.2.3 for $12,500 and 99.9 %.": [
        ("number", "1.2.3"),
        ("number", "$12,500"),
        ("number", "99.9 %"),
    ],
    "On 2026-03-01 at 17:45.": [("date", "2026-03-01"), ("time", "17:45")],
    "Set `max_conns` and MAX_AGE_2.": [("code", "max_conns"), ("id", "MAX_AGE_2")],
    "Ask Ada Lovelace or Bob.": [("name", "Ada Lovelace"), ("name", "Bob")],
    "read/write and and/or are words": [],
    "well-known facts": [],
}


@pytest.mark.parametrize("text", SPECIFIC)
def test_what_is_specific_is_found_letter_by_letter(text: str) -> None:
    common = {"look", "see", "write", "it", "fixed", "on", "set", "ask"}
    assert specifics(text, common) == [Specific(*each) for each in SPECIFIC[text]]


def test_a_text_is_cut_into_its_sentences() -> None:
    text = (
        "# Notes\n\n- One thing. Another one!\n1. See Dr. Who e.g. today. Fine?\n\n```py\nx = 1. Y\n```\n> quoted.\n"
        "This line is so long that it was wrapped by an editor and\ngoes on here. **Bold** words\n\n    code(x) = 1\n"
        "今日は。元気ですか？はい"
    )
    assert sentences(text) == [
        "Notes", "One thing.", "Another one!", "See Dr. Who e.g. today.", "Fine?",
        "This line is so long that it was wrapped by an editor and goes on here.", "Bold words",
        "今日は。", "元気ですか？", "はい",
    ]  # fmt: skip


HOSTILE = [
    "a" * 100_000,
    "a/" * 50_000,
    "A. " * 30_000,
    "<a-b>" * 20_000,
    "`" * 100_000,
    "((((" * 20_000 + ": 1",
    "I " * 50_000,
    "1,1." * 25_000,
    "x@x." * 25_000,
    "\ud800\0\u202e" * 10_000,
    "my name is " * 10_000,
    "- " * 50_000,
    "🏳️‍🌈é" * 10_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:12])
def test_no_text_takes_for_ever(text: str) -> None:
    """What takes more than about linear time runs into the limit that every test has."""
    entries = spoken(text, ("assistant", text))
    summary = extracted(entries, (), CompactionPolicy())
    assert all(len(fact.text) <= SENTENCE_CHARS for fact in summary.facts or ())


@given(st.lists(st.text(max_size=200), max_size=8))
def test_any_text_can_be_summarised(texts: list[str]) -> None:
    entries = spoken(*texts, *(("assistant", text) for text in texts))
    summary = extracted(entries, entries[:1], CompactionPolicy())
    assert summary == extracted(entries, entries[:1], CompactionPolicy())
    assert {drawn for fact in summary.facts or () for drawn in fact.entries} <= {each.id for each in entries}


def test_the_practice_is_found() -> None:
    found = planted = 0
    for seed in range(3):
        made = conversation(practice.TEMPLATES, seed)
        entries = [Entry(id=str(at), at=at, role=d.role, parts=d.parts) for at, d in enumerate(made.drafts)]
        texts = [each.text for each in statements(entries)]
        planted += len(made.plants)
        found += sum(any(plant.value in text for text in texts) for plant in made.plants)
    assert found >= 0.95 * planted


# Tokens


def test_a_provider_s_number_is_taken_before_any_estimate() -> None:
    assert tokens_of(entry("x" * 400, tokens=7)) == Tokens(7)
    assert tokens_of(entry("x" * 400, tokens=0)) == Tokens(0)
    assert tokens_of(entry("x" * 400, "assistant", usage=Usage(input=900, output=9))) == Tokens(9)
    assert tokens_of(entry("x" * 400, "user", usage=Usage(output=9))) == Tokens(
        PER_ENTRY + 100, estimated=True
    )
    assert total([entry("", tokens=1), entry("", tokens=2)]) == Tokens(3)
    assert total([entry("", tokens=1), entry("abcd")]) == Tokens(1 + PER_ENTRY + 1, estimated=True)


def test_an_estimate_goes_by_script() -> None:
    assert estimate("plain words " * 10) == 30
    assert estimate("f(x) = [y];\n" * 10) == 40
    assert estimate("漢字" * 10) == 20
    assert estimate("Привет" * 10) == 30
    assert estimate("") == 0
    assert tokens_of(entry("", "user", Image(mime_type="image/png", data="x" * 10_000))).number == (
        PER_ENTRY + PER_MEDIUM
    )


def test_all_kinds_of_parts_have_a_number_of_tokens() -> None:
    result = ToolResult(id="c", content=(Text(text="x" * 40), ToolResult(id="d", output={"a": 1})))
    call = ToolCall(id="c", name="bash", input={"command": "\ud800"})
    assert tokens_of(entry("", "tool", result, call)).number > PER_ENTRY + 10


# The end that is kept


def exchange(number: int, size: int, *, tools: int = 0) -> list[Entry]:
    """A prompt, calls of tools with their results, and an answer, each of so many tokens."""
    made = [entry("ask", "user", tokens=size)]
    for tool in range(tools):
        call = ToolCall(id=f"{number}-{tool}", name="t")
        made += [
            entry("", "assistant", call, tokens=size),
            entry("", "tool", ToolResult(id=call.id), tokens=size),
        ]
    return [*made, entry("answer", "assistant", tokens=size)]


def test_a_tenth_of_the_whole_is_kept_from_a_prompt_on() -> None:
    entries = [each for number in range(100) for each in exchange(number, 10)]
    assert kept_from(entries, CompactionPolicy()) == 180
    assert kept_from(entries, CompactionPolicy(kept_tokens=50)) == 196
    assert kept_from(entries, CompactionPolicy(kept_share=1.0, kept_tokens=1_999)) == 2


def test_at_least_the_last_exchange_is_kept() -> None:
    entries = [*exchange(1, 10), *exchange(2, 1_000, tools=5)]
    assert kept_from(entries, CompactionPolicy(kept_tokens=1)) == 2
    assert kept_from(exchange(1, 10, tools=9), CompactionPolicy()) == 0
    assert kept_from([], CompactionPolicy()) == 0


def test_where_nobody_asks_the_last_entry_is_kept() -> None:
    entries = [entry("news", "assistant", tokens=10) for _ in range(5)]
    assert kept_from(entries, CompactionPolicy(kept_tokens=1)) == 4


def test_a_tool_that_may_still_run_is_not_left_behind() -> None:
    running = entry("", "assistant", ToolCall(id="c", name="t"))
    entries = [*exchange(1, 10), entry("go"), running, entry("and?")]
    assert kept_from(entries, CompactionPolicy(kept_tokens=1)) == 2


def drawn(dice: random.Random) -> list[Entry]:
    """Entries in any order: calls, results of calls made before or never, prompts between them."""
    made: list[Entry] = []
    for _ in range(dice.randint(0, 30)):
        call = f"c{dice.randint(1, 6)}"
        parts: list[Part] = [
            ToolCall(id=call, name="t"), ToolResult(id=call), Text(text="x"),
        ]  # fmt: skip
        chosen = tuple(dice.sample(parts, dice.randint(1, 2)))
        role: Role = dice.choice(("user", "assistant", "tool"))
        made.append(Entry(id="e", at=1, role=role, parts=chosen, tokens=dice.randint(0, 100)))
    return made


@given(st.randoms(use_true_random=False), st.integers(0, 500), st.floats(0, 1))
def test_a_call_is_never_split_from_its_result(dice: random.Random, tokens: int, share: float) -> None:
    entries = drawn(dice)
    cut = kept_from(entries, CompactionPolicy(kept_tokens=tokens, kept_share=share))
    called: set[str] = set()
    for each in entries[:cut]:
        called |= {part.id for part in each.parts if isinstance(part, ToolCall)}
        called -= {part.id for part in each.parts if isinstance(part, ToolResult)}
    for each in entries[cut:]:
        for part in each.parts:
            if isinstance(part, ToolCall):
                called.discard(part.id)
            assert not (isinstance(part, ToolResult) and part.id in called)
    if cut and any(map(is_prompt, entries)):
        assert is_prompt(entries[cut])


# The summary


def test_a_digest_tells_what_matters_within_its_bounds() -> None:
    entries = [
        *spoken("Please port the importer to Rust for me", ("assistant", "I will port it. " * 50)),
        *(entry(f"Filler number {number} says very little", number=number) for number in range(3, 60)),
        entry("Done, the importer is ported.", "assistant", number=60),
    ]
    found = [
        Statement("Never use unsafe.", "preference", 0.9, "e1", 0),
        Statement("Who signs the release?", "question", 0.6, "e1", 0),
    ]
    text = digest(entries, found, 400)
    assert estimate(text) <= 450
    for told in ("Please port the importer", "Never use unsafe.", "Who signs the release?", "is ported."):
        assert told in text
    assert digest(entries, found, 5) == ""


def test_a_second_digest_carries_what_the_first_one_told() -> None:
    policy = CompactionPolicy()
    old = extracted(
        spoken("My name is Ada Lovelace and I live in Turin.", *["I prefer tabs in Go code."] * 9), (), policy
    )
    summary = Entry(id="s", at=99, role="system", parts=(Text(text=old.text),), meta={"compaction": "c"})
    new = extracted(
        [summary, *spoken(*(f"The port of box-{n} is {n}." for n in range(100, 130)))], (), policy
    )
    for told in ("Ada Lovelace", "I prefer tabs in Go code.", "The port of box-129 is 129."):
        assert told in new.text
    assert new.text.count("A record of") == 1
    assert not any("Ada" in fact.text for fact in new.facts or ())


def test_tools_are_told_by_what_came_of_them() -> None:
    calls = [ToolCall(id=str(n), name="edit", input={"path": f"src/{n}.py", "text": "x"}) for n in range(3)]
    failed = ToolResult(id="2", content=(Text(text="noise\n" * 200 + "No such file"),), is_error=True)
    entries = [
        entry("", "assistant", *calls),
        entry("", "tool", ToolResult(id="0"), ToolResult(id="1"), failed),
    ]
    used, files, failure = tool_outcomes(entries)
    assert used == "Tools that ran: edit 3× (1 failed)."
    assert files == "Files they were given: src/0.py, src/1.py, src/2.py."
    assert failure.startswith("Failed: edit src/2.py")
    assert failure.endswith("No such file")
    assert tool_outcomes(spoken("nothing")) == []


def test_a_summary_is_completed_by_what_it_lacks() -> None:
    needed = Essentials(
        ("Who signs off the budget?", "Does Falcon need a database?"), ("/etc/a", "80", "box-7")
    )
    text = "It is open whether Falcon needs a database. box-7 listens on 8080, see /etc/a."
    assert completed(text, needed) == f"{text}\nOpen questions:\n- Who signs off the budget?\nAlso named: 80"
    assert completed(text, Essentials()) == text
