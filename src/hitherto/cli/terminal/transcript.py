"""Messages as they are read: on a terminal with Markdown, code and diffs rendered, in a pipe as plain text."""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

from hitherto.cli.terminal import diffs
from hitherto.cli.terminal.entries import Styled, body, heading, lines_of, write, write_indented
from hitherto.cli.terminal.output import Output, clean_lines
from hitherto.model import Entry, Text, ToolResult

if TYPE_CHECKING:
    from rich.segment import Segment

LONGEST_MARKDOWN = 100_000
"""Longer text is shown as it is: rendering it would take seconds."""
INDENT = "  "
THEME = "ansi_dark"


def print_entry(out: Output, entry: Entry) -> None:
    """Print a message with its heading, indented, so that no message can imitate a heading."""
    write(out, *heading(entry, local=out.terminal))
    if not out.terminal or entry.role == "user" or entry.meta.get("erased"):
        for styled in body(entry):
            write_indented(out, styled)
        return
    for part in entry.parts:
        if isinstance(part, Text):
            write_markdown(out, part.text)
            continue
        for styled in lines_of(part):
            write_indented(out, styled)
        if isinstance(part, ToolResult):
            for styled in diffs.change(part):
                write_indented(out, styled)


def write_markdown(out: Output, text: str) -> None:
    """Draw Markdown on the terminal, indented. Links show their address and cannot be clicked: others wrote them."""
    shown = clean_lines(text)
    if len(shown) > LONGEST_MARKDOWN:
        write_indented(out, Styled(shown))
        return
    from rich.markdown import Markdown
    from rich.segment import Segment, Segments

    console = out.console
    rendered = Markdown(shown, code_theme=THEME, hyperlinks=False)
    width = max(1, console.width - len(INDENT))
    lines = console.render_lines(rendered, console.options.update_width(width), pad=False)
    for line in _without_edges([_without_end(line) for line in lines]):
        out.draw_line(Segments([Segment(INDENT), *line] if line else []))


def _without_edges(lines: list[list[Segment]]) -> list[list[Segment]]:
    """The lines without empty ones above and below."""
    said = [place for place, line in enumerate(lines) if line]
    return lines[said[0] : said[-1] + 1] if said else []


def _without_end(line: list[Segment]) -> list[Segment]:
    """The line without the spaces that fill it."""
    kept = list(dropwhile(lambda piece: not piece.text.strip(), reversed(line)))[::-1]
    return [*kept[:-1], kept[-1]._replace(text=kept[-1].text.rstrip())] if kept else []
