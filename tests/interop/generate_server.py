"""A stand-in for Gemini's API on the loopback interface: it answers by rules and remembers what it was asked."""

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
"""From a request's body to the parts of the reply."""


class GenerateServer:
    """`requests` are the bodies of all answers asked for, in order; `answer` may be replaced at any time."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.answer: Answer = lambda _: [{"text": "Noted."}]
        self.url = ""


@contextmanager
def serving() -> Iterator[GenerateServer]:
    """A running server; it ends with the block."""
    server = GenerateServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body: Json = json.loads(self.rfile.read(int(self.headers["content-length"])))
            server.requests.append(body)
            data = json.dumps(_reply(server.answer(body))).encode()
            if ":streamGenerateContent" in self.path:
                self._send("text/event-stream", b"data: %b\r\n\r\n" % data)
            else:
                self._send("application/json", data)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

        def _send(self, kind: str, data: bytes) -> None:
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


def _reply(parts: list[Json]) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    used = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": used, "modelVersion": "gemini-2.5-pro"}
