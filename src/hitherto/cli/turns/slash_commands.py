"""The slash commands of a chat: a table of functions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.cli.turns import prompt
from hitherto.cli.turns.conversation import Talk
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, ToolCall
from hitherto.permissions import MODES, decide
from hitherto.permissions import ruling as ruling_of
from hitherto.presentation import formats
from hitherto.service.catalog.metadata import folders_of
from hitherto.settings import read_settings

_COMMAND = re.compile(r"\s*/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


class Slash(NamedTuple):
    """A row of /help: the syntax, one line of help, and the function that gets the rest of the line."""

    form: str
    help: str
    do: Callable[[Talk, str], Awaitable[None]]


def command(text: str) -> Callable[[Talk], Awaitable[None]] | None:
    """The command of a line; None if the line is a prompt. A path is a prompt: `/etc/hosts looks wrong`."""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    name, rest = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        raise InvalidInput(f"unknown command /{name}; type /help for the commands")
    return lambda talk: COMMANDS[name].do(talk, rest)


async def _help(talk: Talk, _: str) -> None:
    for each in COMMANDS.values():
        talk.aside(f"{each.form:<13} {each.help}")


async def _model(talk: Talk, rest: str) -> None:
    if rest:
        choices = replace(talk.choices, model=rest)
        await prompt.require_model(talk.engine, choices)
        talk.choices = choices
    talk.aside(f"model: {talk.choices.model or read_settings().model or 'none; choose one with /model NAME'}")


async def _mode(talk: Talk, rest: str) -> None:
    if rest:
        found = next((mode for mode in MODES if mode.lower() == rest.lower()), None)
        if found is None:
            raise InvalidInput(f"unknown mode {rest!r}; use {', '.join(MODES)}")
        talk.choices = replace(talk.choices, mode=found)
    talk.aside(f"mode: {talk.choices.mode}")


async def _title(talk: Talk, rest: str) -> None:
    if talk.session is not None:
        talk.session = (
            await talk.sessions.rename(LOCAL, talk.session.id, rest)
            if rest
            else await talk.sessions.get(LOCAL, talk.session.id)
        )
        talk.aside(f"title: {talk.session.title or 'none yet'}")
        return
    talk.title = rest or talk.title
    talk.aside(f"title: {talk.title or 'none yet'}")


async def _cost(talk: Talk, _: str) -> None:
    if talk.session is None:
        talk.aside("cost: nothing yet")
        return
    session = await talk.sessions.get(LOCAL, talk.session.id)
    talk.aside(f"cost: {'unknown' if session.cost is None else formats.exact_cost(session.cost)}")
    if talk.context is not None:
        size = "" if talk.context.size is None else f" of {formats.grouped(talk.context.size)}"
        talk.aside(f"context: {formats.grouped(talk.context.used)}{size} tokens")


async def _tools(talk: Talk, _: str) -> None:
    if talk.sessions.engine is not None:
        talk.aside("the server provides the tools")
        return
    from hitherto.engines.tools.toolset import local_tools

    roots: tuple[str, ...] = (talk.chosen.folder, *talk.chosen.directories)
    session = None if talk.session is None else await talk.sessions.get(LOCAL, talk.session.id)
    if session is not None:
        roots = folders_of(session)
    for tool in local_tools(roots, None):
        call = ToolCall(id="", name=tool.name, kind=tool.kind)
        mode = talk.choices.mode
        ruling = ruling_of(mode, tool.kind) if session is None else decide(mode, session, call)
        talk.aside(f"{tool.name:<14} {ruling}")
    for server in talk.chosen.servers:
        talk.aside(f"{server.name:<14} an MCP server with its own tools")


async def _fork(talk: Talk, rest: str) -> None:
    if talk.session is None:
        raise InvalidInput("there is nothing to fork yet: send a prompt first")
    fork = await talk.sessions.fork(LOCAL, talk.session.id, title=rest or None)
    await talk.change_session(fork)
    talk.aside(f"continuing in the fork {fork.id}")


async def _exit(talk: Talk, _: str) -> None:
    talk.over = True


COMMANDS: dict[str, Slash] = {
    "help": Slash("/help", "show these commands", _help),
    "model": Slash("/model NAME", "use this model from now on; without a name, show the current one", _model),
    "mode": Slash("/mode MODE", f"set what tools may do without asking: {', '.join(MODES)}", _mode),
    "title": Slash("/title TEXT", "set the title of the session", _title),
    "cost": Slash("/cost", "show the cost of the session and the size of its context", _cost),
    "tools": Slash("/tools", "list the tools and whether the mode allows, asks or denies each", _tools),
    "fork": Slash("/fork", "continue in a fork; the original session stays unchanged", _fork),
    "exit": Slash("/exit", "leave the chat", _exit),
}
