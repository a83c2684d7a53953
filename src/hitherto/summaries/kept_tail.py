"""Which end of a context stays word for word when the rest is summarised. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from hitherto.model import Entry, ToolCall, ToolResult
from hitherto.summariser import CompactionPolicy
from hitherto.values.token_count import tokens_of


def kept_from(entries: Sequence[Entry], policy: CompactionPolicy) -> int:
    """The position from which entries are kept; 0 if nothing can be left out.

    As much is kept as the policy allows, at least the last exchange: the last prompt and all that followed. What is
    kept begins with a prompt and never with the result of a tool whose call is left out.
    """
    starts = _starts(entries)
    if not starts:
        return 0
    counts = [tokens_of(entry).number for entry in entries]
    budget = min(policy.kept_tokens, policy.kept_share * sum(counts))
    behind = [*accumulate(reversed(counts), initial=0)][::-1]
    return next((start for start in starts if behind[start] <= budget), starts[-1])


def _starts(entries: Sequence[Entry]) -> list[int]:
    """Where the kept end may begin, in order: at prompts; anywhere if nobody ever asked for anything."""
    whole = _unsplit(entries)
    return [at for at in whole if is_prompt(entries[at])] if any(map(is_prompt, entries)) else whole


def _unsplit(entries: Sequence[Entry]) -> list[int]:
    """The positions, but the first, where a cut leaves each call of a tool on one side with its result."""
    called: dict[str, int] = {}
    ended: dict[str, int] = {}
    crossed = [0] * (len(entries) + 1)
    for at, entry in enumerate(entries):
        for part in entry.parts:
            if isinstance(part, ToolCall):
                called[part.id] = at
                ended.pop(part.id, None)
            elif isinstance(part, ToolResult) and part.id in called:
                ended[part.id] = at
                crossed[called[part.id] + 1] += 1
                crossed[at + 1] -= 1
    spoke = max((at for at, entry in enumerate(entries) if entry.role == "assistant"), default=-1)
    if any(at == spoke for id_, at in called.items() if id_ not in ended):
        crossed[spoke + 1] += 1  # that tool may still be running
    return [at for at, open_calls in enumerate(accumulate(crossed[:-1])) if at and not open_calls]


def is_prompt(entry: Entry) -> bool:
    """Whether somebody says something here, other than what a tool came to."""
    return entry.role == "user" and any(not isinstance(part, ToolResult) for part in entry.parts)
