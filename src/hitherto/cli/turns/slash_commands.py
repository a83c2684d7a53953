"""Commands in a conversation: a table, and what each does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.cli.turns import prompt
from hitherto.cli.turns.conversation import Talk
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, ToolCall
from hitherto.permissions import MODES, decided
from hitherto.permissions import ruling as ruling_of
from hitherto.service.catalog.metadata import folders_of
from hitherto.settings import read_settings

_COMMAND = re.compile(r"\s*/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


class Slash(NamedTuple):
    """A command as the overview shows it, and what it does with the rest of its line."""

    form: str
    help: str
    do: Callable[[Talk, str], Awaitable[None]]


def command(text: str) -> Callable[[Talk], Awaitable[None]] | None:
    """What a line commands; None if it is a prompt. A path is none: `/etc/hosts looks wrong` is said to the model."""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    name, rest = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        raise InvalidInput(f"there is no command /{name}; /help lists them")
    return lambda talk: COMMANDS[name].do(talk, rest)


async def _help(talk: Talk, _: str) -> None:
    for each in COMMANDS.values():
        talk.aside(f"{each.form:<13} {each.help}")


async def _model(talk: Talk, rest: str) -> None:
    if rest:
        choices = replace(talk.choices, model=rest)
        await prompt.require_model(talk.engine, choices)
        talk.choices = choices
    talk.aside(f"model: {talk.choices.model or read_settings().model or 'none is set'}")


async def _mode(talk: Talk, rest: str) -> None:
    if rest:
        found = next((mode for mode in MODES if mode.lower() == rest.lower()), None)
        if found is None:
            raise InvalidInput(f"modes are {', '.join(MODES)}, not {rest!r}")
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
        talk.aside("nothing yet")
        return
    session = await talk.sessions.get(LOCAL, talk.session.id)
    talk.aside(f"cost: {'not known' if session.cost is None else f'${session.cost:.4f}'}")
    if talk.context is not None:
        size = "" if talk.context.size is None else f" of {talk.context.size:,}"
        talk.aside(f"context: {talk.context.used:,}{size} tokens")


async def _tools(talk: Talk, _: str) -> None:
    if talk.sessions.engine is not None:
        talk.aside("the tools are those of the server")
        return
    from hitherto.engines.tools.toolset import local_tools

    roots: tuple[str, ...] = (talk.chosen.folder, *talk.chosen.directories)
    session = None if talk.session is None else await talk.sessions.get(LOCAL, talk.session.id)
    if session is not None:
        roots = folders_of(session)
    for tool in local_tools(roots, None):
        call = ToolCall(id="", name=tool.name, kind=tool.kind)
        mode = talk.choices.mode
        ruling = ruling_of(mode, tool.kind) if session is None else decided(mode, session, call)
        talk.aside(f"{tool.name:<14} {ruling}")
    for server in talk.chosen.servers:
        talk.aside(f"{server.name:<14} a server, with tools of its own")


async def _fork(talk: Talk, rest: str) -> None:
    if talk.session is None:
        raise InvalidInput("there is nothing to fork yet: say something first")
    fork = await talk.sessions.fork(LOCAL, talk.session.id, title=rest or None)
    await talk.change_session(fork)
    talk.aside(f"going on in the fork {fork.id}")


async def _exit(talk: Talk, _: str) -> None:
    talk.over = True


COMMANDS: dict[str, Slash] = {
    "help": Slash("/help", "these commands", _help),
    "model": Slash("/model NAME", "answer with this model from now on; without a name, which it is", _model),
    "mode": Slash("/mode MODE", f"what tools may do without asking: {', '.join(MODES)}", _mode),
    "title": Slash("/title TEXT", "give the session a title", _title),
    "cost": Slash("/cost", "what the session has cost, and how full the context is", _cost),
    "tools": Slash("/tools", "the tools, and what the mode says of each", _tools),
    "fork": Slash("/fork", "go on in a fork; the session stays as it is", _fork),
    "exit": Slash("/exit", "leave", _exit),
}
