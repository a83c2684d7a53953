"""Whatever was said, the page runs nothing, loads nothing and leads nowhere but by a plain link."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.exports import sanitized_html
from hitherto.exports.html import MOST_STEPS
from hitherto.exports.sanitized_html import rendered
from hitherto.model import Entry, Image, Part, Role, Text, ToolCall, ToolResult
from tests.support.hostile_sessions import entry, page, written
from tests.support.hostile_texts import HOSTILE, MARKDOWN, MARKUP, PAYLOADS, TERMINAL

ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "main",
        "footer",
        "article",
        "div",
        "small",
    ),
    *("h1", "h2", "h4", "h5", "h6", "p", "pre", "code", "em", "strong", "del", "s", "br", "hr", "blockquote"),
    *("ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td"),
    *("a", "img", "details", "summary", "nav", "ins"),
}
ATTRIBUTES = {
    "html": {"lang"},
    "meta": {"charset", "http-equiv", "content", "name"},
    "article": {"class", "id"},
    "details": {"class"},
    "nav": {"aria-label"},
    "div": {"class"},
    "p": {"class"},
    "a": {"href", "rel"},
    "img": {"src", "alt"},
    "ol": {"start"},
}
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*")
LINK = re.compile(r"(?:https?://|mailto:)[^\x00-\x20]*")
CLASSES = {"user", "assistant", "system", "tool", "summary", "said", "note", "work", "step"}
PLACE = re.compile(r"#m\d+")


class Page(HTMLParser):
    """Notes every element and complains of those that could do something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.complaints: list[str] = []
        self.links: list[str] = []
        self.places: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if tag not in ALLOWED or not set(given) <= ATTRIBUTES.get(tag, set()) or len(given) != len(attrs):
            self.complaints.append(f"{tag} {attrs}")
        if tag == "a" and "nav" in self.tags:  # the outline, which is the last thing in the file
            self.places.append(given["href"] or "")
            if not PLACE.fullmatch(given["href"] or ""):
                self.complaints.append(f"place {attrs}")
        elif tag == "a" and "href" in given:
            self.links.append(given["href"] or "")
            if not LINK.fullmatch(given["href"] or "") or "noopener" not in (given.get("rel") or ""):
                self.complaints.append(f"link {attrs}")
        if tag == "img" and not PICTURE.fullmatch(given.get("src") or ""):
            self.complaints.append(f"picture {attrs}")
        if "class" in given and given["class"] not in CLASSES:
            self.complaints.append(f"class {attrs}")

    def handle_comment(self, data: str) -> None:
        self.complaints.append(f"comment {data}")


def checked(text: str, articles: int = 3) -> Page:
    """The page, in which nothing can do anything."""
    found = Page(text)
    assert found.complaints == []
    assert (found.tags.count("title"), found.tags.count("style"), found.tags.count("meta")) == (1, 1, 4)
    assert found.tags.count("article") == text.count("</article>") == articles
    assert found.tags.count("h1") == 1
    assert found.tags.count("h2") == articles + 1
    return found


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_hostile_text_does_nothing_wherever_it_stands(text: str, role: str) -> None:
    checked(page("html", text, role=role), 3 if role == "user" else 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", PAYLOADS[len(HOSTILE) :])
def test_a_hostile_text_in_other_clothes_does_nothing_either(text: str) -> None:
    checked(page("html", text))


@pytest.mark.parametrize("text", HOSTILE)
def test_without_the_libraries_the_text_stands_as_it_is(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitized_html, "_is_able", lambda: False)
    found = checked(page("html", text))
    assert found.links == []
    assert found.tags.count("pre") >= 3


@settings(max_examples=150)
@given(
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=8)), min_size=1, max_size=6).map("\n".join)
)
def test_hostile_texts_do_nothing_together_either(text: str) -> None:
    checked(page("html", text))


@settings(max_examples=150)
@given(st.lists(st.sampled_from(["<", ">", '"', "'", "&", "`", "[", "]", "(", ")", "!", "\n", "javascript:", "http://e.example/", "script", "onload=", " ", "#", "|", "-", "\\"]), max_size=30).map("".join))  # fmt: skip
def test_no_pile_of_signs_comes_alive(text: str) -> None:
    checked(page("html", text, title="T"))


