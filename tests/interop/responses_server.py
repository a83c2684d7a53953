"""A stand-in for the Responses API on the loopback interface: it answers by rules and remembers what it was asked."""

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
"""From a request's body to the items of the reply."""


def message(text: str) -> Json:
    """The model says something."""
    return {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": text}],
    }


def call(name: str, arguments: Json) -> Json:
    """The model uses a tool."""
    return {"type": "function_call", "call_id": "call_1", "name": name, "arguments": json.dumps(arguments)}


class ResponsesServer:
    """`requests` are the bodies of all answers asked for, in order; `answer` may be replaced at any time."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.answer: Answer = lambda _: [message("Noted.")]
        self.url = ""


@contextmanager
def serving() -> Iterator[ResponsesServer]:
    """A running server; it ends with the block."""
    server = ResponsesServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.split("?")[0] != "/v1/responses":
                self._reply("application/json", b"{}", status=404)
                return
            server.requests.append(body)
            self._reply("text/event-stream", _stream(server.answer(body), len(server.requests)))

        def do_GET(self) -> None:
            self._reply("application/json", b'{"models": []}')

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

        def _reply(self, kind: str, data: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            is_over(thread, "the end of the server")


def _stream(items: list[Json], number: int) -> bytes:
    """The reply as a stream of events."""
    response: Json = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": items}
    used = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    events: list[Json] = [{"type": "response.created", "response": {**response, "output": []}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": {**response, "usage": used}})
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()
