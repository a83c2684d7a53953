"""Messages as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hitherto.cli.terminal.output import Output, clean, clean_lines
from hitherto.model import (
    Audio,
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    search_text,
)
from hitherto.presentation import formats

ONE_LINE = 160
ROLE_STYLES = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "bold yellow",
    "tool": "bold magenta",
}
MARK_STYLE = "yellow"


class Styled(NamedTuple):
    """Clean text and its style on a terminal."""

    text: str
    style: str = ""


def heading(entry: Entry, *, local: bool) -> tuple[Styled, Styled]:
    """The role, then time, id and model."""
    when = formats.local(entry.at) if local else formats.utc(entry.at)
    model = f"  {clean(entry.model)}" if entry.model else ""
    return Styled(entry.role, ROLE_STYLES[entry.role]), Styled(f"  {when}  {clean(entry.id)}{model}", "dim")


def body(entry: Entry) -> Iterator[Styled]:
    """The content of a message; tool calls and other parts that are not text take one line each."""
    if entry.meta.get("erased"):
        yield Styled("(erased)", "dim")
    for part in entry.parts:
        yield from lines_of(part)


def lines_of(part: Part) -> Iterator[Styled]:
    """The lines of a part."""
    match part:
        case Text(text=text):
            yield Styled(clean_lines(text))
        case Thought(text=text):
            yield Styled(clean_lines(text), "dim italic")
        case ToolCall(name=name, title=title, input=given):
            yield Styled(one_line(f"→ {title or name} {_data(given)}"), "magenta")
        case ToolResult():
            yield _result(part)
        case Plan(steps=steps):
            for step in steps:
                yield Styled(
                    one_line(f"- {step.get('content', '')} ({step.get('status', 'pending')})"), "blue"
                )
        case _:
            yield Styled(one_line(f"[{_part_label(part)}]"), "blue")


def _result(part: ToolResult) -> Styled:
    said = search_text(Entry(id="", at=0, role="tool", parts=part.content)) or _data(part.output)
    if part.is_error:
        return Styled(one_line(f"← failed: {said}"), "red")
    return Styled(one_line(f"← {said or 'done'}"), "dim magenta")


def _part_label(part: Part) -> str:
    match part:
        case Image(mime_type=kind, uri=uri):
            return f"image {kind} {uri or ''}".rstrip()
        case Audio(mime_type=kind):
            return f"audio {kind}"
        case Resource(uri=uri):
            return f"resource {uri}"
        case ResourceLink(uri=uri, name=name):
            return f"link {uri} {name or ''}".rstrip()
    return "unknown content"


def _data(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def one_line(text: str) -> str:
    """One line of at most `ONE_LINE` characters. Cut before cleaning too: tool data can be megabytes long."""
    line = clean(text[: ONE_LINE * 8])
    return line if len(line) <= ONE_LINE else f"{line[: ONE_LINE - 1]}…"


def write(out: Output, *pieces: Styled) -> None:
    """Print a line."""
    if not out.terminal:
        out.line("".join(piece.text for piece in pieces))
        return
    from rich.text import Text

    out.draw(Text.assemble(*((piece.text, piece.style) for piece in pieces)))


def write_indented(out: Output, styled: Styled) -> None:
    """Print indented lines, so that no message can imitate a heading."""
    if not out.terminal:
        out.text("\n".join(f"  {line}" for line in styled.text.split("\n")))
        return
    from rich.padding import Padding
    from rich.text import Text

    out.draw(Padding(Text(styled.text, styled.style), (0, 0, 0, 2), expand=False))


def report_change(out: Output, done: str, session: Session) -> None:
    """Report what was done to a session; with `--json`, print the session."""
    if out.json:
        out.document(session)
    else:
        out.line(f"{done} {session.id}: {formats.title(session)}")
