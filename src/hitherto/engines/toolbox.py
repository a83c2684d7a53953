"""Tools as the model is offered them, wherever they come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from hitherto.model import Json, Part

Show = Callable[[str], None]
"""Shows all the output of a running tool so far."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave back: parts for the model, structured `output` for programs, `extra` parts for the history.

    A tool that changed a file says so in `output`: `{"diff": {"path": …, "oldText": … or None, "newText": …}}`.
    """

    content: tuple[Part, ...]
    is_error: bool = False
    output: Any = None
    extra: tuple[Part, ...] = ()


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. `call` runs it with input that fits `schema` (or says in its answer why it does not); it raises nothing
    but `CancelledError`. `kind` is one of `permissions.KINDS`; `title` and `locations` describe a call."""

    name: str
    description: str
    schema: Json
    kind: str
    call: Callable[[Json, Show], Awaitable[Ran]]
    title: Callable[[Json], str | None] = lambda _: None
    locations: Callable[[Json], tuple[Json, ...]] = lambda _: ()
