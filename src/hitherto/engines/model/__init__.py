"""Turns by a model, with tools of this machine and of MCP servers.

What talks to models takes seconds to import. It is imported when the first turn runs, in a thread.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hitherto.engine import Choices, Conversation, Event, Notebook, ServerPrompt, Setup, Turn
from hitherto.engines.model.instructions import system_prompt
from hitherto.engines.model.summary import (
    FACT_TOKENS,
    parse_summary,
    parse_title,
    summary_instructions,
    summary_request,
    title_request,
)
from hitherto.engines.model_names import full_name
from hitherto.errors import (
    ContextTooLong,
    EngineError,
    InvalidInput,
    ModelMissing,
    ModelUnreachable,
    install_advice,
)
from hitherto.model import Entry, Part
from hitherto.summaries.builtin import room_for
from hitherto.summariser import CompactionPolicy, Summariser, Summary
from hitherto.values.token_count import estimate
from hitherto.values.usage.prices import window_of

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from hitherto.engines.mcp import McpServers
    from hitherto.engines.tool_calls import Tool

Pause = Callable[[float], Awaitable[None]]
SUMMARY_SECONDS = 120.0
"""A summary that takes longer is not waited for: the built-in summariser does it."""


class ModelEngine:
    """Answers with the model that a turn chooses, else with `default_model`; keys and addresses come from the
    environment. `pause` waits between two tries of a request. `windows` says of models how many tokens they see, with
    or without the provider in front; of others it is what is known of them."""

    def __init__(
        self,
        default_model: str | None = None,
        *,
        pause: Pause = asyncio.sleep,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self._default = default_model
        self._pause = pause
        self._windows = windows or {}

    def warm_up(self) -> None:
        """Import what a turn by the default model needs; without one there is nothing to do. A model that cannot be reached
        says so when it is asked."""
        if self._default is not None:
            with suppress(EngineError):
                _connect_heavy(full_name(self._default, os.environ))

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:
        """A conversation; its MCP servers start meanwhile, and end with the block."""
        async with AsyncExitStack() as stack:
            servers = await stack.enter_async_context(_servers(setup)) if setup.mcp_servers else None
            yield _ModelConversation(self._default, self._pause, self._windows, setup, servers, stack)


class _ModelConversation:
    def __init__(
        self,
        default: str | None,
        pause: Pause,
        windows: Mapping[str, int],
        setup: Setup,
        servers: McpServers | None,
        stack: AsyncExitStack,
    ) -> None:
        self._default, self._pause, self._setup, self._servers = default, pause, setup, servers
        self._windows, self._stack = windows, stack
        self._models: dict[str, Model] = {}

    async def run(self, turn: Turn) -> AsyncIterator[Event]:
        name = self._name(turn.choices)
        model, tools, servers = await self._model(name), await self._tools(turn.notebook), self._servers
        from hitherto.engines.model.loop import run_turn
        from hitherto.engines.model.settings import for_turn

        described = () if servers is None else await servers.instructions()
        instructions = system_prompt(turn.choices, self._setup.roots, described)
        model_call = for_turn(model, turn.choices, instructions, tools.values(), self._pause)
        with nullcontext() if servers is None else servers.answered_by(turn.elicit):
            async with aclosing(run_turn(turn, model_call, tools, self._window(name))) as events:
                async for event in events:
                    yield event

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:
        if (request := title_request(history)) is None:
            return None
        try:
            model = await self._model(self._name(choices))
            from hitherto.engines.model.request import request_once, text_of
            from hitherto.engines.model.settings import for_title

            return parse_title(text_of(await request_once(for_title(model, choices), request)))
        except EngineError:
            return None  # the title from the prompt stays

    async def window(self, choices: Choices) -> int | None:
        name = self._name(choices)
        await self._model(name)  # what cannot be connected to will answer nothing
        return await asyncio.to_thread(self._window, name)

    async def started(self) -> None:
        if self._servers is not None:
            await self._servers.tools()

    async def prompts(self) -> tuple[ServerPrompt, ...]:
        return () if self._servers is None else await self._servers.prompts()

    async def expand(self, name: str, arguments: dict[str, str]) -> tuple[Part, ...]:
        if self._servers is None:
            raise InvalidInput(f"no MCP server offers the prompt {name!r:.100}")
        return await self._servers.expand(name, arguments)

    def summariser(self, choices: Choices) -> Summariser | None:
        return _Summariser(self, choices) if choices.model or self._default else None

    async def summary(self, retired: Sequence[Entry], policy: CompactionPolicy, choices: Choices) -> Summary:
        """What the model makes of these entries, asked once and without tools. Raises an `EngineError`."""
        name, room = self._name(choices), room_for(retired, policy)
        model, request = await self._model(name), await asyncio.to_thread(summary_request, retired)
        from hitherto.engines.model.price import usage_of
        from hitherto.engines.model.request import request_once, text_of
        from hitherto.engines.model.settings import for_summary

        instructions, tokens = summary_instructions(room, policy.facts), room + FACT_TOKENS
        window = await asyncio.to_thread(self._window, name)
        if window is not None and estimate(instructions) + estimate(request) + tokens > window:
            raise ContextTooLong(f"the messages to summarise do not fit the window of {name}")
        response = await request_once(for_summary(model, choices, instructions, tokens), request)
        if response.finish_reason in ("length", "content_filter"):
            raise EngineError(f"{name} did not finish its summary: {response.finish_reason}")
        return replace(parse_summary(text_of(response), retired, room), model=name, usage=usage_of(response))

    def _window(self, name: str) -> int | None:
        """How many tokens the model of this full name sees: what was set, else what is known."""
        provider, _, model = name.partition(":")
        named = (name, f"{provider.partition('-')[0]}:{model}", model)
        return next((self._windows[each] for each in named if each in self._windows), None) or window_of(name)

    def _name(self, choices: Choices) -> str:
        return full_name(choices.model or self._default, os.environ)

    async def _model(self, name: str) -> Model:
        """The model of this name; its connections are closed with the conversation."""
        if name not in self._models:
            model = await asyncio.to_thread(_connect_heavy, name)
            self._models[name] = await self._stack.enter_async_context(model)
        return self._models[name]

    async def _tools(self, notebook: Notebook | None) -> dict[str, Tool]:
        """All tools by their names; one of a server cannot take the place of our own.

        Whoever is not on this machine names its folders freely, so nothing of its files is offered to them, but what their
        own machine offers.
        """
        from hitherto.engines.tools.memory import memory_tools
        from hitherto.engines.tools.toolset import client_tools, local_tools

        theirs = await self._servers.tools() if self._servers is not None else ()
        ours = local_tools if self._setup.local else client_tools
        own = (*ours(self._setup.roots, self._setup.host), *memory_tools(notebook))
        return {tool.name: tool for tool in (*theirs, *own)}


class _Summariser:
    """The model of a conversation, as what makes its context smaller."""

    def __init__(self, conversation: _ModelConversation, choices: Choices) -> None:
        self._conversation, self._choices = conversation, choices

    async def summarise(
        self,
        retired: Sequence[Entry],
        kept: Sequence[Entry],  # noqa: ARG002 - its turn will come
        policy: CompactionPolicy,
    ) -> Summary:
        try:
            async with asyncio.timeout(SUMMARY_SECONDS):
                return await self._conversation.summary(retired, policy, self._choices)
        except TimeoutError as error:
            raise ModelUnreachable(f"the model returned no summary within {SUMMARY_SECONDS:.0f} s") from error


def _servers(setup: Setup) -> McpServers:
    from hitherto.engines.mcp import McpServers

    cwd = setup.roots[0] if setup.roots else None
    return McpServers(
        setup.mcp_servers,
        cwd=cwd,
        local=setup.local,
        report=setup.report,
        roots=setup.roots if setup.local else (),
        elicits=setup.elicits,
    )


def _connect_heavy(name: str) -> Model:
    """The heavy part, for a thread: whatever a turn needs is imported when this returns."""
    with _without_gc():
        try:
            import genai_prices  # noqa: F401 - so that nothing is left to import

            from hitherto.engines.model import loop, settings  # noqa: F401
            from hitherto.engines.model.connect import connect
        except ModuleNotFoundError as error:
            raise ModelMissing(install_advice("running a model", "models")) from error
        return connect(name)


@contextmanager
def _without_gc() -> Iterator[None]:
    """An import makes thousands of classes of which none goes; to look for garbage among them took a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
