"""Where turns appear: on a screen with everything around them, or as the bare answer in a stream."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING

from hitherto.cli.entries import Styled
from hitherto.cli.flowing import MARGIN, Cleaner, Margin
from hitherto.cli.output import Output, plain_console
from hitherto.cli.printing import write_indented

if TYPE_CHECKING:
    from rich.console import Console

THOUGHT = "dim italic"


class _Flow:
    """Text in pieces: cleaned, thoughts and words on lines of their own, and each message ended with its line."""

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
    """Everything on stdout, behind the margin, so that nothing that was said can look like a question of ours."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out
        self._margin = Margin(_cells if out.terminal else len)

    def line(self, styled: Styled) -> None:
        self.pause()
        write_indented(self._out, styled)

    def _write(self, text: str) -> None:
        if not self._out.terminal:
            sys.stdout.write(self._margin.set(text))
            sys.stdout.flush()
            return
        set_text = self._margin.set(text, self._out.console.width - 1)
        _styled(self._out.console, set_text, THOUGHT if self._thought else "")


class Streams(_Flow):
    """The answer alone on stdout; all else on stderr, if it is to be seen."""

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

    # Not as a `Text`, which gives up spaces at the end of a long line: the next piece belongs to it.
    console.print(Segments([Segment(text, console.get_style(style))]), end="", soft_wrap=True)
    console.file.flush()


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
