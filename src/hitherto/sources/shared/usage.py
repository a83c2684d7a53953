"""What the answers of a model used. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from hitherto.limits import ENTRY_SUM
from hitherto.model import Usage


def tokens_of(usage: Usage | None) -> int | None:
    """What the answer adds to the conversation."""
    output = usage.output if usage else None
    return output if output is not None and 0 <= output <= ENTRY_SUM else None


def latest(one: Usage | None, other: Usage | None) -> Usage | None:
    """The later of two states of one answer's usage: it only grows, and each block repeats it."""
    joined, known = _joined([one, other], max), one or other
    return joined if joined is None or known is None else replace(joined, request=known.request)


def total(usages: Iterable[Usage | None]) -> Usage | None:
    """The usage of several answers."""
    joined = _joined(usages, sum)
    return None if joined is None else replace(joined, request=None)


def _joined(usages: Iterable[Usage | None], join: Callable[[list[int]], int]) -> Usage | None:
    """Each number joined over the usages in which it is known."""
    known = [usage for usage in usages if usage is not None]
    if len(known) < 2:
        return known[0] if known else None

    def joined(numbers: Iterable[int | None]) -> int | None:
        known = [number for number in numbers if number is not None]
        return join(known) if known else None

    return Usage(
        input=joined(usage.input for usage in known),
        output=joined(usage.output for usage in known),
        cache_read=joined(usage.cache_read for usage in known),
        cache_write=joined(usage.cache_write for usage in known),
    )
