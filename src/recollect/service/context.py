"""What a model is shown of a session: no tool call without a result, and no more than fits its window. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recollect.model import Draft, Entry, Text, ToolCall, ToolResult, Usage, encode, plain_text
from recollect.titles import clean_title

INTERRUPTED = "interrupted: the tool was started and its end was never seen"
CANCELLED = "cancelled by the user before it ended"

FULL = 0.8
"""Beyond this share of the window the context is made smaller before the next turn."""
KEPT = 0.25
"""At most this share of the window is kept word for word."""
BYTES_PER_TOKEN = 4
PROMPTS_NAMED = 50
PROMPT_CHARS = 200
ANSWER_CHARS = 2_000


def unanswered(history: Sequence[Entry]) -> list[ToolCall]:
    """The tool calls at the end of a history that have no result yet, in order."""
    answered: set[str] = set()
    for entry in reversed(history):
        if entry.role == "assistant":
            return [call for call in _calls(entry) if call.id not in answered]
        if entry.role != "tool":
            return []
        answered.update(part.id for part in entry.parts if isinstance(part, ToolResult))
    return []


def failed(calls: Iterable[ToolCall], why: str) -> list[Draft]:
    """A result for each call that says why there is none."""
    results = (ToolResult(id=call.id, content=(Text(text=why),), is_error=True) for call in calls)
    return [Draft(role="tool", parts=(result,), meta={"partial": why}) for result in results]


def tokens_used(history: Sequence[Entry]) -> int | None:
    """How much of the window the history took when the model last answered; None if no answer says."""
    for entry in reversed(history):
        if entry.meta.get("compaction"):
            return None
        if entry.role == "assistant" and entry.usage and entry.usage.input is not None:
            return entry.usage.input + (entry.usage.output or 0)
    return None


def kept_tail(history: Sequence[Entry], window: int | None) -> int:
    """How many entries at the end to keep word for word: from a prompt on, as many as fit, at least the last prompt's.

    Never all of them; 0 if no prompt but the first is there: then there is nothing to leave out.
    """
    budget = (window or 0) * KEPT * BYTES_PER_TOKEN
    size, kept = 0, 0
    for count, entry in enumerate(reversed(history[1:]), 1):
        size += len(encode(entry))
        if kept and size > budget:
            break
        if entry.role == "user":
            kept = count
    return kept


def summary_of(retired: Sequence[Entry]) -> Draft:
    """A plain summary without a model: what was asked for, what was summarised before, and the last answer."""
    earlier = [plain_text(entry) for entry in retired if entry.meta.get("compaction")]
    prompts = [
        clean_title(plain_text(entry)[: 2 * PROMPT_CHARS]) for entry in retired if entry.role == "user"
    ]
    answers = [text for entry in retired if entry.role == "assistant" and (text := plain_text(entry))]
    lines = [*earlier, f"{len(retired)} earlier messages were left out here. The user asked, in this order:"]
    lines += [f"- {prompt[:PROMPT_CHARS]}" for prompt in prompts[-PROMPTS_NAMED:] if prompt]
    if answers:
        lines += ["The last answer before this point was:", answers[-1][:ANSWER_CHARS]]
    return Draft(role="system", parts=(Text(text="\n".join(lines)),))


def summed(usages: Sequence[Usage]) -> Usage | None:
    """What several answers used together; what one of them does not tell is unknown of all."""
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
