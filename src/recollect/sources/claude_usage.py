"""What the answers of a model used. Pure."""

from __future__ import annotations

from collections.abc import Callable

from recollect.limits import ENTRY_SUM
from recollect.model import Usage
from recollect.sources.claude_records import Tokens


def usage_of(tokens: Tokens | None) -> Usage | None:
    """The usage that a block tells; its input counts what was cached."""
    if tokens is None:
        return None
    parts = (tokens.input_tokens, tokens.cache_read_input_tokens, tokens.cache_creation_input_tokens)
    known = [part for part in parts if part is not None]
    return Usage(
        input=sum(known) if known else None,
        output=tokens.output_tokens,
        cache_read=tokens.cache_read_input_tokens,
        cache_write=tokens.cache_creation_input_tokens,
    )


def tokens_of(usage: Usage | None) -> int | None:
    """What the answer adds to the conversation."""
    output = usage.output if usage else None
    return output if output is not None and 0 <= output <= ENTRY_SUM else None


def latest(one: Usage | None, other: Usage | None) -> Usage | None:
    """The later of two states of one answer's usage: it only grows, and each block repeats it."""
    return _joined(one, other, max)


def total(one: Usage | None, other: Usage | None) -> Usage | None:
    """The usage of two answers."""
    return _joined(one, other, lambda a, b: a + b)


def _joined(one: Usage | None, other: Usage | None, join: Callable[[int, int], int]) -> Usage | None:
    if one is None or other is None:
        return one or other

    def both(a: int | None, b: int | None) -> int | None:
        return join(a, b) if a is not None and b is not None else (b if a is None else a)

    return Usage(
        input=both(one.input, other.input),
        output=both(one.output, other.output),
        cache_read=both(one.cache_read, other.cache_read),
        cache_write=both(one.cache_write, other.cache_write),
    )
