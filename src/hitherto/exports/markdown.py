"""`markdown`: a conversation to read and to share, which renders wherever Markdown does, and in which no message can pass for another.

Messages are Markdown without anything active; the first three levels of headings are ours. What tools were given and what they
said is folded, in fences longer than any run of backticks in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from hitherto.clean_text import clean, clean_lines
from hitherto.exports.facts import replacement, session_facts, session_title
from hitherto.exports.format import About, Writer
from hitherto.exports.lines import Replaced
from hitherto.exports.paired import Message, Pairing
from hitherto.exports.safe_markdown import code, escaped, fenced, safe_markdown
from hitherto.model import Entry, Part, Plan, Resource, Text, Thought, ToolCall, ToolResult
from hitherto.presentation import formats, labels
from hitherto.presentation.calls import (
    COMMANDS,
    asked_change,
    call_summary,
    changed_lines,
    input_text,
    made_change,
)
from hitherto.presentation.diffs import Diff

FOLDED_CHARS = 2_000
DIFF_CHARS = 20_000
NAME_CHARS = 100
SIGNS = {"added": "+", "removed": "-", "place": ""}
"""How lines of a diff begin; others begin with a space."""


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
    made = made_change(call, result) if result is not None else None
    change = made or asked_change(call.input)
    failed = "failed" if result is not None and result.is_error else ""
    counts = changed_lines([line.kind for line in change.lines]) if change and not change.more else ""
    name = clean(call.name[:NAME_CHARS])
    words = [f"{name} {call_summary(call, folder)}".strip() or "Tool call", counts, failed]
    pieces = [_diff(change)] if change else _given(call)
    said = "" if result is None else labels.result_text(result)
    told = [] if made is not None and result is not None and not result.content else _fence(said)
    return folded(" · ".join(word for word in words if word), *pieces, *told)


def _given(call: ToolCall) -> list[str]:
    command = input_text(call.input, COMMANDS)
    if command is not None and len(call.input) == 1:
        return _fence(clean_lines(command), "bash")
    return _fence(labels.data(call.input), "text" if isinstance(call.input, str) else "json")


def _diff(diff: Diff) -> str:
    lines = [f"{SIGNS.get(line.kind, ' ')}{line.text}" for line in diff.lines]
    more = [f"… ({diff.more} more lines)"] * (diff.more > 0)
    return fenced(labels.shortened("\n".join([*lines, *more]), DIFF_CHARS), "diff")


def _fence(text: str, language: str = "text") -> list[str]:
    return [fenced(labels.shortened(text, FOLDED_CHARS), language)] if text.strip() else []
