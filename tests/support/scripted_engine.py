"""Engines for tests: real implementations of the port that do as a test says, and ways to look at what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hitherto.engine import Choices, Conversation, Delta, Engine, Event, Message, Setup, Turn
from hitherto.model import Entry, Part, Principal, Text, ToolCall, ToolResult
from hitherto.permissions import Verdict
from hitherto.service import OpenSession, Sessions
from hitherto.summariser import Summariser
from hitherto.updates import Outcome, Said, Stored, Update
from tests.support.waits import within


class Scripted:
    """An engine that plays one script after the other; `turns` are those it was given."""

    def __init__(
        self,
        *scripts: Any,
        title: str | None = None,
        window: int | None = None,
        summariser: Summariser | None = None,
    ) -> None:
        self.scripts = list(scripts)
        self.summariser_choices: list[Choices] = []
        self.turns: list[Turn] = []
        self.setups: list[Setup] = []
        self._title, self._window, self._summariser = title, window, summariser
        self.open_now = 0

    @asynccontextmanager
    async def open(self, setup: Setup) -> AsyncIterator[Conversation]:
        self.setups.append(setup)
        self.open_now += 1
        try:
            yield self
        finally:
            self.open_now -= 1

    async def run(self, turn: Turn) -> AsyncIterator[Event]:
        self.turns.append(turn)
        script = self.scripts.pop(0) if self.scripts else says("Noted.")
        async for event in script(turn):
            yield event

    async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
        return self._title

    async def window(self, choices: Choices) -> int | None:  # noqa: ARG002
        return self._window

    def summariser(self, choices: Choices) -> Summariser | None:
        self.summariser_choices.append(choices)
        return self._summariser


def says(*pieces: str, **fields: Any) -> Any:
    """A script that says this, piece by piece, as one message."""

    async def script(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        for piece in pieces:
            yield Delta(text=piece)
        yield Message(parts=(Text(text="".join(pieces)),), **fields)

    return script


def call(name: str = "write_file", kind: str = "edit", id: str = "c1", **given: Any) -> ToolCall:
    return ToolCall(id=id, name=name, kind=kind, input=given)


def result(id: str = "c1", text: str = "done", *, is_error: bool = False) -> ToolResult:
    return ToolResult(id=id, content=(Text(text=text),), is_error=is_error)


class Watcher:
    """Notes every update; `until` waits for the first that fits."""

    def __init__(self) -> None:
        self.seen: list[Update] = []
        self._more = asyncio.Event()

    def __call__(self, update: Update) -> None:
        self.seen.append(update)
        self._more.set()

    @property
    def said(self) -> str:
        return "".join(update.text for update in self.seen if isinstance(update, Said))

    @property
    def stored(self) -> list[Entry]:
        return [update.entry for update in self.seen if isinstance(update, Stored)]

    async def until(self, kind: type[Update], count: int = 1) -> None:
        async with within(f"{count} updates of the kind {kind}"):
            while sum(isinstance(update, kind) for update in self.seen) < count:
                self._more.clear()
                await self._more.wait()


async def ask_once(
    sessions: Sessions, who: Principal, session_id: str, engine: Engine, text: str = "Go", **fields: Any
) -> Outcome:
    """Open the session, prompt it once, close it."""
    async with sessions.opened(who, session_id, engine, improve_titles=False) as opened:
        return await opened.prompt(prompt(text), **fields)


def prompt(text: str) -> Sequence[Part]:
    return (Text(text=text),)


async def in_background(opened: OpenSession, text: str = "Go", **fields: Any) -> asyncio.Task[Outcome]:
    """A prompt that runs beside the test."""
    return asyncio.create_task(opened.prompt(prompt(text), **fields))


class Permits:
    """An engine that asks about these calls, all at once, and notes the verdicts."""

    def __init__(self, *calls: ToolCall) -> None:
        self.calls, self.verdicts = calls, list[Verdict]()

    async def __call__(self, turn: Turn) -> AsyncIterator[Event]:
        self.verdicts += await asyncio.gather(*map(turn.permit, self.calls))
        yield Message(parts=(Text(text="ok"),))
