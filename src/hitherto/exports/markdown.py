"""`markdown`: a conversation to read and to share, which renders wherever Markdown does, and in which no message can pass for another.

Messages are Markdown without anything active; the first three levels of headings are ours. What tools were given and what they
said is folded, in fences longer than any run of backticks in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from hitherto.clean_text import clean_lines
from hitherto.exports.facts import replacement, session_facts, session_title
from hitherto.exports.format import About, Writer
from hitherto.exports.lines import Replaced
from hitherto.exports.paired import Message, Pairing
from hitherto.exports.safe_markdown import code, escaped, fenced, safe_markdown
from hitherto.exports.steps import diff_lines, step
from hitherto.model import Entry, Part, Plan, Resource, Text, Thought, ToolCall, ToolResult
from hitherto.presentation import formats, labels
from hitherto.presentation.diffs import Diff

FOLDED_CHARS = 2_000
DIFF_CHARS = 20_000


class Markdown(Writer):
    """A heading wherever somebody else speaks, and below it what was said and done."""

    shows = True

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._pairing = Pairing()
        self._speaker = ""

    def begin(self) -> str:
        """The title and the facts about the session."""
        facts = "\n".join(f"- {name}: {code(value)}" for name, value in session_facts(self.about))
        return f"# {escaped(session_title(self.about))}\n\n{facts}\n"

    def entry(self, entry: Entry, *, mark: bool) -> str:
        """The messages that are whole with this one."""
        return "".join(map(self._message, self._pairing.add(entry, mark=mark)))

    def end(self, replaced: tuple[Replaced, ...]) -> str:
        """What is left, and the list of replaced secrets."""
        rest = "".join(map(self._message, self._pairing.rest()))
        if not self.about.redacted:
            return rest
        rows = [f"- {escaped(replacement(each))}" for each in replaced] or ["No secrets found."]
        return f"{rest}\n## Replaced secrets\n\n" + "\n".join(rows) + "\n"

    def _message(self, message: Message) -> str:
        entry = message.entry
        pieces = ["*erased*"] if entry.meta.get("erased") else []
        pieces += [piece for part in entry.parts for piece in _shown(part, message, self.about.session.cwd)]
        return "\n" + "\n\n".join([*self._heading(message), *pieces]) + "\n" if pieces else ""

    def _heading(self, message: Message) -> Iterator[str]:
        """A numbered heading, unless an agent or a tool goes on."""
        speaker = labels.speaker(message.entry, mark=message.mark)
        if message.mark or message.entry.role == "user" or speaker != self._speaker:
            yield f"## {message.number}. {escaped(speaker)}, {formats.exact_moment(message.entry.at)}"
        self._speaker = speaker


def _shown(part: Part, message: Message, folder: str | None) -> Iterator[str]:
    """A part of a message; results stand with their calls."""
    called = {call.id for call in message.calls()}
    if isinstance(part, ToolCall):
        yield _call(part, message.results.get(part.id), folder)
    elif not (isinstance(part, ToolResult) and part.id in called):
        yield from blocks(part)


def blocks(part: Part) -> Iterator[str]:
    """A part as blocks of Markdown; tools and everything that is not text are folded and kept short."""
    match part:
        case Text(text=text) if text.strip():
            yield safe_markdown(clean_lines(text))
        case Text():
            return
        case Thought(text=text):
            yield folded("Thought", safe_markdown(clean_lines(text)))
        case ToolCall():
            yield _call(part, None, None)
        case ToolResult(is_error=failed):
            yield folded("Failed" if failed else "Result", *_fence(labels.result_text(part)))
        case Resource(text=str(text)):
            yield folded(f"Attached {labels.part_label(part)}", *_fence(clean_lines(text)))
        case Plan(steps=steps):
            yield "*Plan*"
            yield "\n".join(f"- {escaped(step)}" for step in labels.steps(steps))
        case _:
            yield f"*Attached* {code(labels.part_label(part))}"


def folded(name: str, *pieces: str) -> str:
    """One line that unfolds into these blocks."""
    return "\n\n".join([f"<details>\n<summary>{escape(name)}</summary>", *pieces, "</details>"])


def _call(call: ToolCall, result: ToolResult | None, folder: str | None) -> str:
    """A call and its result, as one line that unfolds."""
    shown = step(call, result, folder)
    line = " · ".join([f"{shown.name} {shown.summary}".strip(), *shown.notes])
    change = [_diff(shown.change)] if shown.change else []
    return folded(line, *change, *_fence(shown.given, shown.language), *_fence(shown.output))


def _diff(diff: Diff) -> str:
    text = "\n".join(text for _, text in diff_lines(diff))
    return fenced(labels.shortened(text, DIFF_CHARS), "diff")


def _fence(text: str, language: str = "text") -> list[str]:
    shown = labels.shortened(text.rstrip("\n"), FOLDED_CHARS)
    return [fenced(shown, language)] if text.strip() else []
