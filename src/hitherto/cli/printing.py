"""Lines and entries, on a terminal and in a pipe."""

from __future__ import annotations

from hitherto.cli.entries import Styled, body, heading
from hitherto.cli.output import Output
from hitherto.model import Entry


def print_entry(out: Output, entry: Entry) -> None:
    """Who spoke, and what was said."""
    write(out, *heading(entry, local=out.terminal))
    for styled in body(entry):
        write_indented(out, styled)


def write(out: Output, *pieces: Styled) -> None:
    """Print a line."""
    if not out.terminal:
        out.line("".join(piece.text for piece in pieces))
        return
    from rich.text import Text

    out.draw(Text.assemble(*((piece.text, piece.style) for piece in pieces)))


def write_indented(out: Output, styled: Styled) -> None:
    """Behind the margin, so that nothing that was said can look like a heading."""
    if not out.terminal:
        out.text("\n".join(f"  {line}" for line in styled.text.split("\n")))
        return
    from rich.padding import Padding
    from rich.text import Text

    out.draw(Padding(Text(styled.text, styled.style), (0, 0, 0, 2), expand=False))
