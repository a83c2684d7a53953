"""Running prompts in a session, for `hitherto prompt` and `hitherto chat`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

import click

from hitherto.cli.options.session_ids import named_session
from hitherto.cli.options.turn import TurnOptions
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
Interrupts = Callable[[Callable[[], object]], AbstractContextManager[object]]
"""A context manager: within its block, ^C calls the given function."""

STOPPED: dict[StopReason, str] = {
    "cancelled": "cancelled",
    "max_tokens": "stopped: the answer reached the output limit of the model",
    "max_turn_requests": "stopped: reached the maximum number of model requests for one prompt (--max-turns)",
    "refusal": "stopped: the provider refused to continue",
}
"""What is reported for a turn that did not end normally."""

NOTHING = Outcome(stop_reason="cancelled", prompt="")
"""The outcome of a turn that was cancelled before anything was stored."""


async def require_model(engine: Engine, choices: Choices) -> None:
    """Raise `ModelMissing` if no model can answer, before anything is stored for the prompt."""
    async with engine.open(Setup(session_id="")) as conversation:
        await conversation.window(choices)


async def resolve_session(sessions: Sessions, session: str, options: TurnOptions) -> str:
    """The full id of an existing session. Raises if options for a new session were given."""
    if options.cwd is not None or options.directories:
        raise click.UsageError(
            "--cwd and --add-dir apply to new sessions only; use `hitherto move` to change the folder of a session"
        )
    return await named_session(sessions, session)


async def writable_session(sessions: Sessions, out: Output, session_id: str) -> Session:
    """The session to continue: the session itself, or the fork of a synced one."""
    session = await sessions.turns.continuation(LOCAL, session_id)
    if session.id != session_id:
        out.note(
            f"{session_id} is read-only (synced from another agent). Continuing in its fork {session.id}."
        )
    return session


async def create_session(sessions: Sessions, options: TurnOptions, title: str | None = None) -> Session:
    """Create a new session."""
    return await sessions.create(
        LOCAL,
        cwd=options.folder,
        additional_directories=options.directories,
        title=title,
        **await project_of_folder(sessions.projects, options.folder),
    )


def reporting(emit: Emit) -> Callable[[Notice], None]:
    """Emits notices. A failure to print one is ignored here; the next output will raise it."""

    def report(notice: Notice) -> None:
        with suppress(OSError):
            emit(notice)

    return report


async def run_prompt(
    opened: OpenSession, text: str, choices: Choices, ask: Ask | None, emit: Emit, interrupts: Interrupts
) -> Outcome:
    """Run a prompt. ^C cancels the turn; so does a failure to print, which is then raised."""
    failures: list[OSError] = []

    def show(update: Update) -> None:
        try:
            emit(update)
        except OSError as error:  # for example, the reader of the pipe has left
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
    """Await `work`; ^C calls `cancel`, or cancels the task if that returns False. None if it was cancelled."""
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
    """The JSON document of a finished turn."""
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
    """The prompt as a part of a message. Raises `InvalidInput` if it is empty or cannot be stored."""
    if not text.strip():
        raise InvalidInput("the prompt is empty: pass a text or pipe one to stdin")
    if not is_storable(text):
        raise InvalidInput(
            "the prompt contains characters that cannot be stored, such as NUL or invalid UTF-8"
        )
    return Text(text=text)
