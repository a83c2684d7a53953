"""Showing turns: all of it on the screen, or the answer on stdout and the rest on stderr."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from hitherto.cli.terminal import diffs
from hitherto.cli.terminal.entries import MARK_STYLE, Styled, lines_of, one_line, write_indented
from hitherto.cli.terminal.output import Output, clean, plain_console
from hitherto.cli.terminal.transcript import write_markdown
from hitherto.cli.turns.stream_text import MARGIN, Blocks, Cleaner, Margin
from hitherto.engine import Notice
from hitherto.model import Entry, Part, Text, Thought, ToolCall, ToolResult
from hitherto.updates import Compacted, Said, Stored, Update

if TYPE_CHECKING:
    from rich.console import Console

THOUGHT = "dim italic"
ERASE_LINE = "\r\x1b[K"


class _Flow:
    """Streams text: cleaned, thoughts and answers on separate lines, each message ended by a newline."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._thought = False
        self._open = False

    def say(self, text: str, *, thought: bool) -> None:
        if thought != self._thought:
            self.pause()
            self._thought = thought
        self._flow(self._cleaner.clean(text))

    def pause(self) -> None:
        self._flow(self._cleaner.rest())
        if self._open:
            self._flow("\n")

    def _flow(self, text: str) -> None:
        if text:
            self._open = not text.endswith("\n")
            self._write(text)

    def _write(self, text: str) -> None:
        raise NotImplementedError


class Screen(_Flow):
    """Everything on stdout, indented, so that no message can imitate a question of the program.

    On a terminal, each block of an answer is drawn when it is whole: nothing that is on the screen changes or comes twice.
    """

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out
        self._margin = Margin(_cells if out.terminal else len)
        self._blocks = Blocks()
        self._answered = False
        self._sign = ""

    def line(self, styled: Styled) -> None:
        self.pause()
        write_indented(self._out, styled)

    def pause(self) -> None:
        super().pause()
        self._draw(self._blocks.rest())
        self._answered = False
        self._hide_sign()

    def show_sign(self) -> None:
        """Say that a turn runs, below everything else, until something is shown."""
        lines = self._blocks.lines
        sign = f"Writing… {lines} lines" if lines > 1 else "Working…"
        if not self._out.terminal or self._out.console.is_dumb_terminal or not self._margin.at_start:
            return
        if sign != self._sign:
            self._hide_sign()
            _styled(self._out.console, MARGIN + sign, "dim")
            self._sign = sign

    def _hide_sign(self) -> None:
        if self._sign:
            self._out.console.file.write(ERASE_LINE)
            self._sign = ""

    def _write(self, text: str) -> None:
        if not self._out.terminal:
            sys.stdout.write(self._margin.set(text))
            sys.stdout.flush()
        elif self._thought:
            self._hide_sign()
            _styled(self._out.console, self._margin.set(text, self._out.console.width - 1), THOUGHT)
        else:
            for block in self._blocks.add(text):
                self._draw(block)

    def _draw(self, block: str) -> None:
        if block.strip():
            self._hide_sign()
            if self._answered:
                self._out.line("")
            write_markdown(self._out, block)
            self._answered = True


class Streams(_Flow):
    """Only the answer on stdout; everything else on stderr, if `asides` is set."""

    def __init__(self, *, asides: bool, answer: bool = True) -> None:
        super().__init__()
        self._asides, self._answer = asides, answer

    @cached_property
    def _console(self) -> Console:
        return plain_console(stderr=True)

    def line(self, styled: Styled) -> None:
        if self._asides:
            self.pause()
            _styled(self._console, f"{MARGIN}{styled.text}\n", styled.style or "dim")

    def _write(self, text: str) -> None:
        if self._thought and self._asides:
            _styled(self._console, text, THOUGHT)
        elif self._answer and not self._thought:
            sys.stdout.write(text)
            sys.stdout.flush()


def _styled(console: Console, text: str, style: str) -> None:
    from rich.segment import Segment, Segments

    # Not a `Text`: that drops spaces at the end of a long line, which the next piece continues.
    console.print(Segments([Segment(text, console.get_style(style))]), end="", soft_wrap=True)
    console.file.flush()


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


NOTICES = {"info": "dim", "warning": MARK_STYLE, "error": "red"}
COMPACTED = "── compacted: a summary replaces the earlier messages ──"


class Stage(Protocol):
    """Where a turn is shown: text streams, everything else gets its own lines."""

    def say(self, text: str, *, thought: bool) -> None:
        """The next piece of text."""

    def line(self, styled: Styled) -> None:
        """A line of its own."""

    def pause(self) -> None:
        """End the message; the next text starts on a new line."""


class UpdatePrinter:
    """Shows each update on a stage."""

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
        """Show what was not streamed: of a streamed message, everything but its text."""
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
        """Show the result of a tool, with its title if several ran, and the diff it returned."""
        several, title = len(self._calls) > 1, self._calls.get(part.id)
        if several and title is not None:
            self._stage.line(Styled(one_line(title), "magenta"))
        self._lines(part)
        for styled in diffs.change(part):
            self._stage.line(styled)

    def _lines(self, part: Part) -> None:
        for styled in lines_of(part):
            self._stage.line(styled)
