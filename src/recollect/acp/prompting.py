"""Methods of a session that is open: prompts, and what the user chooses for them."""

from __future__ import annotations

from recollect.acp.asking import permission
from recollect.acp.attached import Attached
from recollect.acp.commands import errand
from recollect.acp.config import choose, kept, options
from recollect.acp.content import parts_of
from recollect.acp.door import Door
from recollect.acp.rows import CONTINUED
from recollect.acp.shapes import NamedSession, Prompt, SetMode, SetOption
from recollect.model import Json, ToolCall, Usage
from recollect.permissions import Choice, Verdict


async def prompt(door: Door, params: Prompt) -> Json:
    """`session/prompt`: one turn, answered at its end. A session of another agent goes on in a fork of it.

    A command is carried out in place of a turn.
    """
    parts = parts_of(params.prompt)
    attached = await door.reached(params.session_id)
    command = errand(parts)

    async def ask(call: ToolCall) -> Choice | Verdict:
        await attached.showing.settle()  # the call is shown before it is asked about
        return await permission(door.peer, attached.session.id, call)

    before = attached.target
    turn = attached.prompt(parts, params.meta, ask) if command is None else attached.carry_out(command)
    outcome = await turn
    answer: Json = {"stopReason": outcome.stop_reason, **_usage(outcome.usage)}
    if attached.target != attached.session.id:
        answer["_meta"] = {CONTINUED: attached.target}
    if attached.target != before:
        await attached.showing.update("session_info_update", {"_meta": {CONTINUED: attached.target}})
    return answer


async def cancel(door: Door, params: NamedSession) -> None:
    """`session/cancel`: the running prompt is answered with `cancelled`."""
    attached = door.attached.get(params.session_id)
    if attached is not None:
        attached.cancel()


async def set_mode(door: Door, params: SetMode) -> Json:
    """`session/set_mode`: the same as the option `mode`, for clients that know no options."""
    attached = await _set(door, params.session_id, "mode", params.mode_id)
    await attached.showing.update(
        "config_option_update", {"configOptions": options(attached.chosen, door.offer.models)}
    )
    return {}


async def set_option(door: Door, params: SetOption) -> Json:
    """`session/set_config_option`: answered with all options."""
    attached = await _set(door, params.session_id, params.config_id, params.value)
    if params.config_id == "mode":
        await attached.showing.update("current_mode_update", {"currentModeId": attached.chosen.mode})
    return {"configOptions": options(attached.chosen, door.offer.models)}


async def _set(door: Door, session_id: str, option: str, value: str | bool) -> Attached:
    """Choose, and keep it with the session, so that it is the same when it is opened again."""
    attached = await door.reached(session_id)
    chosen = choose(attached.chosen, option, value, door.offer.models)
    await door.sessions.keep_own(door.who, attached.target, kept(chosen))
    attached.chosen = chosen
    return attached


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
