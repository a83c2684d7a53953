"""Untrusted Markdown as Markdown that renders and does nothing else. Pure.

The text is parsed and written anew from what the parser found: words are escaped, HTML becomes words, pictures become links,
links lead to plain addresses only, fences are closed, and headings come below those of the document. The outcome is read once
more, as a careless reader would that lets HTML through. Without the parser, for very long texts, where it takes too long, and if
the second reading finds what must not be there, the text stands in a fence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hitherto.clean_text import clean
from hitherto.presentation.effort import bounded

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

LONGEST = 200_000
OWN_HEADINGS = 3
"""Headings of this depth are the document's own; those within a message come below them."""
FORBIDDEN = frozenset({"html_block", "html_inline", "image"})
DRAWN = frozenset({"mermaid", "geojson", "topojson", "stl", "math"})
"""Blocks in these languages are drawn instead of shown, by programs that load something."""

_BACKTICKS = re.compile("`+")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# What means something within a line; an underscore between letters does not, nor does what stands for a secret.
_SIGNS = re.compile(
    r"\[redacted: [\w .-]+\](?![(\[:])|[\\`*\[\]<~|]|&(?=#?\w+;)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
)
# What means something at the beginning of a line: a heading, a quote, an item, the line below a heading.
_OPENING = re.compile(r"(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|[-:=][-:= ]*$)|(?<=\d)(?=[.)](?:\s|$))")
_ADDRESS = re.compile(r"(https?://[^\s<>|`\\\"'\[\]]*[\w/#&=+-])")
_LINK = re.compile(r"(?:https?://|mailto:)[^\s<>]+", re.IGNORECASE)
_PARENTHESES = {"(": "%28", ")": "%29", "&": "&amp;"}
_BOX = re.compile(r"\\\[([ xX])\\\](?= )")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")
_BARE_PIPE = re.compile(r"(?<!\\)\|")


def safe_markdown(text: str) -> str:
    """The text as blocks of Markdown: no HTML, no pictures, no heading above the fourth level."""
    if len(text) > LONGEST or not _is_able():
        return fenced(text)
    return bounded(lambda: _written(text), lambda: fenced(text))


