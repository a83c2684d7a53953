"""`markdown`: a conversation to read and to share, in which no message can pass for another.

Every message is in a fence that is longer than any run of backticks in it, so nothing in it is Markdown: no heading, no
link, no image, no HTML. The only headings are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hitherto.clean_text import clean, clean_lines
from hitherto.exports.facts import replacement, session_facts, session_title
from hitherto.exports.format import Writer
from hitherto.exports.lines import Replaced
from hitherto.model import Entry, Part, Plan, Resource, Text, Thought, ToolCall, ToolResult
from hitherto.presentation import formats, labels

FOLDED_CHARS = 2_000

_BACKTICKS = re.compile("`+")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Markdown(Writer):
    """Headings are ours, contents are fenced."""

    shows = True
    _entries = 0

    def begin(self) -> str:
        """The title and the facts about the session."""
        facts = "\n".join(f"- {name}: {code(value)}" for name, value in session_facts(self.about))
        return f"# {escaped(session_title(self.about))}\n\n{facts}\n"

    def entry(self, entry: Entry, *, mark: bool) -> str:
        """A numbered heading and the message."""
        self._entries += 1
        heading = f"## {self._entries}. {escaped(labels.speaker(entry, mark=mark))}, {formats.exact_moment(entry.at)}"
        pieces = ["*erased*"] if entry.meta.get("erased") else []
        pieces += [piece for part in entry.parts for piece in blocks(part)]
        return "\n" + "\n\n".join((heading, *pieces)) + "\n"

    def end(self, replaced: tuple[Replaced, ...]) -> str:
        """The list of replaced secrets."""
        if not self.about.redacted:
            return ""
        rows = [f"- {escaped(replacement(each))}" for each in replaced] or ["No secrets found."]
        return "\n## Replaced secrets\n\n" + "\n".join(rows) + "\n"


def blocks(part: Part) -> Iterator[str]:
    """A part as blocks of Markdown; tools and everything that is not text are kept short."""
    match part:
        case Text(text=text):
            yield fenced(clean_lines(text))
        case Thought(text=text):
            yield "*Thought*"
            yield fenced(clean_lines(text))
        case ToolCall(name=name, input=given):
            yield f"*Called* {code(clean(name))}"
            yield from _folded(labels.data(given))
        case ToolResult(is_error=failed):
            yield "*Failed*" if failed else "*Result*"
            yield from _folded(labels.result_text(part))
        case Resource(text=str(text)):
            yield f"*Attached* {code(labels.part_label(part))}"
            yield from _folded(clean_lines(text))
        case Plan(steps=steps):
            yield "*Plan*"
            yield fenced("\n".join(f"- {step}" for step in labels.steps(steps)))
        case _:
            yield f"*Attached* {code(labels.part_label(part))}"


def _folded(text: str) -> Iterator[str]:
    if text.strip():
        yield fenced(labels.shortened(text, FOLDED_CHARS))


def fenced(text: str) -> str:
    """The text as a block that it cannot end."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


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
