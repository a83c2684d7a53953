"""What happens in a turn, on its way from the server that runs it to whoever has asked for it. Pure."""

from __future__ import annotations

from hitherto.model import ToolCall, encode
from hitherto.remote.values import out_of
from hitherto.updates import NAMES, Update

QUESTION = "question"
KINDS: dict[str, type[Update | ToolCall]] = {
    **{name: kind for kind, name in NAMES.items()},
    QUESTION: ToolCall,
}
"""What may be told, by name: updates, and the call of a tool that is asked about."""


def told(happening: Update | ToolCall) -> bytes:
    """What happens, for the wire: a name, and its exact JSON."""
    name = QUESTION if isinstance(happening, ToolCall) else NAMES[type(happening)]
    return b"%b %b" % (name.encode(), encode(happening))


def heard(data: bytes) -> Update | ToolCall | None:
    """What `told` was given; None for what only a newer program knows."""
    name, _, value = data.partition(b" ")
    kind = KINDS.get(name.decode("ascii", "replace"))
    happening: Update | ToolCall | None = None if kind is None else out_of(value, kind)
    return happening
