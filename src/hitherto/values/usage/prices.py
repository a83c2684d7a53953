"""What a request to a model costs, and how much a model sees: by the prices that come with genai-prices; never fetched.

The package takes a moment to import, which is done when the first price is asked for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from hitherto.model import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

MICROS = 1_000_000
DAY_SECONDS = 86_400
ASSUMED_WINDOW = 128_000
"""The window of a model of which nobody says how much it sees."""
_PROBE = 1_000_000

# What genai-prices does not say: how much the models of these names see.
_WINDOWS = (
    (re.compile(r"gemini-"), 1_048_576),
    (re.compile(r"claude-"), 200_000),
)
# How agents call providers whose prices go by another name.
_PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "openai-codex": "openai",
    "google-gemini-cli": "google",
    "google-antigravity": "google",
    "gemini": "google",
    "gemini-oauth": "google",
    "claude-acp": "anthropic",
    "claude-code": "anthropic",
    "github-copilot": "",
    "opencode": "",
}


class _Rates(NamedTuple):
    """Millionths of a dollar for a million tokens: read anew, read from the cache, written to it, and answered."""

    plain: float
    cache_read: float
    cache_write: float
    output: float


def window_of(name: str) -> int | None:
    """How many tokens the model of this name sees, which may have its provider before it; None if that is not known."""
    found = _model(name)
    if found is not None and found[1].context_window is not None:
        return found[1].context_window
    plain = name.rpartition(":")[2].rpartition("/")[2]
    return next((window for begins, window in _WINDOWS if begins.match(plain)), None)


def listed_name(name: str) -> str:
    """The name of a model behind that of its provider, as public lists of models have it; as it is if it is not known."""
    found = _model(name)
    plain = name.rpartition(":")[2]
    return plain if found is None else f"{found[0].id}/{plain.rpartition('/')[2]}"


def estimate(model: str | None, used: Usage, at: int) -> int | None:
    """About what one request has cost, in millionths of a dollar, at the prices of its day (`at` is in ms).

    None if the price of the model or the tokens are not known. `used.input` includes what came from the cache.
    """
    if not model or used.input is None or used.output is None:
        return None
    try:
        rates = _rates(model, at // 1000 // DAY_SECONDS)
        return None if rates is None else _charge(rates, used)
    except (ArithmeticError, LookupError, ValueError):
        return None


def _charge(rates: _Rates | ModelPrice, used: Usage) -> int:
    if not isinstance(rates, _Rates):
        return _calculate(rates, used)
    read, written = used.cache_read or 0, used.cache_write or 0
    plain = max((used.input or 0) - read - written, 0)
    cost = plain * rates.plain + read * rates.cache_read + written * rates.cache_write
    return round((cost + (used.output or 0) * rates.output) / _PROBE)


@lru_cache(maxsize=4_096)
def _rates(model: str, day: int) -> _Rates | ModelPrice | None:
    """The rates of a day; the price itself if it depends on how long a request is; None if there is none."""
    found = _model(model)
    if found is None:
        return None
    from genai_prices.types import TieredPrices

    price = found[1].get_prices(datetime.fromtimestamp(max(day, 0) * DAY_SECONDS, UTC))
    if any(isinstance(each, TieredPrices) for each in vars(price).values()):
        return price
    return _Rates(
        plain=_calculate(price, Usage(input=_PROBE, output=0)),
        cache_read=_calculate(price, Usage(input=_PROBE, output=0, cache_read=_PROBE)),
        cache_write=_calculate(price, Usage(input=_PROBE, output=0, cache_write=_PROBE)),
        output=_calculate(price, Usage(input=0, output=_PROBE)),
    )


def _calculate(price: ModelPrice, used: Usage) -> int:
    from genai_prices import Usage as Measured

    measured = Measured(
        input_tokens=used.input,
        output_tokens=used.output,
        cache_read_tokens=used.cache_read or 0,
        cache_write_tokens=used.cache_write or 0,
    )
    return round(price.calc_price(measured)["total_price"] * MICROS)


@lru_cache(maxsize=1_024)
def _model(name: str) -> tuple[Provider, ModelInfo] | None:
    """The model of this name, by its provider if that is named and known, else by the name alone."""
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.rpartition(":") if name.count(":") == 1 else name.partition(":")
    if not model:
        provider, model = "", name
    provider = provider.removeprefix("gateway/")
    for tried in dict.fromkeys((_PROVIDERS.get(provider, provider) or None, None)):
        for reference in dict.fromkeys((model, model.rpartition("/")[2])):
            try:
                return get_snapshot().find_provider_model(reference, None, tried, None)
            except LookupError:
                continue
    return None