def test_every_browser_is_told_to_run_and_load_nothing() -> None:
    text = page("html", "hello")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    style = re.search(r"<style>(.*)</style>", text, flags=re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    rules = policy[1].replace("&#x27;", "'").split("; ")
    assert rules == [
        "default-src 'none'", f"style-src 'sha256-{digest}'", "img-src data:", "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip
    assert text.index("Content-Security-Policy") < text.index("<title>")
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert "prefers-color-scheme: dark" in style[1]


def test_markdown_is_rendered_below_our_own_headings() -> None:
    html = rendered("# One\n\n**bold** and `code`\n\n- a\n- b\n\n| x |\n|---|\n| y |\n\n~~gone~~ <b>no</b>")
    assert "<h4>One</h4>" in html
    assert "<strong>bold</strong>" in html
    assert "<li>a</li>" in html
    assert "<td>y</td>" in html
    assert "&lt;b&gt;no&lt;/b&gt;" in html


def test_only_plain_links_lead_out_and_pictures_are_links() -> None:
    html = rendered(
        "[a](https://ok.example/x?y=1) <mailto:me@ok.example> ![b](http://ok.example/p.png) [c](relative) [d](#x)"
    )
    found = Page(html)
    assert found.links == ["https://ok.example/x?y=1", "mailto:me@ok.example", "http://ok.example/p.png"]
    assert found.complaints == []
    assert "img" not in found.tags


def test_pictures_of_known_kinds_are_in_the_file_and_others_are_named() -> None:
    data = base64.b64encode(b"\x89PNG").decode()
    said = (
        Image(mime_type="image/png", data=data),
        Image(mime_type="image/svg+xml", data=data),
        Image(mime_type="image/png", data="not base64"),
        Image(mime_type="image/png", uri="http://evil.example/x.png"),
    )
    text = page("html", "x", said=said)
    assert text.count("<img") == 3  # one in each of the three entries
    assert f'src="data:image/png;base64,{data}"' in text
    assert text.count("image/svg+xml") == 3
    checked(text)


def test_a_very_long_text_stands_as_it_is() -> None:
    text = "**x** " * 50_000
    assert rendered(text) == f"<pre>{text}</pre>"


@pytest.mark.parametrize("text", TERMINAL)
def test_nothing_in_a_page_commands_a_terminal_or_turns_the_text(text: str) -> None:
    shown = page("html", text)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )


@pytest.mark.parametrize("format", ["html", "markdown"])
def test_what_turns_the_text_is_not_there_by_its_number_either(format: str) -> None:
    shown = page(format, "a&#x202e;b &#8203;c &rlm;d **&#x2066;e**", said=None)
    assert not re.search("[\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize("format", ["html", "markdown"])
def test_the_corpus_is_as_large_as_it_says(format: str) -> None:
    assert len(set(HOSTILE)) == len(MARKUP) + len(MARKDOWN) + len(TERMINAL) > 60
    assert len(set(PAYLOADS)) >= 200
    assert page(format, "needle", said=()).count("needle") >= 8  # fields of the session and of its entries
    assert page(format, "needle").count("needle") >= 40


def test_a_turn_is_a_prompt_one_line_that_unfolds_and_the_answer() -> None:
    def says(role: Role, text: str, *parts: Part) -> Entry:
        return entry("x", role, (Text(text=text), *parts))

    edit = ToolCall(
        id="1", name="Edit", input={"file_path": "a.py", "old_string": "<old>", "new_string": "new"}
    )
    shown = written(
        "html",
        [
            says("user", "the prompt"),
            says("assistant", "on my way", edit, ToolCall(id="2", name="Bash", input={"command": "make"})),
            entry("x", "tool", (ToolResult(id="1", output={}), ToolResult(id="2", is_error=True))),
            says("assistant", "the answer"),
            says("user", "another prompt"),
            says("assistant", "another answer"),
        ],
    )
    checked(shown, 4)
    main = shown[shown.index("<main>") : shown.index("</main>")]
    order = [
        "the prompt",
        "2 steps · 1 edit · 1 failed",
        "on my way",
        "<strong>Edit</strong> a.py <small>· +1 −1</small>",
    ]
    order += [
        "<del>-&lt;old&gt;</del>",
        "<ins>+new</ins>",
        "<strong>Bash</strong> make <small>· failed</small>",
    ]
    order += ["</details></div>\n</details>", "the answer", "another prompt", "another answer"]
    places = [main.index(each) for each in order]
    assert places == sorted(places)
    assert Page(shown).places == ["#m1", "#m5"]
    assert all(f'id="{place[1:]}"' in main for place in Page(shown).places)


def test_a_turn_without_end_is_written_in_stretches() -> None:
    calls = [
        entry("x", "assistant", (ToolCall(id=f"{at}", name="t"), ToolResult(id=f"{at}")))
        for at in range(MOST_STEPS + 1)
    ]
    shown = written("html", calls)
    assert (shown.count('<details class="work">'), f"{MOST_STEPS} steps" in shown, "1 step<" in shown) == (
        2,
        True,
        True,
    )
