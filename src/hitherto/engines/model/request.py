"""One request to a model: what it says as it says it, tried again where that may help."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec
from pydantic_ai import direct
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from hitherto.engine import Delta, Notice
from hitherto.engines.model.errors import FAILED, Failed, engine_error, is_transient, summary, wanted_pause
from hitherto.errors import ModelUnreachable

Pause = Callable[[float], Awaitable[None]]

TRIES = 4
LONGEST_PAUSE = 60.0
"""A provider that wants a longer one is not waited for."""
NO_FINISH_REASON = frozenset({"snowflake", "xai"})
"""Providers of which one does not hear why an answer has ended."""


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to ask, and how."""

    model: Model
    settings: ModelSettings
    parameters: ModelRequestParameters
    pause: Pause = asyncio.sleep


async def stream_request(
    model_call: ModelCall, messages: Sequence[ModelMessage]
) -> AsyncGenerator[Delta | Notice | ModelResponse, None]:
    """The answer's deltas, then the whole of it. A request that failed before anything came is tried again, with a
    notice each time; any other failure is an `EngineError`."""
    name = model_call.model.model_name
    for attempt in range(TRIES):
        begun = False
        try:
            async with direct.model_request_stream(
                model_call.model,
                messages,
                model_settings=model_call.settings,
                model_request_parameters=model_call.parameters,
            ) as stream:
                async for event in stream:
                    begun = True
                    if (delta := _delta(event)) is not None:
                        yield delta
            yield _require_complete(stream.get(), name)
            return
        except FAILED as error:
            seconds = None if begun else _pause(error, attempt)
            if seconds is None:
                raise engine_error(error, name) from error
            yield Notice(text=_retry_text(error, name, seconds), severity="warning")
            await model_call.pause(seconds)


async def request_once(model_call: ModelCall, prompt: str) -> ModelResponse:
    """The answer to a single prompt, without another try."""
    try:
        return await direct.model_request(
            model_call.model,
            [ModelRequest(parts=[UserPromptPart(content=prompt)])],
            model_settings=model_call.settings,
            model_request_parameters=model_call.parameters,
        )
    except FAILED as error:
        raise engine_error(error, model_call.model.model_name) from error


def text_of(response: ModelResponse) -> str:
    """What the answer says, without thoughts."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _require_complete(response: ModelResponse, name: str) -> ModelResponse:
    """The answer, if it is complete: some connections end in the middle of an answer as if it were.

    The model layer takes an answer for finished that does not say so. Only what the provider itself has said counts.
    """
    finished = (response.provider_details or {}).get(
        "finish_reason"
    ) or response.finish_reason == "content_filter"
    if response.state == "incomplete" or not (finished or response.provider_name in NO_FINISH_REASON):
        raise ModelUnreachable(f"the answer of {name} broke off")
    return response


def _delta(event: ModelResponseStreamEvent) -> Delta | None:
    match event:
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            return Delta(text=text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
            return Delta(text=text, thought=True)
        case PartStartEvent(part=TextPart(content=text)) if text:
            return Delta(text=text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            return Delta(text=text, thought=True)
    return None


def _pause(error: Failed, attempt: int) -> float | None:
    """How long to wait before trying again; None if there is no point in it."""
    if attempt + 1 == TRIES or not is_transient(error):
        return None
    wanted = wanted_pause(error)
    if wanted is not None:
        return wanted if wanted <= LONGEST_PAUSE else None
    return 2.0**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients, hides nothing


def _retry_text(error: Failed, model: str, seconds: float) -> str:
    return f"{model}: {summary(error)}; trying again in {seconds:.1f} s"
