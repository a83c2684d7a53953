"""What happens in a turn, told as it happens."""

from __future__ import annotations

from typing import Protocol

from hitherto.cli import diffs
from hitherto.cli.entries import MARK_STYLE, Styled, lines_of, one_line
from hitherto.cli.output import clean
from hitherto.engine import Notice
from hitherto.model import Entry, Part, Text, Thought, ToolCall, ToolResult
from hitherto.updates import Compacted, Said, Stored, Update

NOTICES = {"info": "dim", "warning": MARK_STYLE, "error": "red"}
COMPACTED = "── the context was made smaller; a summary stands for what was said before ──"


class Stage(Protocol):
    """Where a turn appears: what is said flows, all else takes lines of its own."""

    def say(self, text: str, *, thought: bool) -> None:
        """Some more of what is being said."""

    def line(self, styled: Styled) -> None:
        """A line beside it."""

    def pause(self) -> None:
        """A message has ended; what is said next begins a new line."""


class Telling:
    """Tells a stage what happens. To be called with each update."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._streamed: str | None = None
        self._calls: dict[str, str] = {}

    def __call__(self, update: Update) -> None:
        match update:
            case Said(entry=entry, text=text, thought=thought):
                self._streamed = entry
                self._stage.say(text, thought=thought)
            case Stored(entry=entry):
                self._stored(entry)
            case Notice(text=text, severity=severity):
                self._stage.line(Styled(f"! {clean(text)}", NOTICES[severity]))
            case Compacted():
                self._stage.line(Styled(COMPACTED, MARK_STYLE))

    def _stored(self, entry: Entry) -> None:
        """What has not been told yet: of a message all but its text, if that came piece by piece."""
        if entry.role == "user":
            return
        if entry.role == "assistant":
            self._calls.clear()
        for part in entry.parts:
            if not isinstance(part, Text | Thought):
                self._part(part)
            elif entry.id != self._streamed:
                self._stage.say(part.text, thought=isinstance(part, Thought))
        self._stage.pause()

    def _part(self, part: Part) -> None:
        match part:
            case ToolCall(id=id, title=str(title)):
                self._calls[id] = title
                self._stage.line(Styled(one_line(f"→ {title}"), "magenta"))
            case ToolResult():
                self._result(part)
            case _:
                self._lines(part)

    def _result(self, part: ToolResult) -> None:
        """How a tool has ended, by name if it was one of several; and what it has changed."""
        several, title = len(self._calls) > 1, self._calls.get(part.id)
        if several and title is not None:
            self._stage.line(Styled(one_line(title), "magenta"))
        self._lines(part)
        for styled in diffs.change(part):
            self._stage.line(styled)

    def _lines(self, part: Part) -> None:
        for styled in lines_of(part):
            self._stage.line(styled)
