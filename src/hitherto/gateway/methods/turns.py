"""Running turns: a prompt is answered by the server's engine, and can be called off from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import field

from hitherto.engine import Choices, Elicitation, Engine, Reply, StopReason
from hitherto.errors import InvalidInput, ModelMissing
from hitherto.gateway.dispatch.content import Attachment, Content, SenderOf, attached, origin_of, parts_of
from hitherto.gateway.dispatch.inboxes import engine_for
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import (
    MODEL,
    Answer,
    Message,
    Named,
    NamedWriting,
    Usage,
    key_of,
    message,
    usage,
)
from hitherto.model import Origin, Part, QueueMode, ToolCall
from hitherto.permissions import Choice
from hitherto.service import Sessions
from hitherto.service.history.inbox import queue_mode_of
from hitherto.updates import Ask, Emit, Outcome, Queued, Stored, Update, elsewhere


class Send(NamedWriting, frozen=True, kw_only=True):
    """A text, or a list of content blocks. With `ask`, a tool that needs permission waits for `session.answer`; else it
    is refused. Without `wait`, the answer comes as soon as the prompt is stored.

    `queue_mode` says what happens while another turn runs: `followup` gives the prompt the next turn, `collect` makes one
    turn of all that wait, `steer` gives it to the running turn at its next step, `interrupt` ends that turn first. The
    default is that of the session.
    """

    content: Content
    ask: bool = False
    wait: bool = True
    queue_mode: QueueMode | None = None
    sender: SenderOf | None = None
    reply_to: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()


class Sent(Answer, frozen=True, kw_only=True):
    """The id of the prompt, the assistant's last message, null if there was none, and how the turn ended: null while it
    runs. `place` is the prompt's place in the inbox if it waits there."""

    prompt_id: str
    place: int | None = None
    message: Message | None
    stop_reason: StopReason | None
    usage: Usage | None


class PermissionRequest(Answer, frozen=True, kw_only=True):
    """A tool call that needs a permission."""

    tool_call_id: str
    name: str
    kind: str | None
    title: str | None
    input: Any


class ElicitationRequest(Answer, frozen=True, kw_only=True):
    """What an MCP server wants to know of the user: fields, by a JSON schema, or a page to visit."""

    elicitation_id: str
    server: str
    message: str
    schema: dict[str, Any] | None
    url: str | None
    tool_call_id: str | None


class Question(Answer, frozen=True, kw_only=True):
    """What the running turn waits for; both are null if it waits for nobody."""

    session_key: str
    question: PermissionRequest | None
    elicitation: ElicitationRequest | None


class GiveReply(NamedWriting, frozen=True, kw_only=True):
    """The question of an MCP server, and what the user says; `content` has the fields that were asked for."""

    elicitation_id: str
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class GiveAnswer(NamedWriting, frozen=True, kw_only=True):
    """The call, and what is said about it; an answer for always is remembered in the session."""

    tool_call_id: str
    choice: Choice


class Answered(Answer, frozen=True, kw_only=True):
    """Whether the question stood."""

    session_key: str
    answered: bool


class Cancelled(Answer, frozen=True, kw_only=True):
    """Whether a turn was running."""

    session_key: str
    cancelled: bool


async def send(call: Call[Send]) -> Sent:
    """Send a prompt and run the turn. Subscribers receive its events."""
    given = call.params
    kept: asyncio.Future[tuple[str, int | None]] = asyncio.get_running_loop().create_future()

    def emit(update: Update) -> None:
        if isinstance(update, Stored) and update.entry.role == "user" and not kept.done():
            kept.set_result((update.entry.id, None))
        elif isinstance(update, Queued) and not kept.done():
            kept.set_result((update.entry, update.place))
        call.context.emit(call.session.id, update)

    turn = run_turn(
        call,
        (*parts_of(call.params.content), *attached(call.params.attachments)),
        chosen(call),
        ask=elsewhere if call.params.ask else None,
        emit=emit,
        key=call.params.idempotency_key,
        queue=call.params.queue_mode or queue_mode_of(call.session),
        origin=origin_of(given.sender, given.reply_to, given.metadata),
    )
    if call.params.wait:
        return await _sent(call, await turn)
    running = call.context.beside(turn)
    await asyncio.wait((running, kept), return_when=asyncio.FIRST_COMPLETED)
    if kept.done():
        prompt, place = kept.result()
        return Sent(prompt_id=prompt, place=place, message=None, stop_reason=None, usage=None)
    return await _sent(call, await running)  # it was answered before, or cannot begin