def fenced(text: str, language: str = "text") -> str:
    """The text as a block that it cannot end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def code(text: str) -> str:
    """One line as a span of code that it cannot end."""
    if not text.strip():
        return "(none)"
    fence = "`" * (_longest_run(text) + 1)
    space = " " if len(fence) > 1 else ""
    return f"{fence}{space}{text}{space}{fence}"


def escaped(text: str) -> str:
    """One line as plain words, whatever Markdown or HTML would make of it."""
    return _PUNCTUATION.sub(lambda found: _ENTITIES.get(found[0]) or f"\\{found[0]}", text)


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)


@cache
def _is_able() -> bool:
    return find_spec("markdown_it") is not None


@cache
def _parser(*, html: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])


def _written(text: str) -> str:
    from markdown_it.tree import SyntaxTreeNode

    written = _blocks(SyntaxTreeNode(_parser(html=False).parse(text)))
    found = _parser(html=True).parse(written)
    harmless = all(_is_harmless(token) for block in found for token in (block, *(block.children or ())))
    return written if harmless else fenced(text)


def _is_harmless(token: Token) -> bool:
    if token.type == "heading_open":
        return int(token.tag[1:]) > OWN_HEADINGS
    if token.type == "link_open":
        return _LINK.fullmatch(str(token.attrs["href"])) is not None
    return token.type not in FORBIDDEN


def _blocks(node: SyntaxTreeNode) -> str:
    return "\n\n".join(_block(child) for child in node.children)


def _block(node: SyntaxTreeNode) -> str:
    return _BLOCKS.get(node.type, _unknown)(node)


def _unknown(node: SyntaxTreeNode) -> str:
    return fenced(node.content)


def _paragraph(node: SyntaxTreeNode) -> str:
    return "\n".join(_begun(line.strip(" ")) for line in _inline(node).split("\n"))


def _begun(line: str) -> str:
    """A line whose first signs are only words."""
    at = len(line) - len(line.lstrip("0123456789"))
    return f"{line[:at]}\\{line[at:]}" if _OPENING.match(line, at) else line


def _heading(node: SyntaxTreeNode) -> str:
    level = min(int(node.tag[1:]) + OWN_HEADINGS, 6)
    return "#" * level + " " + re.sub("(#+)$", r"\\\1", _one_line(node))


def _fence(node: SyntaxTreeNode) -> str:
    given = _LANGUAGE.match(clean(node.info))
    language = given[0] if given and given[0].lower() not in DRAWN else "text"
    return fenced(node.content.removesuffix("\n"), language)


def _quote(node: SyntaxTreeNode) -> str:
    return "\n".join(f"> {line}".rstrip(" ") for line in _blocks(node).split("\n"))


def _rule(_: SyntaxTreeNode) -> str:
    return "___"  # the other two signs would make one rule of the item that it stands in


def _list(node: SyntaxTreeNode) -> str:
    tight = all(
        child.hidden for item in node.children for child in item.children if child.type == "paragraph"
    )
    return ("\n" if tight else "\n\n").join(_item(item) for item in node.children)


def _item(node: SyntaxTreeNode) -> str:
    sign = f"{node.info}{node.markup} "
    content = ""
    for child in node.children:
        close = child.type.endswith("_list") and child.previous_sibling and child.previous_sibling.hidden
        content += ("\n" if close else "\n\n") * bool(content) + _block(child)
    first, *others = (
        _BOX.sub(r"[\1]", content, count=1).split("\n") if _BOX.match(content) else content.split("\n")
    )
    return "\n".join(
        [f"{sign}{first}".rstrip(" "), *(f"{' ' * len(sign)}{line}".rstrip(" ") for line in others)]
    )


def _table(node: SyntaxTreeNode) -> str:
    head, *rows = (row for part in node.children for row in part.children)
    rule = [_ALIGNED.get(str(cell.attrs.get("style", "")), "---") for cell in head.children]
    cells = [[_BARE_PIPE.sub(r"\\|", _one_line(cell)) for cell in row.children] for row in (head, *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def _one_line(node: SyntaxTreeNode) -> str:
    return _inline(node).replace("\\\n", " ").replace("\n", " ").strip(" ")


def _inline(node: SyntaxTreeNode) -> str:
    """What stands in a block, in one or several lines."""
    return "".join(_spans(inline.children) for inline in node.children)


def _spans(nodes: Sequence[SyntaxTreeNode], *, linked: bool = False) -> str:
    written = ""
    for node in nodes:
        span = _span(node, linked=linked)
        picture = written.endswith("!") and span.startswith("[")
        written = f"{written[:-1]}\\!{span}" if picture else written + span
    return written


def _span(node: SyntaxTreeNode, *, linked: bool) -> str:
    match node.type:
        case "softbreak":
            return "\n"
        case "hardbreak":
            return "\\\n"
        case "code_inline":
            return code(clean(node.content)) if node.content.strip() else " "
        case "em" | "strong" | "s":
            return f"{node.markup}{_spans(node.children, linked=linked)}{node.markup}"
        case "link" if node.markup == "autolink" and _LINK.fullmatch(str(node.attrs["href"])):
            return f"<{node.attrs['href']}>"
        case "link":
            return _link(_spans(node.children, linked=True), str(node.attrs["href"]), linked=linked)
        case "image":
            where = str(node.attrs["src"])
            return _link(_words(node.content or where, linked=True), where, linked=linked)
    return _words(node.content, linked=linked)


def _link(words: str, address: str, *, linked: bool) -> str:
    """A link, if it leads to a plain address and is not within another."""
    if linked or not _LINK.fullmatch(address):
        return words
    plain = re.sub(r"[()]|&(?=#?\w+;)", lambda found: _PARENTHESES[found[0]], address)
    return f"[{words}]({plain})"


def _words(text: str, *, linked: bool) -> str:
    """Plain words, in which addresses are links unless the words are one."""
    pieces = _ADDRESS.split(clean(text))
    return "".join(
        f"<{piece}>" if at % 2 and not linked else _SIGNS.sub(_as_word, piece)
        for at, piece in enumerate(pieces)
    )


def _as_word(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) > 1 else _ENTITIES.get(found[0]) or f"\\{found[0]}"


_ALIGNED = {"text-align:left": ":--", "text-align:center": ":-:", "text-align:right": "--:"}
_BLOCKS: dict[str, Callable[[SyntaxTreeNode], str]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "fence": _fence,
    "code_block": _fence,
    "blockquote": _quote,
    "hr": _rule,
    "bullet_list": _list,
    "ordered_list": _list,
    "table": _table,
}
