"""Untrusted Markdown as safe HTML. Pure.

The renderer passes no HTML through, pictures become links, and what it makes is filtered once more by a list of what is
allowed. Without these libraries, for very long texts, and where it takes too long, the text stands as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hitherto.clean_text import clean_lines
from hitherto.presentation.effort import bounded

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST = 200_000
SCHEMES = {"http", "https", "mailto"}
TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES: dict[str, set[str]] = {"*": set(), "a": {"href"}, "ol": {"start"}}
_TASK = re.compile(r"<li>(\n?(?:<p>)?)\[([ xX])\] ")
OWN_HEADINGS = 3
"""Headings of this depth are the page's own; those within a message come below them."""


Highlight = Callable[[str, str, str], str]
"""Code, its language and what else its fence says, as HTML of spans with classes."""


def rendered(text: str, highlight: Highlight | None = None) -> str:
    """The text as HTML without scripts, styles, pictures or anything that is loaded from elsewhere."""
    if len(text) > LONGEST or not _is_able():
        return _as_it_is(text)
    return bounded(lambda: _rendered(text, highlight), lambda: _as_it_is(text))


def _as_it_is(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _rendered(text: str, highlight: Highlight | None) -> str:
    # What the text names by its number, such as what turns its direction, is a character only now.
    html = _filtered(clean_lines(_parser(highlight).render(text)), highlight)
    return _TASK.sub(_box, html) if "<li>" in html else html


def _filtered(html: str, highlight: Highlight | None) -> str:
    import nh3

    return nh3.clean(
        html,
        tags=TAGS if highlight is None else TAGS | {"span"},
        attributes=ATTRIBUTES if highlight is None else ATTRIBUTES | {"span": {"class"}},
        url_schemes=SCHEMES,
        url_relative="deny",
        link_rel="noopener noreferrer nofollow",
    )


def _box(found: re.Match[str]) -> str:
    """The item of a task list with its box."""
    done = found[2] != " "
    state = ' checked aria-label="done"' if done else ' aria-label="to do"'
    return f'<li class="task">{found[1]}<input type="checkbox" disabled{state}> '


@cache
def _is_able() -> bool:
    return find_spec("nh3") is not None and find_spec("markdown_it") is not None


@cache
def _parser(highlight: Highlight | None) -> MarkdownIt:
    from markdown_it import MarkdownIt

    options: dict[str, Any] = {"html": False, "highlight": highlight}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _as_link)
    parser.add_render_rule("heading_open", _below_ours)
    parser.add_render_rule("heading_close", _below_ours)
    return parser


def _as_link(_: Any, tokens: Any, index: int, __: Any, ___: Any) -> str:
    """Render an image as a link: its author must not make the browser load anything."""
    where = str(tokens[index].attrs.get("src", ""))
    return f'<a href="{escape(where)}">{escape(tokens[index].content or where)}</a>'


def _below_ours(_: Any, tokens: Any, index: int, __: Any, ___: Any) -> str:
    token = tokens[index]
    level = min(int(token.tag[1:]) + OWN_HEADINGS, 6)
    return f"<h{level}>" if token.nesting == 1 else f"</h{level}>\n"
