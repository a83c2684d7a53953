"""The slash commands of a chat: a table of functions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.cli.turns import prompt
from hitherto.cli.turns.conversation import ChatSession
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, ToolCall
from hitherto.permissions import MODES, decide
from hitherto.permissions import ruling as ruling_of
from hitherto.presentation import formats, usage
from hitherto.service.catalog.metadata import folders_of
from hitherto.settings import read_settings

_COMMAND = re.compile(r"\s*/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


class Slash(NamedTuple):
    """A row of /help: the syntax, one line of help, and the function that gets the rest of the line."""

    form: str
    help: str
    do: Callable[[ChatSession, str], Awaitable[None]]


def command(text: str) -> Callable[[ChatSession], Awaitable[None]] | None:
    """The command of a line; None if the line is a prompt. A path is a prompt: `/etc/hosts looks wrong`."""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    name, rest = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        raise InvalidInput(f"unknown command /{name}; type /help for the commands")
    return lambda chat: COMMANDS[name].do(chat, rest)


async def _help(chat: ChatSession, _: str) -> None:
    for each in COMMANDS.values():
        chat.aside(f"{each.form:<13} {each.help}")


async def _model(chat: ChatSession, rest: str) -> None:
    if rest:
        choices = replace(chat.choices, model=rest)
        await prompt.require_model(chat.engine, choices)
        chat.choices = choices
    chat.aside(f"model: {chat.choices.model or read_settings().model or 'none; choose one with /model NAME'}")


async def _mode(chat: ChatSession, rest: str) -> None:
    if rest:
        found = next((mode for mode in MODES if mode.lower() == rest.lower()), None)
        if found is None:
            raise InvalidInput(f"unknown mode {rest!r}; use {', '.join(MODES)}")
        chat.choices = replace(chat.choices, mode=found)
    chat.aside(f"mode: {chat.choices.mode}")


async def _title(chat: ChatSession, rest: str) -> None:
    if chat.session is not None:
        chat.session = (
            await chat.sessions.rename(LOCAL, chat.session.id, rest)
            if rest
            else await chat.sessions.get(LOCAL, chat.session.id)
        )
        chat.aside(f"title: {chat.session.title or 'none yet'}")
        return
    chat.title = rest or chat.title
    chat.aside(f"title: {chat.title or 'none yet'}")


async def _cost(chat: ChatSession, _: str) -> None:
    if chat.session is None:
        chat.aside("cost: nothing yet")
        return
    used = (await chat.sessions.usage(LOCAL, chat.session.id)).usage
    chat.aside(f"cost: {usage.cost(used) or 'nothing yet'}")
    if chat.context is not None:
        size = "" if chat.context.size is None else f" of {formats.grouped(chat.context.size)}"
        chat.aside(f"context: {formats.grouped(chat.context.used)}{size} tokens")


async def _tools(chat: ChatSession, _: str) -> None:
    if chat.sessions.engine is not None:
        chat.aside("the server provides the tools")
        return
    from hitherto.engines.tools.toolset import local_tools

    roots: tuple[str, ...] = (chat.options.folder, *chat.options.directories)
    session = None if chat.session is None else await chat.sessions.get(LOCAL, chat.session.id)
    if session is not None:
        roots = folders_of(session)
    for tool in local_tools(roots, None):
        call = ToolCall(id="", name=tool.name, kind=tool.kind)
        mode = chat.choices.mode
        ruling = ruling_of(mode, tool.kind) if session is None else decide(mode, session, call)
        chat.aside(f"{tool.name:<14} {ruling}")
    for server in chat.options.servers:
        chat.aside(f"{server.name:<14} an MCP server with its own tools")


async def _fork(chat: ChatSession, rest: str) -> None:
    if chat.session is None:
        raise InvalidInput("there is nothing to fork yet: send a prompt first")
    fork = await chat.sessions.fork(LOCAL, chat.session.id, title=rest or None)
    await chat.change_session(fork)
    chat.aside(f"continuing in the fork {fork.id}")


async def _exit(chat: ChatSession, _: str) -> None:
    chat.over = True


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
