"""Methods of an open session: prompts and options."""

from __future__ import annotations

from hitherto.acp.agent.connection import Connection
from hitherto.acp.agent.slash_commands import parse_command
from hitherto.acp.protocol.content import expect_readable, parts_of
from hitherto.acp.protocol.options import options
from hitherto.acp.protocol.params import NamedSession, Prompt, SetMode, SetOption
from hitherto.acp.protocol.session_rows import CONTINUED
from hitherto.model import Json, ToolCall, Usage
from hitherto.permissions import Choice, Verdict
from hitherto.rpc.errors import Gone


async def prompt(connection: Connection, params: Prompt) -> Json:
    """`session/prompt`: run one turn, and answer at its end. A session of another agent continues in a fork.

    A slash command runs instead of a turn.
    """
    parts = parts_of(params.prompt)
    async with connection.by_session.turn(params.session_id):
        pass  # what was sent before is stored; what comes later need not wait for the turn's end
    attached = await connection.ensure_open(params.session_id)
    command = parse_command(parts)
    parts = await attached.expand(parts)
    expect_readable(parts, connection.offer.reads(attached.chosen.model))

    async def ask(call: ToolCall) -> Choice | Verdict:
        try:
            await attached.display.settle()  # the call is shown before it is asked about
            return await attached.ask(call)
        except Gone:
            return await connection.answer_from_others(attached, call)

    before = attached.target
    turn = attached.prompt(parts, params.meta, ask) if command is None else attached.run_command(command)
    try:
        outcome = await turn
    finally:  # also if it failed: what was said is there
        if attached.target != before:
            await attached.display.update("session_info_update", {"_meta": {CONTINUED: attached.target}})
    answer: Json = {"stopReason": outcome.stop_reason, **_usage(outcome.usage)}
    if attached.target != attached.session.id:
        answer["_meta"] = {CONTINUED: attached.target}
    return answer


async def cancel(connection: Connection, params: NamedSession) -> None:
    """`session/cancel`: the running prompt gets `cancelled`, whichever client or process it belongs to."""
    attached = connection.attached.get(params.session_id)
    if attached is None:
        return
    if attached.running:
        attached.cancel()
    else:
        await connection.sessions.leases.request_end(connection.who, attached.target)


async def set_mode(connection: Connection, params: SetMode) -> Json:
    """`session/set_mode`: the same as the option `mode`, for clients that do not support options."""
    display = (await connection.ensure_open(params.session_id)).display
    await display.choose("mode", params.mode_id)
    await display.update(*display.known.options())
    return {}


async def set_option(connection: Connection, params: SetOption) -> Json:
    """`session/set_config_option`: answered with all options."""
    display = (await connection.ensure_open(params.session_id)).display
    await display.choose(params.config_id, params.value)
    if params.config_id == "mode":
        await display.update(*display.known.mode())
    return {"configOptions": options(display.known.chosen, connection.offer.available_options)}


def _usage(usage: Usage | None) -> Json:
    """The usage of a turn, if the fields that the protocol requires are known."""
    if usage is None or usage.input is None or usage.output is None:
        return {}
    known = {
        "totalTokens": usage.input + usage.output,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    }
    return {"usage": {name: value for name, value in known.items() if value is not None}}
