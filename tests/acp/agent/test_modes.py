"""Modes that are changed while a turn runs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.acp.protocol.options import ChosenOptions, options_meta
from hitherto.engine import Event, Message, ToolEnded, Turn, answering
from hitherto.model import LOCAL, Text, ToolCall, ToolResult
from tests.acp.agent.in_process import Line, is_told, opened, serving

PROMPT = [{"type": "text", "text": "Go"}]
QUESTION = "session/request_permission"


@answering
async def engine(turn: Turn) -> AsyncIterator[Event]:
    """Two commands, one after the other."""
    for number in ("c1", "c2"):
        call = ToolCall(id=number, name="run_command", kind="execute", input={"command": number})
        yield Message(parts=(call,))
        verdict = await turn.permit(call)
        text = Text(text=verdict.reason or "done")
        yield ToolEnded(result=ToolResult(id=number, content=(text,), is_error=not verdict.allowed))


def ends(line: Line) -> list[str]:
    found = [message["params"]["update"] for message in line.seen if is_told(message, "tool_call_update")]
    return [update["status"] for update in found if update["status"] != "in_progress"]


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("mode", "ended"), [("plan", "failed"), ("bypassPermissions", "completed")])
async def test_a_mode_that_is_chosen_while_a_turn_runs_holds_for_what_it_does_next(
    mode: str, ended: str, elsewhere: bool
) -> None:
    async with serving(engine) as (line, sessions):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        question = line.seen[await line.until(lambda message: message.get("method") == QUESTION)]
        if elsewhere:
            await sessions.catalog.set_own_meta(LOCAL, session_id, options_meta(ChosenOptions(mode=mode)))  # type: ignore[arg-type]
            await line.until(lambda message: is_told(message, "current_mode_update"))
        else:
            await line.call("session/set_mode", sessionId=session_id, modeId=mode)
        allowed = {"outcome": "selected", "optionId": "allow_once"}
        line.say(id=question["id"], result={"outcome": allowed})
        await line.answer(prompt)
        assert ends(line) == ["completed", ended]
        assert len([message for message in line.seen if message.get("method") == QUESTION]) == 1
