"""Whatever was said, the only headings are ours and nothing of it is Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hitherto.exports.markdown import FOLDED_CHARS, code, escaped, fenced
from hitherto.model import Text, ToolCall, ToolResult
from tests.support.hostile_sessions import page
from tests.support.hostile_texts import HOSTILE, PAYLOADS

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""As a careless reader has it: HTML is let through."""
ACTIVE = {"link_open", "image", "html_block", "html_inline", "table_open", "blockquote_open", "hr"}


def tokens(text: str) -> Iterator[Token]:
    for token in READER.parse(text):
        yield token
        yield from token.children or ()


def headings(text: str) -> list[str]:
    found = list(READER.parse(text))
    return [found[at + 1].content for at, token in enumerate(found) if token.type == "heading_open"]


def checked(text: str) -> None:
    """Nothing of what was said is more than text, and nobody speaks but those who did."""
    assert {token.type for token in tokens(text)} & ACTIVE == set()
    _, *others, last = headings(text)
    assert [re.sub(", .*", "", each) for each in others] == [
        "1. User",
        "2. User",
        "3. Summary of earlier messages",
    ]
    assert last == "Replaced secrets"


@pytest.mark.parametrize("text", PAYLOADS)
def test_a_hostile_text_forges_nothing_wherever_it_stands(text: str) -> None:
    checked(page("markdown", text))


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), min_size=1, max_size=6).map("\n".join)
)
def test_hostile_texts_forge_nothing_together_either(text: str) -> None:
    checked(page("markdown", text))


@settings(max_examples=100)
@given(st.lists(st.sampled_from(["`", "```", "~~~", "\n", "#", " ", "    ", "\t", "-", ">", "=", "<", "a", "\r", "|"]), max_size=40).map("".join))  # fmt: skip
def test_no_pile_of_signs_becomes_a_heading(text: str) -> None:
    checked(page("markdown", text, title="T"))


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_commands_a_terminal_or_turns_the_text(text: str) -> None:
    shown = page("markdown", text)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )


@given(st.text(alphabet=st.sampled_from("`~ab\n # "), max_size=40))
def test_a_fence_holds_exactly_what_is_put_into_it(text: str) -> None:
    (token,) = READER.parse(fenced(text))
    assert (token.type, token.content) == ("fence", f"{text}\n")


@given(
    st.text(alphabet=st.sampled_from("`ab*<>[]() "), min_size=1, max_size=30).filter(
        lambda text: text.strip() == text
    )
)
def test_a_span_of_code_holds_exactly_what_is_put_into_it(text: str) -> None:
    (span,) = list(READER.parseInline(code(text))[0].children or ())
    assert (span.type, span.content) == ("code_inline", text)


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30))
def test_escaped_words_read_as_they_were(text: str) -> None:
    children = READER.parseInline(escaped(text))[0].children or ()
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children) == text


def test_what_tools_say_is_folded_into_a_short_block() -> None:
    long = "x" * (FOLDED_CHARS + 500)
    said = (
        ToolCall(id="1", name="bash", input={"command": "ls"}),
        ToolResult(id="1", content=(Text(text=long),)),
    )
    shown = page("markdown", "t", said=said)
    assert "*Called* `bash`" in shown
    assert '"command": "ls"' in shown
    assert "… (500 more characters)" in shown
    assert long not in shown
