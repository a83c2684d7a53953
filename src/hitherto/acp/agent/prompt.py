"""Methods of a session that is open: prompts, and what the user chooses for them."""

from __future__ import annotations

from hitherto.acp.agent.connection import Door
from hitherto.acp.agent.permission import permission
from hitherto.acp.agent.slash_commands import errand
from hitherto.acp.protocol.content import expect_readable, parts_of
from hitherto.acp.protocol.options import options
from hitherto.acp.protocol.params import NamedSession, Prompt, SetMode, SetOption
from hitherto.acp.protocol.session_rows import CONTINUED
from hitherto.model import Json, ToolCall, Usage
from hitherto.permissions import Choice, Verdict


async def prompt(door: Door, params: Prompt) -> Json:
    """`session/prompt`: one turn, answered at its end. A session of another agent goes on in a fork of it.

    A command is carried out in place of a turn.
    """
    parts = parts_of(params.prompt)
    attached = await door.reached(params.session_id)
    expect_readable(parts, door.offer.reads(attached.chosen.model))
    command = errand(parts)

    async def ask(call: ToolCall) -> Choice | Verdict:
        await attached.showing.settle()  # the call is shown before it is asked about
        return await permission(door.peer, attached.session.id, call, attached.text_of)

    before = attached.target
    turn = attached.prompt(parts, params.meta, ask) if command is None else attached.carry_out(command)
    try:
        outcome = await turn
    finally:  # also if it failed: what was said is there
        if attached.target != before:
            await attached.showing.update("session_info_update", {"_meta": {CONTINUED: attached.target}})
    answer: Json = {"stopReason": outcome.stop_reason, **_usage(outcome.usage)}
    if attached.target != attached.session.id:
        answer["_meta"] = {CONTINUED: attached.target}
    return answer


async def cancel(door: Door, params: NamedSession) -> None:
    """`session/cancel`: the running prompt is answered with `cancelled`, whichever client of any process it is of."""
    attached = door.attached.get(params.session_id)
    if attached is None:
        return
    if attached.running:
        attached.cancel()
    else:
        await door.sessions.leases.request_end(door.who, attached.target)


async def set_mode(door: Door, params: SetMode) -> Json:
    """`session/set_mode`: the same as the option `mode`, for clients that know no options."""
    showing = (await door.reached(params.session_id)).showing
    await showing.choose("mode", params.mode_id)
    await showing.update(*showing.known.options())
    return {}


async def set_option(door: Door, params: SetOption) -> Json:
    """`session/set_config_option`: answered with all options."""
    showing = (await door.reached(params.session_id)).showing
    await showing.choose(params.config_id, params.value)
    if params.config_id == "mode":
        await showing.update(*showing.known.mode())
    return {"configOptions": options(showing.known.chosen, door.offer.choosable)}


def _usage(usage: Usage | None) -> Json:
    """What the turn used, if all that the protocol wants of it is known."""
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