async def run_turn(
    call: Call[object],
    parts: Sequence[Part],
    choices: Choices,
    *,
    ask: Ask | None,
    emit: Emit,
    key: str | None,
    queue: QueueMode | None = None,
    origin: Origin | None = None,
) -> Outcome:
    """Have a prompt answered by the server's engine, with the rights that the token has on this machine."""
    if not parts:
        raise InvalidInput("the prompt is empty")
    engine = engine_of(call)
    if choices.model is not None:
        call.context.offered(choices.model)
    local = call.who.local

    def emit_in_order(update: Update) -> None:
        if isinstance(update, Stored | Queued):
            call.let_others_pass()
        emit(update)

    runner = call.context.inboxes.runner(call.sessions, call.who, call.session.id, engine)
    async with call.sessions.opened(
        call.who,
        call.session.id,
        engine_for(engine, local=local),
        local=local,
        improve_titles=False,
        runner=runner,
    ) as opened:
        with call.context.turns.running(call.who, opened):
            return await opened.prompt(
                parts,
                choices=choices,
                ask=ask,
                emit=emit_in_order,
                queue=queue,
                idempotency_key=key,
                origin=origin,
            )


def engine_of(call: Call[object]) -> Engine:
    """What answers prompts here. Raises `ModelMissing`."""
    if call.context.engine is None:
        raise ModelMissing("this server has no model: set HITHERTO_MODEL and restart it")
    return call.context.engine


async def question(call: Call[Named]) -> Question:
    """Get what the running turn waits for, in whichever process it runs: a tool call that needs permission, or a question of an
    MCP server."""
    asked = await call.sessions.questions.pending(call.who, call.session.id)
    elicited = await call.sessions.questions.elicitation(call.who, call.session.id)
    return Question(
        session_key=key_of(call.session),
        question=None if asked is None else _permission_request(asked),
        elicitation=None if elicited is None else _elicitation_request(elicited),
    )


async def reply(call: Call[GiveReply]) -> Answered:
    """Reply to a question of an MCP server. The first reply counts; `answered` is false if the question is no longer open."""
    given = call.params
    said = Reply(action=given.action, content=given.content)
    done = await call.sessions.questions.reply(call.who, call.session.id, given.elicitation_id, said)
    return Answered(session_key=key_of(call.session), answered=done)


async def answer(call: Call[GiveAnswer]) -> Answered:
    """Answer a permission request. The first answer counts; `answered` is false if the request is no longer open."""
    given = call.params
    done = await call.sessions.questions.answer(call.who, call.session.id, given.tool_call_id, given.choice)
    return Answered(session_key=key_of(call.session), answered=done)


async def cancel(call: Call[NamedWriting]) -> Cancelled:
    """Cancel the running turn, in whichever process it runs. Messages so far are kept."""

    async def end(sessions: Sessions) -> bool:
        asked = await sessions.leases.request_end(call.who, call.session.id)
        return call.context.turns.cancel(call.who, call.session.id) or asked

    def result(was_running: bool) -> Cancelled:
        return Cancelled(session_key=key_of(call.session), cancelled=was_running)

    return await call.once(end, result)


def _permission_request(call: ToolCall) -> PermissionRequest:
    return PermissionRequest(
        tool_call_id=call.id, name=call.name, kind=call.kind, title=call.title, input=call.input
    )


def _elicitation_request(asked: Elicitation) -> ElicitationRequest:
    return ElicitationRequest(
        elicitation_id=asked.id,
        server=asked.server,
        message=asked.message,
        schema=asked.schema,
        url=asked.url,
        tool_call_id=asked.call or None,
    )


async def _sent(call: Call[Send], outcome: Outcome) -> Sent:
    return Sent(
        prompt_id=outcome.prompt,
        message=await _answer(call, outcome),
        stop_reason=outcome.stop_reason,
        usage=None if outcome.usage is None else usage(outcome.usage),
    )


async def _answer(call: Call[Send], outcome: Outcome) -> Message | None:
    if outcome.answer is None:
        return None
    return message(await call.sessions.entry(call.who, call.session.id, outcome.answer))


def chosen(call: Call[object]) -> Choices:
    """The model that was chosen for the session, by `sessions.patch`, if this server still offers it."""
    model, offered = call.session.meta.get(MODEL), call.context.models
    is_one = isinstance(model, str) and model and (offered is None or model in offered)
    return Choices(model=model if is_one else None)
