"""A provider of models on the loopback interface: it plays replies from a script, and remembers what it was asked.

It speaks two wires, streaming and not: Anthropic Messages at `{url}/v1/messages` and OpenAI chat completions at
`{url}/v1/chat/completions`. A reply is a list of steps that serves both:

    provider.script(
        [Thinking("Let me look."), "I will ", "read it.", ToolUse("read", {"path": "/a"}, id="t1"), Used(60, 8)],
        [too_many(retry_after="1")],
        ["half an ans", CUT],
        ["before", PAUSE, "after"],          # PAUSE waits until the test sets `provider.go`
        ["half an ans", END],                # the stream ends properly, though nothing says that the answer has
        lambda body: [f"{len(body['messages'])} messages"],
    )
"""

from __future__ import annotations

import collections
import itertools
import json
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waits import is_over

Json = dict[str, Any]
KEY = "key-of-the-tests"
"""The only key that is accepted."""


@dataclass(frozen=True)
class Thinking:
    """A whole thought; only the Anthropic wire carries the signature."""

    text: str
    signature: str = "signed"


@dataclass(frozen=True)
class ToolUse:
    """A tool call; an `input` that is text is sent as it is, whatever it holds."""

    name: str
    input: Json | str
    id: str = "call_1"


@dataclass(frozen=True)
class Used:
    """The tokens of a reply; `input` includes the cached ones. `Used(None)`: the provider does not say."""

    input: int | None = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True)
class Stop:
    """Why the reply ends, in Anthropic's words."""

    reason: str


@dataclass(frozen=True)
class Failure:
    """Alone, an HTTP error; after something was said, an error inside of the stream."""

    status: int
    message: str = "failed"
    kind: str = "api_error"
    headers: tuple[tuple[str, str], ...] = ()


class Mark(Enum):
    PAUSE = "wait until the test says go"
    CUT = "drop the connection"
    END = "end the stream without a word of why"


PAUSE, CUT, END = Mark.PAUSE, Mark.CUT, Mark.END
Saying = str | Thinking | ToolUse
Step = Saying | Used | Stop | Failure | Mark
Reply = Sequence[Step] | Callable[[Json], Sequence[Step]]


def refused_key() -> Failure:
    return Failure(401, "invalid api key", "authentication_error")


def too_many(retry_after: str | None = None) -> Failure:
    headers = () if retry_after is None else (("retry-after", retry_after),)
    return Failure(429, "too many requests", "rate_limit_error", headers)


