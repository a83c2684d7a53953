"""A tool call and its result as a card: a summary line, with the rest folded below. Pure."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from hitherto.clean_text import clean, clean_lines
from hitherto.gateway.page.render.ansi import coloured
from hitherto.gateway.page.render.code import Picture, highlight, highlight_file, pictures
from hitherto.gateway.page.render.json_tree import Node, tree
from hitherto.gateway.page.render.rows import Row
from hitherto.model import Part, Resource, Text, ToolCall, ToolResult
from hitherto.presentation.calls import (
    COMMANDS,
    PATHS,
    asked_change,
    call_summary,
    changed_lines,
    input_text,
    made_change,
)
from hitherto.presentation.diffs import Diff, is_edit

SHOWN_CHARS = 20_000
JSON_CHARS = 100_000


class ShownLine(NamedTuple):
    """A line of a diff as it is shown: with the colours of its language, and its number if that is known."""

    kind: str
    text: Markup
    number: int | None


class ShownDiff(NamedTuple):
    """A diff as it is shown. `is_placed`: the numbers of its lines are known."""

    lines: tuple[ShownLine, ...]
    more: int

    @property
    def is_placed(self) -> bool:
        return any(line.number is not None for line in self.lines)


class Output(NamedTuple):
    """The result of a tool call. `anchor` is the message that holds it."""

    anchor: str
    failed: bool
    text: Markup | None = None
    node: Node | None = None
    diff: ShownDiff | None = None
    pictures: tuple[Picture, ...] = ()
    more: int = 0


class Card(NamedTuple):
    """A call, with the parts that it has. `output` is None while it `runs`, or if there was never a result.

    `child` is the session that it started; `changed` says how many lines it added and removed.
    """

    name: str
    kind: str
    summary: str
    command: Markup | None = None
    diff: ShownDiff | None = None
    given: Node | None = None
    output: Output | None = None
    child: Row | None = None
    runs: bool = False
    changed: str = ""

    @property
    def failed(self) -> bool:
        return self.output is not None and self.output.failed


def card(call: ToolCall, output: Output | None, child: Row | None = None, folder: str | None = None) -> Card:
    """The card of a call. Its line shows paths relative to the folder of the session."""
    given = call.input if isinstance(call.input, dict) else {}
    command = input_text(given, COMMANDS)
    asked = None if output is not None and output.diff is not None else asked_change(given)
    diff = None if asked is None else shown_diff(asked, input_text(given, PATHS))
    shown = {name for name in COMMANDS if command is not None}
    return Card(
        name=clean(call.name)[:100],
        kind=call.kind or "other",
        summary=call_summary(call, folder),
        command=None if command is None else Markup(highlight(clean_lines(command[:SHOWN_CHARS]), "bash")),  # noqa: S704 - escaped by the highlighter
        diff=diff,
        given=None if is_edit(call.input) else _given(call.input, shown),
        output=output,
        child=child,
        changed=_changed(diff or (output.diff if output is not None else None)),
    )


def output_of(result: ToolResult, anchor: str, call: ToolCall | None = None) -> Output:
    """The result, in the form that shows it best."""
    made = made_change(call, result)
    diff = None if made is None else shown_diff(made, input_text(call.input, PATHS) if call else None)
    said = "\n".join(_said(result.content))
    node = _parsed(said) if said.strip() else _given(result.output, set())
    more = max(0, len(said) - SHOWN_CHARS)
    return Output(
        anchor=anchor,
        failed=result.is_error,
        text=None if node is not None or not said.strip() else _output_text(said[:SHOWN_CHARS], call),
        node=None if diff is not None and not said.strip() else node,
        diff=diff,
        pictures=tuple(pictures(result.content)),
        more=0 if node is not None else more,
    )


def shown_diff(diff: Diff, path: str | None) -> ShownDiff:
    """The diff with the colours of the file's language."""
    code = (
        highlight_file("\n".join(line.text for line in diff.lines), path or "").removesuffix("\n").split("\n")
    )
    if len(code) != len(diff.lines):
        code = [str(escape(line.text)) for line in diff.lines]
    lines = (
        ShownLine(line.kind, Markup(text), line.number)  # noqa: S704 - escaped by the highlighter
        for line, text in zip(diff.lines, code, strict=True)
    )
    return ShownDiff(tuple(lines), diff.more)


def _changed(diff: ShownDiff | None) -> str:
    """How many lines were added and removed; empty if that is not known."""
    return "" if diff is None or diff.more else changed_lines([line.kind for line in diff.lines])


def _output_text(said: str, call: ToolCall | None) -> Markup:
    given = call.input if call is not None and isinstance(call.input, dict) else {}
    path = input_text(given, PATHS) if call is not None and call.kind == "read" else None
    if path is None or "\x1b" in said:
        return coloured(said)
    return Markup(highlight_file(clean_lines(said), path))  # noqa: S704 - escaped by the highlighter


def _given(value: Any, shown: set[str]) -> Node | None:
    rest = (
        {name: each for name, each in value.items() if name not in shown}
        if isinstance(value, dict)
        else value
    )
    return None if rest in (None, {}, [], "") else tree(rest)


def _parsed(said: str) -> Node | None:
    """A tree, if the text is JSON of more than one value."""
    text = said.strip()
    if len(text) > JSON_CHARS or text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree(value)


def _said(content: tuple[Part, ...]) -> list[str]:
    return [part.text for part in content if isinstance(part, Text | Resource) and isinstance(part.text, str)]
