"""What sessions used, in words: estimates are marked, and what is not known is said."""

from __future__ import annotations

from msgspec.structs import replace

from hitherto.presentation import usage
from hitherto.values.usage.requests import UsageSum
from hitherto.values.usage.sessions import SessionUsage

USED = SessionUsage(
    usage=UsageSum(),
    messages=26,
    context_messages=7,
    context_tokens=199_600,
    context_estimated=False,
    window=200_000,
    window_assumed=False,
    model=None,
    duration_ms=0,
    tool_failures=0,
    failed=False,
    tokens=None,
)


def test_the_context_says_what_is_estimated_and_what_is_assumed() -> None:
    assert usage.context(USED) == "200k of 200k tokens (99%)"
    about = replace(USED, context_tokens=640, context_estimated=True, window=128_000, window_assumed=True)
    assert (usage.context(about), usage.short_context(about)) == ("≈640 of ≈128k tokens (0%)", "≈640/128k")
    assert usage.messages(USED) == "26 in the conversation, 7 in the context"


def test_a_cost_says_how_much_of_it_is_known() -> None:
    assert usage.cost(UsageSum()) == usage.tokens(UsageSum()) == ""
    assert usage.cost(UsageSum(requests=2, reported=0.25)) == "$0.25"
    assert usage.cost(UsageSum(requests=2, estimated=0.0045)) == "≈$0.0045"
    mixed = UsageSum(requests=4, reported=0.2, estimated=1.03, unpriced=2)
    assert usage.cost(mixed) == "≈$1.23+ ($0.20 reported, $1.03 estimated, 2 requests without a known price)"
    assert usage.cost(UsageSum(requests=1, unpriced=1)) == "? (1 request without a known price)"


def test_tokens_say_what_came_from_the_cache() -> None:
    used = UsageSum(requests=1, input=1_200_000, output=19_000, cache_read=1_100_000, cache_write=30_000)
    assert usage.tokens(used) == "1.2M in (1.1M cached, 30k written to the cache), 19k out"
    assert usage.tokens(UsageSum(requests=1, input=10, output=5)) == "10 in, 5 out"
