"""`html`: one file to read and to share, which loads nothing, runs nothing and sends nothing.

Every value is escaped where it is put into the page. The policy in its head allows one style sheet, by its hash, and
pictures that are in the file; even if something slipped through, a browser would not run it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from hitherto.clean_text import clean, clean_lines
from hitherto.exports.facts import replacement, session_facts, session_title
from hitherto.exports.format import Writer
from hitherto.exports.lines import Replaced
from hitherto.exports.sanitized_html import rendered
from hitherto.model import Entry, Image, Part, Plan, Resource, Text, Thought, ToolCall, ToolResult
from hitherto.presentation import formats, labels

FOLDED_CHARS = 20_000


class HtmlPage(Writer):
    """A page of articles, one for each entry."""

    shows = True
    _entries = 0

    def begin(self) -> str:
        """The head, the title, and what is known of the session."""
        style = files("hitherto.exports").joinpath("page.css").read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
        title = escape(session_title(self.about))
        facts = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in session_facts(self.about)
        )
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
            '<meta name="referrer" content="no-referrer">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
            f"<header>\n<h1>{title}</h1>\n<dl>{facts}</dl>\n</header>\n<main>\n"
        )

    def entry(self, entry: Entry, *, mark: bool) -> str:
        """One message as an article."""
        self._entries += 1
        kind = "summary" if mark else entry.role
        erased = "<p><em>erased</em></p>" if entry.meta.get("erased") else ""
        said = "\n".join(piece for part in entry.parts for piece in blocks(part))
        return (
            f'<article class="{kind}">\n<h2>{self._entries}. {escape(labels.speaker(entry, mark=mark))} '
            f"<small>{escape(formats.exact_moment(entry.at))}</small></h2>\n{erased}{said}\n</article>\n"
        )

    def end(self, replaced: tuple[Replaced, ...]) -> str:
        """The list of replaced secrets."""
        rows = "".join(f"<li>{escape(replacement(each))}</li>" for each in replaced)
        listed = f"<ul>{rows}</ul>" if rows else "<p>No secrets found.</p>"
        footer = f"<footer>\n<h2>Replaced secrets</h2>\n{listed}\n</footer>\n" if self.about.redacted else ""
        return f"</main>\n{footer}</body>\n</html>\n"


def blocks(part: Part) -> Iterator[str]:
    """A part as HTML; tools and thoughts are folded."""
    match part:
        case Text(text=text):
            yield f'<div class="said">{rendered(clean_lines(text))}</div>'
        case Thought(text=text):
            yield _folded("Thought", clean_lines(text))
        case ToolCall(name=name, input=given):
            yield _folded(f"Called {clean(name)}", labels.data(given))
        case ToolResult(is_error=failed, content=content):
            yield _folded("Failed" if failed else "Result", labels.result_text(part))
            yield from (piece for inner in content if isinstance(inner, Image) for piece in blocks(inner))
        case Resource(text=str(text)):
            yield _folded(f"Attached {labels.part_label(part)}", clean_lines(text))
        case Plan(steps=steps):
            rows = "".join(f"<li>{escape(step)}</li>" for step in labels.steps(steps))
            yield f'<p class="note">Plan</p><ul>{rows}</ul>'
        case Image(mime_type=kind, data=str(data)) if picture := _picture(kind, data):
            yield picture
        case _:
            yield f'<p class="note">Attached {escape(labels.part_label(part))}</p>'


def _folded(name: str, text: str) -> str:
    if not text.strip():
        return f'<p class="note">{escape(name)}</p>'
    shown = escape(labels.shortened(text, FOLDED_CHARS))
    return f"<details><summary>{escape(name)}</summary><pre>{shown}</pre></details>"


def _picture(kind: str, data: str) -> str | None:
    """The picture itself, if it is of a kind that only shows; what is not base64 is no picture."""
    if kind not in labels.IMAGE_TYPES:
        return None
    try:
        pure = base64.b64encode(base64.b64decode(data, validate=True)).decode()
    except ValueError:
        return None
    return f'<p><img src="data:{kind};base64,{pure}" alt="{escape(kind)}"></p>'
