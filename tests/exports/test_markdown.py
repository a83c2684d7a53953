"""Whatever was said, it renders, the upper headings are ours, and nothing of it does anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from hitherto.exports import safe_markdown as module
from hitherto.exports.markdown import FOLDED_CHARS
from hitherto.exports.safe_markdown import code, escaped, fenced, safe_markdown
from hitherto.model import Entry, Role, Text, ToolCall, ToolResult
from tests.support.hostile_sessions import entry, page, written
from tests.support.hostile_texts import HOSTILE, PAYLOADS

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""As a careless reader has it: HTML is let through."""
FOLD = re.compile(r"<details>\n<summary>[^<>]*</summary>\n|</details>\n")
"""All the HTML there is."""
LINK = re.compile(r"(?:https?://|mailto:)[^\s<>]+", re.IGNORECASE)


def tokens(text: str) -> Iterator[Token]:
    for token in READER.parse(text):
        yield token
        yield from token.children or ()


def headings(text: str) -> list[str]:
    """Those of the first three levels, which are the document's own."""
    found = list(READER.parse(text))
    return [
        found[at + 1].content
        for at, token in enumerate(found)
        if token.tag in ("h1", "h2", "h3") and token.nesting == 1
    ]


def checked(text: str) -> None:
    """Nothing of what was said does anything, and nobody speaks but those who did."""
    found = list(tokens(text))
    assert {token.type for token in found} & {"image", "html_inline"} == set()
    folds = [token.content for token in found if token.type == "html_block"]
    assert [fold for fold in folds if not FOLD.fullmatch(fold)] == []
    assert folds.count("</details>\n") * 2 == len(folds)
    links = [str(token.attrs["href"]) for token in found if token.type == "link_open"]
    assert [link for link in links if not LINK.fullmatch(link)] == []
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


def words(text: str) -> list[tuple[str, str]]:
    """What a reader sees of the text, whatever it is written like."""
    return [
        (
            token.type.replace("code_block", "fence"),
            token.content if token.type in ("fence", "code_block") else token.tag,
        )
        for token in READER.parse(text)
    ]


ORDINARY = """\
Look at `foo_bar` and snake_case, **really**: a -> b, 5 * 3 < 20 & more [redacted: aws key].
See [the page](https://ok.example/a_b?c=1) or https://ok.example/d_e.

- [ ] to do
- [x] done
  1. one
  2. two

> quoted

| a | b |
|---|:-:|
| `x` | **y** |

```python
print("`" * 3)
```

---

~~gone~~
"""


def test_an_ordinary_message_renders_as_it_was_meant() -> None:
    safe = safe_markdown(ORDINARY)
    assert words(safe) == words(ORDINARY)
    assert "- [ ] to do\n- [x] done\n  1. one" in safe
    assert (
        "Look at `foo_bar` and snake_case, **really**: a -> b, 5 \\* 3 &lt; 20 & more [redacted: aws key]."
        in safe
    )
    assert safe_markdown(safe) == safe


def test_headings_come_below_ours_html_is_words_and_pictures_are_links() -> None:
    said = "# One\n\nTwo\n---\n\n<b>bold</b> ![p](http://ok.example/p.png) [r](../secret) [j](javascript:x)\n\n```mermaid\na"
    assert safe_markdown(said) == (
        "#### One\n\n##### Two\n\n&lt;b>bold&lt;/b> [p](http://ok.example/p.png) r \\[j\\](javascript:x)\n\n```text\na\n```"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_without_the_parser_a_message_stands_in_a_fence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_is_able", lambda: False)
    assert safe_markdown(text) == fenced(text)
    checked(page("markdown", text))


def test_a_call_is_one_line_that_unfolds_into_its_input_and_what_came_of_it() -> None:
    long = "x" * (FOLDED_CHARS + 500)
    said = (
        ToolCall(id="1", name="Bash", input={"command": "ls"}),
        ToolResult(id="1", content=(Text(text=long),), is_error=True),
        ToolCall(
            id="2",
            name="Edit",
            input={"file_path": "proj/src/a.py", "old_string": "one\ntwo", "new_string": "one\n2"},
        ),
    )
    shown = page("markdown", "proj", said=said)
    assert "<summary>Bash ls · failed</summary>\n\n```bash\nls\n```\n\n```text\nxxx" in shown
    assert "… (500 more characters)" in shown
    assert long not in shown
    assert (
        "<summary>Edit src/a.py · +1 −1</summary>\n\n```diff\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n```\n\n</details>"
        in shown
    )
    checked(shown)


def test_results_stand_with_their_calls_and_a_speaker_has_one_heading() -> None:
    def calls(*ids: str) -> Entry:
        return entry("x", "assistant", tuple(ToolCall(id=each, name=f"call-{each}") for each in ids))

    def results(*ids: str) -> Entry:
        return entry(
            "x", "tool", tuple(ToolResult(id=each, content=(Text(text=f"result-{each}"),)) for each in ids)
        )

    def says(role: Role, text: str) -> Entry:
        return entry("x", role, (Text(text=text),))

    shown = written(
        "markdown",
        [
            *(says("user", "please"), calls("a", "b"), calls("c"), results("c"), results("b", "a")),
            *(
                says("assistant", "done"),
                says("user", "again"),
                calls("d"),
                says("user", "stop"),
                results("e"),
            ),
        ],
    )
    order = ["please", "call-a", "result-a", "call-b", "result-b", "call-c", "result-c", "done"]
    order += ["again", "call-d", "stop", "result-e"]
    assert re.findall("|".join(order), shown) == order
    assert [re.sub(", .*", "", each) for each in headings(shown)[1:-1]] == [
        *("1. User", "2. Assistant", "7. User", "8. Assistant", "9. User", "10. Tool"),
    ]
