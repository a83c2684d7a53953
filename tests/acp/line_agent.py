"""An agent that speaks line by line and does what it is told: the last text of a prompt is a script, a JSON list.

    [{"update": {…}}, {"raw": "a line, $S is the session"}, {"ask": "fs/read_text_file", "params": {…}}, {"wait": true},
     {"prompt": true}, {"exit": 3}, {"fail": {…}}, {"result": {…}}, {"early": true}]

`prompt` says back what it was sent, `wait` waits to be cancelled, `ask` says back what it was answered. Any other text
is echoed. Arguments: its capabilities, and a file that notes every message that it gets. Among the capabilities, `_name` is
what it is called, and `_own` are the sessions that it lists, two on a page, whatever folder is asked for. With `_echo` it
repeats each prompt under an id of its own, with `_options` its sessions have modes and an option.

`queue` waits for another prompt, which is answered after this one, `steered` for a message of the user to the running turn.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CAPABILITIES: Json = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
NAME: str = CAPABILITIES.pop("_name", "line")
OWN: list[Json] = CAPABILITIES.pop("_own", [])
ECHO: bool = CAPABILITIES.pop("_echo", False)
OPTIONS: bool = CAPABILITIES.pop("_options", False)
PAGE = 2
NOTED = Path(sys.argv[2]) if len(sys.argv) > 2 else None
SESSIONS = itertools.count(1)
PROMPTS = itertools.count(1)
WAITING: list[Json] = []
NUMBERS = itertools.count(1)


def read() -> Json:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    if NOTED is not None:
        with NOTED.open("a") as file:
            file.write(line)
    message: Json = json.loads(line)
    return message


def write(**fields: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


def update(session: str, **fields: Any) -> None:
    write(method="session/update", params={"sessionId": session, "update": fields})


def say(session: str, text: str) -> None:
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


class Turn:
    """One prompt."""

    def __init__(self, number: Any, params: Json) -> None:
        self.number, self.params, self.session = number, params, params["sessionId"]
        self.result: Json | None = {"stopReason": "end_turn"}

    def run(self) -> None:
        said = self.params["prompt"][-1].get("text", "")
        if ECHO:
            echo = {"content": self.params["prompt"][-1], "messageId": f"u{next(PROMPTS)}"}
            update(self.session, sessionUpdate="user_message_chunk", **echo)
        for step in json.loads(said) if said.startswith("[") else [{"say": f"You said: {said}"}]:
            name = next(iter(step))
            getattr(self, f"do_{name}")(step[name], step)
        if self.result is not None:
            write(id=self.number, result=self.result)

    def do_say(self, text: str, _: Json) -> None:
        say(self.session, text)

    def do_update(self, fields: Json, _: Json) -> None:
        update(self.session, **fields)

    def do_raw(self, line: str, _: Json) -> None:
        sys.stdout.write(line.replace("$S", self.session) + "\n")
        sys.stdout.flush()

    def do_bytes(self, values: list[int], _: Json) -> None:
        sys.stdout.buffer.write(bytes(values))
        sys.stdout.buffer.flush()

    def do_prompt(self, _: bool, __: Json) -> None:
        say(self.session, json.dumps(self.params))

    def do_ask(self, method: str, step: Json) -> None:
        number = f"q{next(NUMBERS)}"
        write(id=number, method=method, params={"sessionId": self.session, **step["params"]})
        while (message := read()).get("id") != number:
            pass
        say(self.session, json.dumps(message.get("result", message.get("error"))))

    def do_withdraw(self, method: str, step: Json) -> None:
        write(id="gone", method=method, params={"sessionId": self.session, **step["params"]})
        write(method="$/cancel_request", params={"requestId": "gone"})

    def do_wait(self, _: bool, __: Json) -> None:
        while read().get("method") != "session/cancel":
            pass
        self.result = {"stopReason": "cancelled"}

    def do_queue(self, _: bool, __: Json) -> None:
        while (message := read()).get("method") != "session/prompt":
            pass
        WAITING.append(message)

    def do_steered(self, _: bool, __: Json) -> None:
        while (message := read()).get("method") != "_session/steering":
            pass
        write(id=message["id"], result={})

    def do_exit(self, code: int, _: Json) -> None:
        os._exit(code)

    def do_fail(self, error: Json, _: Json) -> None:
        write(id=self.number, error=error)
        self.result = None

    def do_result(self, result: Json, _: Json) -> None:
        self.result = result


def list_own(number: Any, params: Json) -> None:
    start = int(params.get("cursor", 0))
    more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(OWN) else {}
    write(id=number, result={"sessions": OWN[start : start + PAGE], **more})


def load(number: Any, session: str) -> None:
    """Tell a session: one of its own in full, of any other an old word."""
    if not OWN:
        say(session, "an old word")
    elif any(row["sessionId"] == session for row in OWN):
        for word in ("First", "Second"):
            asked = {"type": "text", "text": f"{word} question"}
            update(session, sessionUpdate="user_message_chunk", content=asked)
            say(session, f"{word} answer")
        update(session, sessionUpdate="current_mode_update", currentModeId="calm")
    else:
        write(id=number, error={"code": -32002, "message": "no such session"})
        return
    write(id=number, result={"_meta": {"loaded": True}})


def options(model: str = "small") -> Json:
    """The modes and options of a session that was just opened."""
    if not OPTIONS:
        return {}
    modes = [{"id": "calm", "name": "Calm"}, {"id": "wild", "name": "Wild"}]
    values = [{"value": value, "name": value} for value in ("small", "large")]
    option = {"id": "model", "name": "Model", "type": "select", "currentValue": model, "options": values}
    return {"modes": {"currentModeId": "calm", "availableModes": modes}, "configOptions": [option]}


def new(number: Any, _: Json) -> None:
    session = f"behind-{os.getpid()}-{next(SESSIONS)}"
    early = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    update(session, **early)
    write(id=number, result={"sessionId": session, "modes": None, "_meta": {"own": True}, **options()})
    update(session, **early)


def fork(number: Any, params: Json) -> None:
    made = f"{params['sessionId']}-fork"
    say(made, "an old word")
    update(made, sessionUpdate="current_mode_update", currentModeId="calm")
    write(id=number, result={"sessionId": made})


def greet(number: Any, _: Json) -> None:
    info = {"name": NAME, "version": "1", "x": {"y": 1}}
    write(id=number, result={"protocolVersion": 1, "agentCapabilities": CAPABILITIES, "agentInfo": info})


METHODS: dict[str, Callable[[Any, Json], None]] = {
    "initialize": greet,
    "session/new": new,
    "session/prompt": lambda number, params: Turn(number, params).run(),
    "session/fork": fork,
    "session/list": list_own,
    "session/load": lambda number, params: load(number, params["sessionId"]),
}
if OPTIONS:
    METHODS["session/set_config_option"] = lambda number, params: write(
        id=number, result={"configOptions": options(params["value"])["configOptions"]}
    )


def answer(message: Json) -> None:
    method, number = message.get("method"), message.get("id")
    if method in METHODS:
        METHODS[method](number, message.get("params", {}))
    elif method is not None and number is not None:
        write(id=number, result={"got": message})


if __name__ == "__main__":
    while True:
        answer(WAITING.pop(0) if WAITING else read())
