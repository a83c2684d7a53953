"""Slash commands: those that Hitherto runs itself, which the engine never sees, and the prompts of tool servers.

The output of the former is not part of the conversation: it is shown once, and neither stored nor replayed.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from hitherto.engine import ServerPrompt
from hitherto.errors import InvalidInput
from hitherto.model import Json, Part, Principal, Shrunk, Text
from hitherto.presentation import formats
from hitherto.service import Sessions

_SERVER_COMMAND = re.compile(r"\s*/(mcp__\S+)(?:\s+(.*?))?\s*", re.DOTALL)
_COMMAND = re.compile(r"\s*/([a-z]+)(?:\s+(.*?))?\s*", re.DOTALL)


class CommandTarget(NamedTuple):
    """The session of a command, and a function that compacts it with its engine."""

    sessions: Sessions
    who: Principal
    session_id: str
    compact: Callable[[], Awaitable[Shrunk]]


CommandRun = Callable[[CommandTarget], Awaitable[str]]
"""Runs a command on a session, and returns its output."""


class Command(NamedTuple):
    """A command: its description for the user, and what it does with its arguments."""

    description: str
    hint: str | None
    run: Callable[[str, CommandTarget], Awaitable[str]]


def parse_command(parts: Sequence[Part]) -> CommandRun | None:
    """The command in a prompt, if the prompt is nothing else. Any other prompt goes to the engine: it may have commands of
    its own, and `/etc/hosts looks wrong` is not one."""
    match parts:
        case [Text(text=text)] if (found := _COMMAND.fullmatch(text)) and found[1] in COMMANDS:
            return partial(COMMANDS[found[1]].run, found[2] or "")
    return None


def server_command(parts: Sequence[Part]) -> tuple[str, str] | None:
    """The name of a prompt of a tool server in a prompt that is nothing else, and what stands behind it."""
    match parts:
        case [Text(text=text)] if found := _SERVER_COMMAND.fullmatch(text):
            return found[1], found[2] or ""
    return None


def arguments_of(prompt: ServerPrompt, said: str) -> dict[str, str]:
    """What was said as arguments, word by word; the last one gets the rest."""
    names = [name for name, _ in prompt.arguments]
    return dict(zip(names, said.split(maxsplit=len(names) - 1), strict=False)) if names else {}


def available_commands(prompts: Sequence[ServerPrompt] = ()) -> list[Json]:
    """The commands as the protocol lists them: our own, and the prompts of tool servers."""
    own = ((name, command.description, command.hint) for name, command in COMMANDS.items())
    theirs = ((prompt.name, prompt.description, _hint(prompt)) for prompt in prompts)
    return [
        {"name": name, "description": description} | ({} if hint is None else {"input": {"hint": hint}})
        for name, description, hint in (*own, *theirs)
    ]


def _hint(prompt: ServerPrompt) -> str | None:
    shown = (name if required else f"[{name}]" for name, required in prompt.arguments)
    return " ".join(shown) or None


async def _compact(rest: str, subject: CommandTarget) -> str:
    if rest:
        raise InvalidInput("/compact takes no arguments")
    done = await subject.compact()
    if not done.compacted:
        return f"Nothing was compacted: {done.reason}."
    about = "about " if done.estimated else ""
    return (
        f"Compacted: the model now sees {done.messages_after} instead of {done.messages_before} messages, "
        f"{about}{formats.grouped(done.tokens_after)} instead of {formats.grouped(done.tokens_before)} tokens. The conversation keeps all of them."
    )


async def _title(rest: str, subject: CommandTarget) -> str:
    sessions, who, session_id, _ = subject
    session = await (sessions.rename(who, session_id, rest) if rest else sessions.get(who, session_id))
    return f"Title: {session.title}" if session.title else "No title yet."


async def _tags(rest: str, subject: CommandTarget) -> str:
    named = rest.split()
    add = [name for name in named if not name.startswith("-")]
    remove = [name.removeprefix("-") for name in named if name.startswith("-")]
    session = await subject.sessions.tag(subject.who, subject.session_id, add=add, remove=remove)
    return f"Tags: {', '.join(session.tags)}" if session.tags else "No tags."


COMMANDS: dict[str, Command] = {
    "compact": Command("Replace older messages by a summary, for the model only", None, _compact),
    "title": Command("Set the session's title; without one, show it", "title", _title),
    "tags": Command("Add tags, or remove them with a minus; without any, show them", "tag -tag", _tags),
}
