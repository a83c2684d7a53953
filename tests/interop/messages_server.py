"""A stand-in for the Messages API on the loopback interface: it answers by rules and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.waits import is_over

Json = dict[str, Any]
Answer = Callable[[Json], list[Json]]
"""From a request's body to the content blocks of the reply."""


class MessagesServer:
    """`requests` are the bodies of all messages asked for, in order; `answer` may be replaced at any time."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.answer: Answer = lambda _: [{"type": "text", "text": "Noted."}]
        self.url = ""


@contextmanager
def serving() -> Iterator[MessagesServer]:
    """A running server; it ends with the block."""
    server = MessagesServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.split("?")[0] == "/v1/messages":
                server.requests.append(body)
                self._reply(*_message(server.answer(body), len(server.requests), body))
            else:
                self._reply("application/json", b'{"input_tokens": 1}')

        def do_GET(self) -> None:
            self._reply("application/json", b"{}")

        def do_HEAD(self) -> None:
            self._reply("application/json", b"")

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

        def _reply(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            is_over(thread, "the end of the server")


def _message(blocks: list[Json], number: int, body: Json) -> tuple[str, bytes]:
    """The reply, in one piece or as a stream of events, as it was asked for."""
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    message: Json = {
        "id": f"msg_{number:06}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    if not body.get("stream"):
        return "application/json", json.dumps(message).encode()
    events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        events.extend(_block_events(index, block))
    ended = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "text/event-stream", "".join(lines).encode()


def _block_events(index: int, block: Json) -> list[Json]:
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]
