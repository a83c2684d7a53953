"""Messages that are too long to be taken: whoever waits for them hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hitherto.engine import Event, Message, Turn
from hitherto.model import Text
from hitherto.rpc import frames
from tests.acp.agent.in_process import opened, serving
from tests.support.scripted_engine import Scripted

CAPABILITIES = {"fs": {"readTextFile": True}}
PROMPT = [{"type": "text", "text": "Go"}]


@pytest.mark.parametrize(
    ("head", "number", "asks"),
    [
        ('{"jsonrpc":"2.0","id":5,"result":{"content":"x', b"5", False),
        ('  { "id" : "a\\"b" , "jsonrpc":"2.0","method":"m","params":{', b'"a\\"b"', True),
        ('{"jsonrpc":"2.0","method":"m","params":{"id":7,', b"", True),
        ('{"params":{"id":7,"method":"m",', b"", False),
        ('{"id":-,"method":"m",', b"", True),
        ('{"id":"\\u12","method":"m",', b"", True),
        ("nonsense", b"", False),
        ("", b"", False),
    ],
)
def test_the_beginning_of_a_message_tells_what_it_is(head: str, number: bytes, asks: bool) -> None:
    frame = frames.read_head(head.encode())
    assert (bytes(frame.id), frame.method is not None) == (number, asks)


async def test_a_request_that_is_too_long_is_refused_by_its_id() -> None:
    async with serving(Scripted()) as (line, _):
        line.say_too_much('{"jsonrpc":"2.0","id":"mine","method":"session/prompt","params":{')
        at = await line.until(lambda message: message.get("id") == "mine")
        assert line.seen[at]["error"]["code"] == -32600
        line.say_too_much('{"params":{"prompt":"')
        await line.until(lambda message: "error" in message and message["id"] is None)


async def test_an_answer_that_is_too_long_is_an_error_of_what_was_asked_and_the_turn_goes_on() -> None:
    engine = Reader()
    async with serving(engine, capabilities=CAPABILITIES) as (line, _):
        session_id = await opened(line)
        prompt = line.begin("session/prompt", sessionId=session_id, prompt=PROMPT)
        at = await line.until(lambda message: message.get("method") == "fs/read_text_file")
        line.say_too_much(f'{{"jsonrpc":"2.0","id":{line.seen[at]["id"]},"result":{{"content":"')
        assert (await line.answer(prompt))["stopReason"] == "end_turn"
        assert "at most" in engine.heard


class Reader(Scripted):
    """Reads a file through whatever the client offers."""

    heard = ""

    async def run(self, turn: Turn) -> AsyncIterator[Event]:
        self.turns.append(turn)
        host = self.setups[0].host
        assert host is not None
        try:
            await host.read_text("/p/a.log")
        except OSError as error:
            self.heard = str(error)
        yield Message(parts=(Text(text="Well."),))
