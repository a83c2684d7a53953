"""`html`: one file to read and to share, which loads nothing, runs nothing and sends nothing.

Every value is escaped where it is put into the page. The policy in its head allows one style sheet, by its hash, and
pictures that are in the file; even if something slipped through, a browser would not run it.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from hitherto.clean_text import clean, clean_lines
from hitherto.exports.facts import replacement, session_facts, session_title
from hitherto.exports.format import About, Writer
from hitherto.exports.lines import Replaced
from hitherto.exports.paired import Message, Pairing
from hitherto.exports.sanitized_html import rendered
from hitherto.exports.steps import diff_lines, step
from hitherto.model import (
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    plain_text,
)
from hitherto.presentation import formats, labels
from hitherto.presentation.diffs import Diff, is_edit

FOLDED_CHARS = 20_000
PROMPT_CHARS = 80
MOST_PROMPTS = 2_000
MOST_STEPS = 200
"""So many steps are one line at most: they wait in memory until it is written."""


class HtmlPage(Writer):
    """Turns, as the reader of the page has them: a prompt, one line for what was done that unfolds, and the answer.

    The outline of the prompts is known at the end only; the style sheet puts it in front.
    """

    shows = True

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._pairing = Pairing()
        self._turn = Turn(about.session.cwd)
        self._prompts: list[tuple[int, str]] = []

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
        """What is whole with this message."""
        return "".join(map(self._message, self._pairing.add(entry, mark=mark)))

    def end(self, replaced: tuple[Replaced, ...]) -> str:
        """What is left, the list of replaced secrets, and the outline."""
        rest = "".join(map(self._message, self._pairing.rest())) + self._turn.ended()
        rows = "".join(f"<li>{escape(replacement(each))}</li>" for each in replaced)
        listed = f"<ul>{rows}</ul>" if rows else "<p>No secrets found.</p>"
        footer = f"<footer>\n<h2>Replaced secrets</h2>\n{listed}\n</footer>\n" if self.about.redacted else ""
        return f"{rest}</main>\n{footer}{self._outline()}</body>\n</html>\n"

    def _message(self, message: Message) -> str:
        if not message.mark and not _is_prompt(message.entry):
            return self._turn.add(message)
        ended, self._turn = self._turn.ended(), Turn(self.about.session.cwd, message.entry.at)
        words = clean(clean_lines(plain_text(message.entry)[:FOLDED_CHARS]).strip().partition("\n")[0])
        if words and not message.mark and len(self._prompts) < MOST_PROMPTS:
            short = words if len(words) <= PROMPT_CHARS else f"{words[:PROMPT_CHARS]}…"
            self._prompts.append((message.number, short))
        return ended + _article(message, self.about.session.cwd)

    def _outline(self) -> str:
        rows = "".join(
            f'<li><a href="#m{number}">{escape(words)}</a></li>' for number, words in self._prompts
        )
        return f'<nav aria-label="Prompts">\n<ol>{rows}</ol>\n</nav>\n' if len(self._prompts) > 1 else ""


class Turn:
    """What was done since a prompt, until the answer is known: what follows the last call."""

    def __init__(self, folder: str | None, began: int | None = None) -> None:
        self._folder = folder
        self._began = self._ended = began
        self._work: list[str] = []
        self._tail: list[Message] = []
        self._counts = Counter[str]()

    def add(self, message: Message) -> str:
        """Keep the message; of a turn that grows too long, give what was done so far."""
        self._ended = message.entry.at
        self._began = self._began or self._ended
        self._tail.append(message)
        if any(isinstance(part, ToolCall | ToolResult) for part in message.entry.parts):
            self._count(message)
            self._work += [f'<div class="step">{_said(each, self._folder)}</div>\n' for each in self._tail]
            self._tail = []
        return self.ended() if len(self._work) + len(self._tail) >= MOST_STEPS else ""

    def ended(self) -> str:
        """One line for what was done, which unfolds, and the answer."""
        answer = [_article(each, self._folder) for each in self._tail]
        line = f"<summary>{escape(' · '.join(self._words()))}</summary>\n"
        work = ['<details class="work">', line, *self._work, "</details>\n"] if self._work else []
        self._work, self._tail, self._counts, self._began = [], [], Counter(), self._ended
        return "".join([*work, *answer])

    def _count(self, message: Message) -> None:
        for call in message.calls():
            result = message.results.get(call.id)
            failed = result is not None and result.is_error
            self._counts["steps"] += 1
            self._counts["failed"] += failed
            self._counts["edits"] += is_edit(call.input) and not failed

    def _words(self) -> Iterator[str]:
        done = self._counts
        yield formats.counted(done["steps"], "step") if done["steps"] else "Results"
        if done["edits"]:
            yield formats.counted(done["edits"], "edit")
        if done["failed"]:
            yield f"{done['failed']} failed"
        if self._began and self._ended and self._ended > self._began:
            yield formats.duration(self._ended - self._began)


def _is_prompt(entry: Entry) -> bool:
    """Whether a person wrote this, not a program in their name."""
    said = any(isinstance(part, Text | Image) for part in entry.parts)
    return entry.role == "user" and said and not entry.meta.get("meta")


def _article(message: Message, folder: str | None) -> str:
    entry, mark = message.entry, message.mark
    return (
        f'<article class="{"summary" if mark else entry.role}" id="m{message.number}">\n'
        f"<h2>{message.number}. {escape(labels.speaker(entry, mark=mark))} "
        f"<small>{escape(formats.exact_moment(entry.at))}</small></h2>\n{_said(message, folder)}\n</article>\n"
    )


def _said(message: Message, folder: str | None) -> str:
    """The parts of a message; results stand with their calls."""
    called = {call.id for call in message.calls()}
    pieces = ["<p><em>erased</em></p>"] if message.entry.meta.get("erased") else []
    for part in message.entry.parts:
        if isinstance(part, ToolCall):
            pieces += _call(part, message.results.get(part.id), folder)
        elif not (isinstance(part, ToolResult) and part.id in called):
            pieces += blocks(part)
    return "\n".join(pieces)


def _call(call: ToolCall, result: ToolResult | None, folder: str | None) -> Iterator[str]:
    """A call and its result, as one line that unfolds; pictures stand below it."""
    shown = step(call, result, folder)
    notes = "".join(f" <small>· {escape(note)}</small>" for note in shown.notes)
    line = f"<strong>{escape(shown.name)}</strong> {escape(shown.summary)}{notes}"
    inner = [_diff(shown.change)] if shown.change else []
    inner += [_block(text) for text in (shown.given, shown.output) if text.strip()]
    yield f"<details><summary>{line}</summary>{''.join(inner)}</details>"
    for part in result.content if result is not None else ():
        yield from blocks(part) if isinstance(part, Image) else ()


def _diff(diff: Diff) -> str:
    tags = {"added": "ins", "removed": "del"}
    lines = (
        f"<{tags[kind]}>{escape(text)}</{tags[kind]}>" if kind in tags else escape(text)
        for kind, text in diff_lines(diff)
    )
    return f"<pre>{chr(10).join(lines)}</pre>"


def blocks(part: Part) -> Iterator[str]:
    """A part as HTML; tools and thoughts are folded."""
    match part:
        case Text(text=text):
            yield f'<div class="said">{rendered(clean_lines(text))}</div>'
        case Thought(text=text):
            yield _folded("Thought", clean_lines(text))
        case ToolCall():
            yield from _call(part, None, None)
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
    return f"<details><summary>{escape(name)}</summary>{_block(text)}</details>"


def _block(text: str) -> str:
    return f"<pre>{escape(labels.shortened(text, FOLDED_CHARS))}</pre>"


def _picture(kind: str, data: str) -> str | None:
    """The picture itself, if it is of a kind that only shows; what is not base64 is no picture."""
    if kind not in labels.IMAGE_TYPES:
        return None
    try:
        pure = base64.b64encode(base64.b64decode(data, validate=True)).decode()
    except ValueError:
        return None
    return f'<p><img src="data:{kind};base64,{pure}" alt="{escape(kind)}"></p>'