def too_long() -> Failure:
    return Failure(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")


def overloaded() -> Failure:
    return Failure(529, "Overloaded", "overloaded_error")


@dataclass
class Provider:
    """`requests` are the bodies asked for, in order, and `headers` what came with each, in lower case.

    `waiting` is set when a reply has come to a PAUSE; it goes on when the test sets `go`, as all later ones do until
    the test clears it. `closed` has the number (from 0) of each request whose client left before the reply was all
    sent; `left` is set with it. `otherwise` is the reply when the script is at its end.
    """

    url: str = ""
    requests: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)
    otherwise: Reply = ("Noted.",)
    _queue: collections.deque[Reply] = field(default_factory=collections.deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)

    def script(self, *replies: Reply) -> None:
        """Play these next, each once, after those that are still in the script."""
        with self._lock:
            self._queue.extend(replies)

    def environ(self) -> dict[str, str]:
        """The variables by which a program finds this provider, whichever wire it speaks."""
        return {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.url}/v1",
        }

    def take(self, body: Json, headers: dict[str, str]) -> tuple[int, Sequence[Step]]:
        """Note a request; its number, and the steps of its reply."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
            accepted = KEY in (
                headers.get("x-api-key"),
                headers.get("authorization", "").removeprefix("Bearer "),
            )
            reply = self.otherwise if not self._queue else self._queue.popleft()
        if not accepted:
            return number, [refused_key()]
        return number, reply(body) if callable(reply) else reply

    def paused(self, client: socket.socket) -> bool:
        """Wait for the test; False if the client went away, or all ended, in the meantime."""
        self.waiting.set()
        while not self.go.wait(0.002):
            if self._ended.is_set() or _gone(client):
                return False
        return True

    def abandoned(self, number: int) -> None:
        self.closed.append(number)
        self.left.set()

    def end(self) -> None:
        self._ended.set()


@contextmanager
def serving() -> Iterator[Provider]:
    """A running provider; it ends with the block."""
    provider = Provider()
    handler = type("Handler", (_Handler,), {"provider": provider})
    with _Server(("127.0.0.1", 0), handler) as http:
        provider.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            provider.end()
            http.shutdown()
            is_over(thread, "the end of the provider")


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave in the middle are what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    provider: Provider

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
        wire = WIRES.get(self.path.split("?")[0])
        if wire is None:
            return self._whole(404, b"{}")
        number, steps = self.provider.take(
            body, {name.lower(): value for name, value in self.headers.items()}
        )
        try:
            return self._play(wire(number, body), steps)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            return self.provider.abandoned(number)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    def _play(self, wire: _Wire, steps: Sequence[Step]) -> None:
        if steps and isinstance(failure := steps[0], Failure):
            return self._whole(failure.status, _encoded(wire.failure(failure)), failure.headers)
        if wire.body.get("stream"):
            return self._stream(wire.pieces(steps))
        for _ in range(steps.count(PAUSE)):
            self._wait()
        return self._cut() if CUT in steps else self._whole(200, _encoded(wire.message(steps)))

    def _whole(self, status: int, data: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", "application/json"),
            ("content-length", str(len(data))),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, pieces: Iterator[bytes | Mark]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            if isinstance(piece, bytes):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            elif piece is PAUSE:
                self._wait()
            elif piece is END:
                break
            else:
                return self._cut()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _wait(self) -> None:
        if not self.provider.paused(self.connection):
            raise BrokenPipeError

    def _cut(self) -> None:
        self.close_connection = True


class _Wire:
    """One reply in the words of one provider: as a stream of events, in one piece, or a failure in place of it."""

    def __init__(self, number: int, body: Json) -> None:
        self.number = number
        self.body = body

    def pieces(self, steps: Sequence[Step]) -> Iterator[bytes | Mark]:
        """The stream: all that can be sent at once as one piece, and the marks between."""
        for is_mark, events in itertools.groupby(self._events(steps), lambda event: isinstance(event, Mark)):
            if is_mark:
                yield from events
            else:
                yield b"".join(event for event in events if isinstance(event, bytes))

    def _events(self, steps: Sequence[Step]) -> Iterator[bytes | Mark]:
        yield self.begun(steps)
        for step in steps:
            if isinstance(step, Mark):
                yield step
            elif isinstance(step, str | Thinking | ToolUse):
                yield from self.said(step)
            elif isinstance(step, Failure):
                yield self.failed(step)
                return
        yield from self.ended(steps)

    def begun(self, steps: Sequence[Step]) -> bytes:
        raise NotImplementedError

    def said(self, step: Saying) -> Iterator[bytes]:
        raise NotImplementedError

    def failed(self, failure: Failure) -> bytes:
        raise NotImplementedError

    def ended(self, steps: Sequence[Step]) -> Iterator[bytes]:
        raise NotImplementedError

    def message(self, steps: Sequence[Step]) -> Json:
        raise NotImplementedError

    def failure(self, failure: Failure) -> Json:
        raise NotImplementedError


class _Anthropic(_Wire):
    block = -1
    in_text = False

    def begun(self, steps: Sequence[Step]) -> bytes:
        used = {**self._used(steps), "output_tokens": 1}
        started = {**self._envelope(), "content": [], "stop_reason": None, "usage": used}
        return _named({"type": "message_start", "message": started})

    def said(self, step: Saying) -> Iterator[bytes]:
        if not (self.in_text and isinstance(step, str)):
            yield from self._close_text()
            self.block += 1
            yield self._block("start", content_block=_EMPTY[type(step)](step))
        for delta in _anthropic_deltas(step):
            yield self._block("delta", delta=delta)
        self.in_text = isinstance(step, str)
        if not self.in_text:
            yield self._block("stop")

    def failed(self, failure: Failure) -> bytes:
        return _named(self.failure(failure))

    def ended(self, steps: Sequence[Step]) -> Iterator[bytes]:
        yield from self._close_text()
        ended = {"stop_reason": _stop(steps), "stop_sequence": None}
        yield _named({"type": "message_delta", "delta": ended, "usage": self._used(steps)})
        yield _named({"type": "message_stop"})

    def message(self, steps: Sequence[Step]) -> Json:
        said = [_ANTHROPIC_BLOCK[type(step)](step) for step in steps if type(step) in _ANTHROPIC_BLOCK]
        return {
            **self._envelope(),
            "content": said,
            "stop_reason": _stop(steps),
            "usage": self._used(steps),
        }

    def failure(self, failure: Failure) -> Json:
        return {"type": "error", "error": {"type": failure.kind, "message": failure.message}}

    def _close_text(self) -> Iterator[bytes]:
        if self.in_text:
            yield self._block("stop")
            self.in_text = False

    def _block(self, what: str, **more: Json) -> bytes:
        return _named({"type": f"content_block_{what}", "index": self.block, **more})

    def _envelope(self) -> Json:
        return {
            "id": f"msg_{self.number:06}",
            "type": "message",
            "role": "assistant",
            "model": self.body["model"],
            "stop_sequence": None,
        }

    def _used(self, steps: Sequence[Step]) -> Json:
        used = _usage(steps)
        return {
            "input_tokens": (used.input or 0) - used.cache_read - used.cache_write,
            "cache_read_input_tokens": used.cache_read,
            "cache_creation_input_tokens": used.cache_write,
            "output_tokens": used.output if used.input is not None else 0,
        }


_EMPTY: dict[type, Callable[[Any], Json]] = {
    str: lambda _: {"type": "text", "text": ""},
    Thinking: lambda _: {"type": "thinking", "thinking": "", "signature": ""},
    ToolUse: lambda step: {"type": "tool_use", "id": step.id, "name": step.name, "input": {}},
}
_ANTHROPIC_BLOCK: dict[type, Callable[[Any], Json]] = {
    str: lambda step: {"type": "text", "text": step},
    Thinking: lambda step: {"type": "thinking", "thinking": step.text, "signature": step.signature},
    ToolUse: lambda step: {"type": "tool_use", "id": step.id, "name": step.name, "input": step.input},
}


def _anthropic_deltas(step: Saying) -> Iterator[Json]:
    if isinstance(step, str):
        yield {"type": "text_delta", "text": step}
    elif isinstance(step, Thinking):
        yield {"type": "thinking_delta", "thinking": step.text}
        yield {"type": "signature_delta", "signature": step.signature}
    else:
        for fragment in _halves(step):
            yield {"type": "input_json_delta", "partial_json": fragment}


class _OpenAi(_Wire):
    tools = 0

    def begun(self, steps: Sequence[Step]) -> bytes:  # noqa: ARG002 - nothing is known yet on this wire
        return self._chunk({"role": "assistant", "content": ""})

    def said(self, step: Saying) -> Iterator[bytes]:
        if isinstance(step, str):
            yield self._chunk({"content": step})
        elif isinstance(step, Thinking):
            yield self._chunk({"reasoning_content": step.text})
        else:
            begun = _openai_tool(ToolUse(step.name, "", step.id))
            yield self._chunk({"tool_calls": [{"index": self.tools, **begun}]})
            for fragment in _halves(step):
                yield self._chunk(
                    {"tool_calls": [{"index": self.tools, "function": {"arguments": fragment}}]}
                )
            self.tools += 1

    def failed(self, failure: Failure) -> bytes:
        return _data(self.failure(failure))

    def ended(self, steps: Sequence[Step]) -> Iterator[bytes]:
        yield self._chunk({}, _OPENAI_STOP[_stop(steps)])
        if _usage(steps).input is not None:
            yield _data(
                {**self._envelope("chat.completion.chunk"), "choices": [], "usage": self._used(steps)}
            )
        yield b"data: [DONE]\n\n"

    def message(self, steps: Sequence[Step]) -> Json:
        message: Json = {
            "role": "assistant",
            "content": "".join(step for step in steps if isinstance(step, str)) or None,
        }
        if tools := [_openai_tool(step) for step in steps if isinstance(step, ToolUse)]:
            message["tool_calls"] = tools
        choice = {"index": 0, "message": message, "finish_reason": _OPENAI_STOP[_stop(steps)]}
        whole = {**self._envelope("chat.completion"), "choices": [choice]}
        return whole if _usage(steps).input is None else {**whole, "usage": self._used(steps)}

    def failure(self, failure: Failure) -> Json:
        return {"error": {"message": failure.message, "type": failure.kind, "param": None, "code": None}}

    def _envelope(self, what: str) -> Json:
        return {
            "id": f"chatcmpl-{self.number:06}",
            "object": what,
            "created": 1_760_000_000,
            "model": self.body["model"],
        }

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({**self._envelope("chat.completion.chunk"), "choices": [choice]})

    def _used(self, steps: Sequence[Step]) -> Json:
        used = _usage(steps)
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": (used.input or 0) + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cache_read},
        }


_OPENAI_STOP = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def _openai_tool(step: ToolUse) -> Json:
    return {
        "id": step.id,
        "type": "function",
        "function": {"name": step.name, "arguments": _arguments(step)},
    }


WIRES: dict[str, type[_Wire]] = {"/v1/messages": _Anthropic, "/v1/chat/completions": _OpenAi}


def _stop(steps: Sequence[Step]) -> str:
    given = [step.reason for step in steps if isinstance(step, Stop)]
    tools = any(isinstance(step, ToolUse) for step in steps)
    return given[-1] if given else "tool_use" if tools else "end_turn"


def _usage(steps: Sequence[Step]) -> Used:
    return next((step for step in steps if isinstance(step, Used)), Used())


def _arguments(step: ToolUse) -> str:
    return step.input if isinstance(step.input, str) else json.dumps(step.input)


def _halves(step: ToolUse) -> tuple[str, str]:
    """The arguments as providers send them: in fragments that are no JSON by themselves."""
    text = _arguments(step)
    return text[: len(text) // 2], text[len(text) // 2 :]


def _encoded(value: Json) -> bytes:
    return json.dumps(value).encode()


def _data(event: Json) -> bytes:
    return b"data: %b\n\n" % _encoded(event)


def _named(event: Json) -> bytes:
    return b"event: %b\n%b" % (event["type"].encode(), _data(event))


def _gone(client: socket.socket) -> bool:
    readable, _, _ = select.select([client], [], [], 0)
    return bool(readable) and client.recv(1, socket.MSG_PEEK) == b""
