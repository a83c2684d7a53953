"""What sessions and turns used, in words for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hitherto.presentation import formats
from hitherto.values.usage.requests import UsageSum
from hitherto.values.usage.sessions import SessionUsage, TurnUsage


def context(used: SessionUsage) -> str:
    """How much of the window is taken: `199k of 200k tokens (99%)`, with `≈` before what is estimated or assumed."""
    taken, room = formats.count(used.context_tokens), formats.count(used.window)
    share = f"{used.context_tokens * 100 // used.window}%"
    about = "≈" if used.context_estimated else ""
    return f"{about}{taken} of {'≈' if used.window_assumed else ''}{room} tokens ({share})"


def short_context(used: SessionUsage) -> str:
    """The same in a column: `199k/200k`."""
    about = "≈" if used.context_estimated else ""
    return f"{about}{formats.count(used.context_tokens)}/{formats.count(used.window)}"


def messages(used: SessionUsage) -> str:
    """`26 in the conversation, 7 in the context`."""
    return f"{used.messages} in the conversation, {used.context_messages} in the context"


def tokens(used: UsageSum) -> str:
    """`1.2M in (1.1M cached, 30k written to the cache), 19k out`; nothing if no answer says how many."""
    if not used.requests:
        return ""
    beside = [
        f"{formats.count(number)} {what}"
        for number, what in ((used.cache_read, "cached"), (used.cache_write, "written to the cache"))
        if number
    ]
    cache = f" ({', '.join(beside)})" if beside else ""
    return f"{formats.count(used.input)} in{cache}, {formats.count(used.output)} out"


def cost(used: UsageSum) -> str:
    """`≈$1.23 ($0.20 reported, $1.03 estimated, 2 requests without a known price)`; nothing if there was no request."""
    if not used.requests:
        return ""
    parts = list(_parts_of_cost(used))
    told = f" ({', '.join(parts)})" if len(parts) > 1 or used.unpriced else ""
    return f"{formats.about_cost(used, formats.exact_cost)}{told}"


def _parts_of_cost(used: UsageSum) -> Iterator[str]:
    if used.reported:
        yield f"{formats.exact_cost(used.reported)} reported"
    if used.estimated:
        yield f"{formats.exact_cost(used.estimated)} estimated"
    if used.unpriced:
        yield f"{formats.counted(used.unpriced, 'request')} without a known price"


def turn(used: TurnUsage) -> str:
    """`12 messages · 1 tool failure · 41 s · 12k in (10k cached), 1.2k out · ≈$0.32`."""
    parts = (
        formats.counted(used.messages, "message"),
        "failed" if used.failed else "",
        formats.counted(used.tool_failures, "tool failure") if used.tool_failures else "",
        formats.duration(used.duration_ms) if used.duration_ms else "",
        tokens(used.usage),
        formats.about_cost(used.usage) if used.usage.requests else "",
    )
    return " · ".join(filter(None, parts))
