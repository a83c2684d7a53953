"""A tool out of what it takes and what it does: the schema, the checking of input, and errors as the model's text."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.limits import RESULT_BYTES, TITLE_CHARS
from hitherto.model import Json, Text
from hitherto.permissions import Kind


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool takes. The docstring of each is what the model reads about the tool."""


I = TypeVar("I", bound=Input)  # noqa: E741 - the input of a tool


def make_tool(
    takes: type[I],
    run: Callable[[I, Show], Awaitable[ToolOutput]],
    *,
    name: str,
    kind: Kind,
    title: Callable[[I], str],
    locations: Callable[[I], tuple[Json, ...]] = lambda _: (),
) -> Tool:
    """A tool whose `run` may raise: the model gets the error as the result."""

    async def call(given: Json, show: Show) -> ToolOutput:
        try:
            args = _parse_input(takes, given)
        except msgspec.ValidationError as error:
            return error_output(f"invalid input for {name}: {error}")
        try:
            return await run(args, show)
        except Exception as error:  # noqa: BLE001 - whatever fails in a tool or an editor, the turn continues
            return error_output(_reason(args, error))

    return Tool(
        name=name,
        description=inspect.cleandoc(takes.__doc__ or ""),
        schema=_schema(takes),
        kind=kind,
        call=call,
        title=lambda given: _describe(takes, given, lambda args: one_line(title(args)), None),
        locations=lambda given: _describe(takes, given, locations, ()),
    )


def text_output(text: str, **more: Any) -> ToolOutput:
    """What a tool answers in words."""
    return ToolOutput(content=(Text(text=text),), **more)


def error_output(text: str) -> ToolOutput:
    """Why a tool could not do it."""
    return text_output(printable(text), is_error=True)


def fit_lines(lines: Sequence[str]) -> list[str]:
    """The first of these lines, as many as a result may hold."""
    sizes = accumulate(len(line.encode()) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= RESULT_BYTES]


def printable(name: str) -> str:
    """A name or a message in which every character can be stored, sent and seen: others are written as escapes."""
    if name.isprintable():
        return name
    whole = name.encode("utf-8", "surrogateescape" if _is_bytes(name) else "backslashreplace")
    text = whole.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def one_line(text: str) -> str:
    """The beginning of a text, for a title."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


T = TypeVar("T")


def _parse_input(takes: type[I], given: Json) -> I:
    # Not strict: some models write a number as a string.
    return msgspec.convert(given, takes, strict=False)


def _describe(takes: type[I], given: Json, describe: Callable[[I], T], otherwise: T) -> T:
    try:
        return describe(_parse_input(takes, given))
    except (msgspec.ValidationError, ValueError):
        return otherwise


def _reason(args: Input, error: Exception) -> str:
    path = getattr(args, "path", None)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{path}: {reason}" if path else reason or type(error).__name__


def _is_bytes(name: str) -> bool:
    """Whether the lone surrogates in it, if any, stand for the bytes of a name that is no UTF-8."""
    return not any("\ud800" <= char <= "\udc7f" or "\udd00" <= char <= "\udfff" for char in name)


def _schema(takes: type[Input]) -> Json:
    """JSON schema in one piece: not every provider follows references."""
    whole = msgspec.json.schema(takes)
    schema: Json = _inlined(whole, whole["$defs"])
    return {key: value for key, value in schema.items() if key != "description"}


def _inlined(value: Any, known: Json) -> Any:
    if isinstance(value, list):
        return [_inlined(item, known) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(known[value["$ref"].rsplit("/", 1)[1]], known)
    return {key: _inlined(item, known) for key, item in value.items() if key not in ("title", "$defs")}
