"""Commands in the editor's terminal, each answer at the moment that a test chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from hitherto.acp.agent import editor_host
from hitherto.engine import Event, Finished, Message, Turn
from hitherto.model import Text
from tests.acp.agent.in_process import Json, Line, opened, serving
from tests.acp.test_golden import ANSWERS, answered
from tests.acp.wire import scripted
from tests.support.scripted_engine import Scripted
from tests.support.waits import NEVER

CAPABILITIES = {"terminal": True}
PROMPT = [{"type": "text", "text": "Go"}]


class Runner(Scripted):
    """Runs a command wherever the client offers to."""

    finished: Finished | None = None

    async def run(self, turn: Turn) -> AsyncIterator[Event]:
        self.turns.append(turn)
        place = self.setups[0].host
        assert place is not None
        self.finished = await place.run("make", "/p", seconds=NEVER, output_bytes=1_000, show=lambda _: None)
        yield Message(parts=(Text(text="Ran."),))


async def asked(line: Line, method: str) -> Json:
    return line.seen[await line.until(lambda message: message.get("method") == method)]


async def answer(line: Line, method: str, **result: object) -> None:
    line.say(id=(await asked(line, method))["id"], result=result)


async def test_how_a_command_ended_is_known_even_if_only_the_wait_for_it_tells() -> None:
    engine = Runner()
    async with serving(engine, capabilities=CAPABILITIES) as (line, _):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        await answer(line, "terminal/create", terminalId="t")
        await answer(line, "terminal/wait_for_exit", exitCode=0)
        await answer(line, "terminal/output", output="fine", truncated=False)
        await answer(line, "terminal/release")
        await line.answer(prompt)
        assert engine.finished == Finished(output="fine", exit_code=0)


@pytest.mark.parametrize("made", [True, False])
async def test_a_terminal_that_is_being_made_when_the_turn_is_cancelled_is_given_back(
    made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not made:
        monkeypatch.setattr(editor_host, "ENDING_SECONDS", 0.01)  # the editor never answers
    async with serving(Runner(), capabilities=CAPABILITIES) as (line, _):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        create = await asked(line, "terminal/create")
        line.say(method="session/cancel", params={"sessionId": session_id})
        assert (await line.answer(prompt))["stopReason"] == "cancelled"
        if made:
            line.say(id=create["id"], result={"terminalId": "late"})
            for method in ("terminal/kill", "terminal/release"):
                await answer(line, method)
                assert (await asked(line, method))["params"]["terminalId"] == "late"
        else:
            withdrawn = await asked(line, "$/cancel_request")
            assert withdrawn["params"] == {"requestId": create["id"]}


async def test_a_command_of_a_tool_is_embedded_in_its_call_as_the_terminal_of_the_client(
    tmp_path: Path,
) -> None:
    call = {"id": "c", "name": "run_command", "kind": "execute", "input": {"command": "make"}}
    ran = {"result": "made", "output": {"exitCode": 0}}
    async with scripted(tmp_path, CAPABILITIES) as agent:
        for method, answer in ANSWERS.items():
            agent.on[method] = partial(answered, answer)
        session = await agent.new(tmp_path)
        script = [{"call": call}, {"permit": True}, {"run": "make"}, {"progress": "made"}, ran, {"run": "ls"}]
        await agent.prompt(session, script)
        found = [each for each in agent.updates(session) if each.get("toolCallId") == "c"]
        terminal = [{"type": "terminal", "terminalId": "a terminal"}]
        assert [each["content"] for each in found if "content" in each] == [terminal, terminal]
        assert (found[-1]["status"], found[-1]["rawOutput"]) == ("completed", {"exitCode": 0})
        assert [each["status"] for each in found].index("in_progress") == 1
        (replayed,) = [
            each
            for each in await agent.load(session, tmp_path)
            if each["sessionUpdate"] == "tool_call_update"
        ]
        assert replayed["content"] == [{"type": "content", "content": {"type": "text", "text": "made"}}]
