"""A caller's choices in the words of the model layer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings, ThinkingLevel
from pydantic_ai.tools import ToolDefinition

from hitherto.engine import Choices
from hitherto.engines.model.request import ModelCall, Pause
from hitherto.engines.tool_calls import Tool
from hitherto.errors import InvalidInput
from hitherto.model import Json

THINKING: dict[str, ThinkingLevel] = {
    "off": False, "on": True, "minimal": "minimal", "low": "low", "medium": "medium", "high": "high",
    "xhigh": "xhigh", "max": "max",
}  # fmt: skip
"""How much a model may think, by what a caller says; it does what comes nearest."""
TRACE_HEADERS = ("traceparent", "tracestate", "baggage")
TITLE_TOKENS = 1_000
"""Enough for a title by a model that cannot but think first."""


def for_turn(
    model: Model, choices: Choices, instructions: str, tools: Iterable[Tool], pause: Pause = asyncio.sleep
) -> ModelCall:
    """How a model is asked in a turn. Raises `InvalidInput` for a choice that there is not."""
    settings = _settings(choices)
    if choices.thinking is not None:
        if choices.thinking not in THINKING:
            raise InvalidInput(f"thinking must be one of {', '.join(THINKING)}, not {choices.thinking!r}")
        settings["thinking"] = THINKING[choices.thinking]
    settings["cache"] = True
    parameters = ModelRequestParameters(
        function_tools=[_definition(tool) for tool in tools],
        instruction_parts=[InstructionPart(content=instructions)] if instructions else [],
    )
    return ModelCall(model=model, settings=_known(settings, model), parameters=parameters, pause=pause)


def for_title(model: Model, choices: Choices) -> ModelCall:
    """How a model is asked for a title: briefly."""
    settings = _settings(choices)
    settings |= {"thinking": False, "max_tokens": TITLE_TOKENS}
    return ModelCall(model=model, settings=_known(settings, model), parameters=ModelRequestParameters())


def for_summary(model: Model, choices: Choices, instructions: str, tokens: int) -> ModelCall:
    """How a model is asked for a summary: without tools, in at most so many tokens."""
    settings = _settings(choices)
    settings |= {"thinking": False, "max_tokens": tokens}
    parameters = ModelRequestParameters(instruction_parts=[InstructionPart(content=instructions)])
    return ModelCall(model=model, settings=_known(settings, model), parameters=parameters)


def _settings(choices: Choices) -> ModelSettings:
    settings: ModelSettings = {"max_retries": 0}  # each retry is reported to the client: see `requesting`
    if headers := _trace_headers(choices.trace):
        settings["extra_headers"] = headers
    return settings


def _known(settings: ModelSettings, model: Model) -> ModelSettings:
    for name in model.unsupported_settings:
        settings.pop(name, None)
    return settings


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters_json_schema=tool.schema, strict=False
    )


def _trace_headers(trace: Json) -> dict[str, str]:
    """The caller's trace context, as far as it is fit to be sent."""
    given = {name: trace.get(name) for name in TRACE_HEADERS}
    return {
        name: value
        for name, value in given.items()
        if isinstance(value, str) and value and value.isascii() and value.isprintable()
    }
