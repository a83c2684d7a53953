"""What a client does for the agent: decide about tools, read and write files, run commands. Without a function for it, a
method is not offered, and answered as unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from hitherto.acp.client.updates import Hear, Inbox
from hitherto.acp.client.values import Update, text
from hitherto.errors import InvalidInput
from hitherto.model import Json
from hitherto.rpc.peer import Method


class _Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    session_id: str


class Question(_Params, frozen=True, kw_only=True):
    """May this be done? Each of `options` has an `optionId`, a `name` and a `kind`."""

    tool_call: Json
    options: tuple[Json, ...]


class ReadFile(_Params, frozen=True, kw_only=True):
    """The text of a file as the client has it, unsaved changes included; from a line (1 is the first), so many."""

    path: str
    line: int | None = None
    limit: int | None = None


class WriteFile(_Params, frozen=True, kw_only=True):
    path: str
    content: str


class Variable(msgspec.Struct, frozen=True):
    name: str
    value: str


class Command(_Params, frozen=True, kw_only=True):
    """A command to run; of its output at least the last `output_byte_limit` bytes are to be kept."""

    command: str
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    cwd: str | None = None
    output_byte_limit: int | None = None


class _Terminal(_Params, frozen=True, kw_only=True):
    terminal_id: str


class Exit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How a command ended."""

    exit_code: int | None = None
    signal: str | None = None


class Output(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a command has said so far; without an `exit_status` it still runs."""

    output: str
    truncated: bool = False
    exit_status: Exit | None = None


class Terminals(Protocol):
    """Commands in terminals of the client. An id that is not known is an `InvalidInput`."""

    async def create(self, command: Command) -> str:
        """Start it; returns the id of its terminal."""

    async def output(self, terminal_id: str) -> Output:
        """What it has said so far."""

    async def wait(self, terminal_id: str) -> Exit:
        """Its end."""

    async def kill(self, terminal_id: str) -> None:
        """End it; what it has said can still be read."""

    async def release(self, terminal_id: str) -> None:
        """End it and forget it."""


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a client does for an agent; None is not offered.

    `permit` returns the `optionId` that the user has chosen, None for no answer; without it nothing is allowed.
    `update` hears every update of every session, `notified` what comes under other names, such as `_acme/changed`.
    """

    permit: Callable[[Question], Awaitable[str | None]] | None = None
    read_file: Callable[[ReadFile], Awaitable[str]] | None = None
    write_file: Callable[[WriteFile], Awaitable[None]] | None = None
    terminals: Terminals | None = None
    update: Hear = lambda _: None
    notified: Mapping[str, Callable[[Json], None]] = {}


def client_capabilities(abilities: Abilities) -> Json:
    """The client capabilities for `initialize`. All kinds of updates are accepted."""
    return {
        "fs": {
            "readTextFile": abilities.read_file is not None,
            "writeTextFile": abilities.write_file is not None,
        },
        "terminal": abilities.terminals is not None,
        "session": {"configOptions": {"boolean": {}}, "compaction": {}, "notices": {}},
    }


class _UpdateParams(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    update: Json


class ClientCallbacks:
    """Handles the requests and notifications of the agent."""

    def __init__(self, abilities: Abilities, inbox: Inbox) -> None:
        self.abilities, self._inbox = abilities, inbox
        self._asking: dict[str, set[asyncio.Future[str | None]]] = {}

    async def update(self, params: _UpdateParams) -> None:
        # Nothing is awaited here: updates are handed over in the order in which they came.
        kind = text(params.update.get("sessionUpdate")) or ""
        self._inbox.take(Update(session_id=params.session_id, kind=kind, fields=params.update))

    async def permission(self, question: Question) -> Json:
        chosen = await self._ask_user(question)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        if chosen not in [option.get("optionId") for option in question.options]:
            raise InvalidInput(f"{chosen!r:.100} is not one of the options")
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def withdraw(self, session_id: str) -> None:
        """Cancel the open permission requests of a session whose turn is cancelled."""
        for asking in self._asking.get(session_id, ()):
            asking.cancel()

    async def _ask_user(self, question: Question) -> str | None:
        if self.abilities.permit is None:
            return None
        asking = asyncio.ensure_future(self.abilities.permit(question))
        same = self._asking.setdefault(question.session_id, set())
        same.add(asking)
        try:
            await asyncio.wait([asking])
            return None if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            same.discard(asking)
            if not same:
                self._asking.pop(question.session_id, None)


def requests(abilities: Abilities) -> dict[str, Method[ClientCallbacks]]:
    """What the agent may ask for."""
    served: dict[str, Method[ClientCallbacks]] = {
        "session/request_permission": Method(ClientCallbacks.permission, Question, waits=True)
    }
    if (read := abilities.read_file) is not None:
        served["fs/read_text_file"] = _method(ReadFile, read, lambda found: {"content": found})
    if (write := abilities.write_file) is not None:
        served["fs/write_text_file"] = _method(WriteFile, write, _nothing)
    return served if abilities.terminals is None else served | _terminal_methods(abilities.terminals)


def notifications(abilities: Abilities) -> dict[str, Method[ClientCallbacks]]:
    """The notifications that an agent may send."""
    heard: dict[str, Method[ClientCallbacks]] = {
        "session/update": Method(ClientCallbacks.update, _UpdateParams)
    }
    return heard | {name: _notification(hear) for name, hear in abilities.notified.items()}


def _terminal_methods(terminals: Terminals) -> dict[str, Method[ClientCallbacks]]:
    def of(work: Callable[[str], Awaitable[Any]], answer: Callable[[Any], Any]) -> Method[ClientCallbacks]:
        return _method(_Terminal, lambda asked: work(asked.terminal_id), answer, waits=True)

    return {
        "terminal/create": _method(Command, terminals.create, lambda made: {"terminalId": made}, waits=True),
        "terminal/output": of(terminals.output, _as_it_is),
        "terminal/wait_for_exit": of(terminals.wait, _as_it_is),
        "terminal/kill": of(terminals.kill, _nothing),
        "terminal/release": of(terminals.release, _nothing),
    }


def _method(
    params: type[Any],
    work: Callable[[Any], Awaitable[Any]],
    answer: Callable[[Any], Any],
    *,
    waits: bool = False,
) -> Method[ClientCallbacks]:
    async def handle(_: ClientCallbacks, asked: Any) -> Any:
        return answer(await work(asked))

    return Method(handle, params, waits=waits)


def _notification(hear: Callable[[Json], None]) -> Method[ClientCallbacks]:
    async def handle(_: ClientCallbacks, params: Json) -> None:
        hear(params)

    return Method(handle, dict)


def _as_it_is(value: Any) -> Any:
    return value


def _nothing(_: None) -> Json:
    return {}
