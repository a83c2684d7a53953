"""What a model is shown of a session: no tool call without a result, and no more than fits its window. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from hitherto.model import Draft, Entry, Text, ToolCall, ToolResult, Usage
from hitherto.summariser import CompactionPolicy

INTERRUPTED = "interrupted: the tool was started, and its result is unknown"
CANCELLED = "cancelled before it ended"
CUT_OFF = "cut off: the turn failed before this was complete"
WITHDRAWN = "cancelled before this was complete"


def unanswered_calls(history: Sequence[Entry]) -> list[ToolCall]:
    """The tool calls at the end of a history that have no result yet, in order."""
    answered: set[str] = set()
    for entry in reversed(history):
        if entry.role == "assistant":
            return [call for call in _calls(entry) if call.id not in answered]
        if entry.role != "tool":
            return []
        answered.update(part.id for part in entry.parts if isinstance(part, ToolResult))
    return []


def failed_results(calls: Iterable[ToolCall], why: str) -> list[Draft]:
    """A result for each call that says why there is none."""
    results = (ToolResult(id=call.id, content=(Text(text=why),), is_error=True) for call in calls)
    return [Draft(role="tool", parts=(result,), meta={"partial": why}) for result in results]


def policy_for_window(window: int, usual: CompactionPolicy) -> CompactionPolicy:
    """How a context is made smaller for a window: what stays of it must not fill a small one again."""
    return replace(
        usual,
        kept_tokens=min(usual.kept_tokens, window // 4),
        summary_tokens=min(usual.summary_tokens, window // 8),
    )


def sum_usage(usages: Sequence[Usage]) -> Usage | None:
    """What several answers used together; a number that one of them does not report is unknown for all."""
    if not usages:
        return None
    costs = [usage.cost for usage in usages]
    return Usage(
        input=_sum([usage.input for usage in usages]),
        output=_sum([usage.output for usage in usages]),
        cache_read=_sum([usage.cache_read for usage in usages]),
        cache_write=_sum([usage.cache_write for usage in usages]),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(value or 0 for value in values)


def _calls(entry: Entry) -> Iterator[ToolCall]:
    return (part for part in entry.parts if isinstance(part, ToolCall))
