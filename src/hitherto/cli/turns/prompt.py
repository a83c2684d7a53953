"""Prompts answered in a session, for the commands that have some answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import click

from hitherto.cli.options.turn import Chosen
from hitherto.cli.terminal.output import Output
from hitherto.engine import Choices, Engine, Notice, Setup, StopReason
from hitherto.errors import InvalidInput
from hitherto.limits import is_storable
from hitherto.model import LOCAL, Json, Session, Text
from hitherto.service import Sessions
from hitherto.service.catalog.projects import project_of_folder
from hitherto.service.turns.open_session import OpenSession
from hitherto.updates import Ask, Emit, Outcome, Update

T = TypeVar("T")
Interrupts = Callable[[Callable[[], object]], AbstractContextManager[None]]
"""Has ^C call something for the time of a block."""

STOPPED: dict[StopReason, str] = {
    "cancelled": "cancelled",
    "max_tokens": "stopped: the answer has reached the model's limit of output",
    "max_turn_requests": "stopped: the model was asked as often as it may be for one prompt",
    "refusal": "stopped: the provider has refused to go on",
}
"""How a turn has ended that is not at its proper end."""

NOTHING = Outcome(stop_reason="cancelled", prompt="")
"""A turn that was cancelled before anything of it was stored."""


async def require_model(engine: Engine, choices: Choices) -> None:
    """Raise `ModelMissing` if nothing can answer; so that nothing is stored for a prompt that nobody reads."""
    async with engine.open(Setup(session_id="")) as conversation:
        await conversation.window(choices)


async def named(sessions: Sessions, session: str, chosen: Chosen) -> str:
    """The id of the session that is meant, which has its folders already."""
    if chosen.cwd is not None or chosen.directories:
        raise click.UsageError("--cwd and --add-dir are for a new session; `hitherto move` moves one")
    return await sessions.resolve(LOCAL, session)


async def going_on(sessions: Sessions, out: Output, session_id: str) -> Session:
    """The session in which this one goes on: itself, or the fork of one that was read from another agent."""
    session = await sessions.turns.continuation(LOCAL, session_id)
    if session.id != session_id:
        out.note(f"{session_id} was read from another agent; it goes on as its fork {session.id}.")
    return session


async def started(sessions: Sessions, chosen: Chosen, title: str | None = None) -> Session:
    """A new session."""
    return await sessions.create(
        LOCAL,
        cwd=chosen.folder,
        additional_directories=chosen.directories,
        title=title,
        **await project_of_folder(sessions.projects, chosen.folder),
    )


def reporting(emit: Emit) -> Callable[[Notice], None]:
    """Tells what is reported between and within turns; that it cannot be told is left to the next to find out."""

    def report(notice: Notice) -> None:
        with suppress(OSError):
            emit(notice)

    return report


async def answered(
    opened: OpenSession, text: str, choices: Choices, ask: Ask | None, emit: Emit, interrupts: Interrupts
) -> Outcome:
    """Have a prompt answered. ^C cancels the turn, and so does a failure to print it, which is then raised."""
    failures: list[OSError] = []

    def show(update: Update) -> None:
        try:
            emit(update)
        except OSError as error:  # such as that nobody reads any more
            failures.append(error)
            opened.cancel()

    try:
        turn = opened.prompt((prompt_text(text),), choices=choices, ask=ask, emit=show)
        return await cancellable(turn, interrupts, opened.cancel) or NOTHING
    finally:
        if failures:
            raise failures[0]


async def cancellable(
    work: Coroutine[Any, Any, T], interrupts: Interrupts, cancel: Callable[[], bool] = lambda: False
) -> T | None:
    """Do something that ^C cancels, with `cancel` if that finds something to cancel; None if nothing came of it."""
    task = asyncio.ensure_future(work)
    try:
        with interrupts(lambda: cancel() or task.cancel()):
            return await task
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if not task.cancelled() or (own is not None and own.cancelling()):
            raise
        return None


def document(session_id: str | None, outcome: Outcome) -> Json:
    """How a turn ended, for programs."""
    return {
        "session": session_id,
        "text": outcome.text,
        "stop_reason": outcome.stop_reason,
        "usage": outcome.usage,
        "cost": None if outcome.usage is None else outcome.usage.cost,
        "requests": outcome.requests,
        "prompt": outcome.prompt or None,
        "answer": outcome.answer,
    }


def prompt_text(text: str) -> Text:
    """What a user says, if it is something that can be said."""
    if not text.strip():
        raise InvalidInput("there is nothing to answer: the prompt is empty")
    if not is_storable(text):
        raise InvalidInput("the prompt has characters that cannot be stored, such as NUL or no UTF-8")
    return Text(text=text)
