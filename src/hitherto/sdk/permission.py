"""The caller's `can_use_tool`, in all the ways it may answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.model import Json, ToolCall, Value, decode_json, encode
from hitherto.permissions import CHOICES, Choice, Verdict
from hitherto.updates import Ask

REFUSED = "refused by the user"
PLAIN: dict[object, Choice] = {
    True: "allow_once",
    False: "reject_once",
    "allow": "allow_once",
    "deny": "reject_once",
    **{choice: choice for choice in CHOICES},
}
"""Answers that are one word → what they mean."""


class ToolPermissionContext(Value, frozen=True):
    """What else is known of a call that is asked about. `kind` is what such a tool does, such as `edit`."""

    session_id: str
    tool_use_id: str
    kind: str | None = None
    title: str | None = None
    locations: tuple[Json, ...] = ()


CanUseTool = Callable[[str, Any, ToolPermissionContext], Any]
"""Called with a tool's name, its input and the context; answers at once or is awaited."""


def make_ask(session_id: str, can_use_tool: CanUseTool, interrupt: Callable[[], None]) -> Ask:
    """Asks the caller's function, and understands its answer: one that denies may also `interrupt` the turn. What the function
    raises, this raises."""

    async def ask(call: ToolCall) -> Choice | Verdict:
        context = ToolPermissionContext(
            session_id=session_id,
            tool_use_id=call.id,
            kind=call.kind,
            title=call.title,
            locations=call.locations,
        )
        answer = can_use_tool(call.name, call.input, context)
        answer = await answer if isawaitable(answer) else answer
        parsed = parse_answer(answer)
        if isinstance(parsed, Verdict) and not parsed.allowed and _fields(answer).get("interrupt") is True:
            interrupt()
        return parsed

    return ask


def parse_answer(answer: object) -> Choice | Verdict:
    """The choice or verdict that an answer stands for: a bool, a word, or something with a `behavior`."""
    if isinstance(answer, Verdict):
        return replace(answer, input=_checked_input(answer.input))
    if isinstance(answer, bool | str) and answer in PLAIN:
        return PLAIN[answer]
    fields = _fields(answer)
    behavior = fields.get("behavior")
    if behavior == "allow":
        given = _first(fields.get("updated_input"), fields.get("updatedInput"))
        return Verdict(allowed=True, input=_checked_input(given))
    if behavior == "deny":
        return Verdict(allowed=False, reason=str(fields.get("message") or REFUSED))
    raise InvalidInput(f"can_use_tool must answer allow or deny, not {answer!r:.200}")


class _Attributes:
    """An object, read like a mapping."""

    def __init__(self, value: object) -> None:
        self._value = value

    def get(self, name: str) -> Any:
        return getattr(self._value, name, None)


def _fields(answer: object) -> Mapping[str, Any] | _Attributes:
    return answer if isinstance(answer, Mapping) else _Attributes(answer)


def _checked_input(given: object) -> Json | None:
    """Another input for the tool, if it is one that can be kept; None leaves it as it is."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise InvalidInput(f"the updated input of a tool must be a mapping, not {given!r:.200}")
    try:
        checked: Json = decode_json(encode(dict(given)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the updated input of a tool must be JSON: {error}") from None
    return checked


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
