"""What an answer cost, by the provider's numbers and the prices that come with genai-prices; never fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hitherto.model import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


def usage_of(response: ModelResponse) -> Usage:
    """Tokens and money; None for what the provider does not report."""
    usage = response.usage
    if usage.unmeasured_requests or not (usage.input_tokens or usage.output_tokens):
        return Usage()
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        cost=_cost(response),
    )


def _cost(response: ModelResponse) -> float | None:
    from genai_prices import calc_price

    if response.usage.cost is not None:
        return float(response.usage.cost)
    try:
        price = calc_price(
            response.usage,
            response.model_name or "",
            provider_id=response.provider_name,
            genai_request_timestamp=response.timestamp,
        )
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
