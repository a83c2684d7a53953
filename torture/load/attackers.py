"""Requests that cost as much as they can, in a process of their own: `python -m torture.load.attackers`, told by a line of JSON.

It says `ready` when the first of them are on their way, and goes on until its input ends; what strikes only once says `over` after
it.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import apsw
import msgspec

LINES = 4
"""So many connections strike at once."""
HALF_SENT, BODY_BYTES = 40, 16 << 20
SECONDS = 600.0
REFUSED = (400, 401, 403, 404)
ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to strike, as whom, and with what: see `ATTACKS`. `file` is the store's."""

    port: int
    token: str
    cookie: str
    session: str
    file: str
    attack: str

    def ask(self, method: str, path: str, body: bytes | None = None) -> int:
        """The status of the answer, which is read to its end."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        known = (
            {"Cookie": self.cookie, "X-Hitherto": "1", "Sec-Fetch-Site": "same-origin"}
            if body is None
            else {"Authorization": f"Bearer {self.token}", **ACCEPTED}
        )
        try:
            line.request(method, path, body, known)
            answer = line.getresponse()
            answer.read()
            return answer.status
        finally:
            line.close()

    def call(self, path: str, method: str, params: dict[str, Any]) -> None:
        """The same for a request of JSON-RPC."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        if self.ask("POST", path, json.dumps(asked).encode()) in REFUSED:
            raise RuntimeError(f"{method} is refused")


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _view(target: Target) -> None:
    if target.ask("GET", f"/s/{target.session}") in REFUSED:
        raise RuntimeError("no page is made for somebody who is not let in")


def _search_broadly(target: Target) -> None:
    target.call("/rpc", "session.search", {"query": "w*"})


def _search_once(target: Target) -> None:
    _search_broadly(target)
    _say("over")
    threading.Event().wait()


def _search_new(target: Target) -> None:
    said = [{"role": "user", "content": "once more"}]
    target.call("/rpc", "session.append", {"session_id": target.session, "messages": said})
    target.call("/rpc", "session.search", {"query": "once"})


def _read_by_tool(target: Target) -> None:
    given = {"session_id": target.session, "limit": 50}
    target.call("/mcp", "tools/call", {"name": "sessions_read", "arguments": given})


def _half_send(target: Target) -> None:
    """Forty at once, which are held."""
    head = (
        f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nAuthorization: Bearer {target.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {2 * BODY_BYTES}\r\n\r\n"
    )
    with ExitStack() as lines:
        for _ in range(HALF_SENT):
            line = socket.create_connection(("127.0.0.1", target.port), timeout=SECONDS)
            lines.enter_context(line)
            with suppress(OSError):  # refused before it has come so far
                line.sendall(head.encode() + bytes(BODY_BYTES))
        _say("over")
        threading.Event().wait()


ATTACKS: dict[str, tuple[Callable[[Target], None], int]] = {
    "views": (_view, 6),
    "broad searches": (_search_broadly, LINES),
    "a first search": (_search_once, 1),
    "searches behind a lock": (_search_new, LINES),
    "half-sent bodies": (_half_send, 1),
    "reads over MCP": (_read_by_tool, LINES),
}
"""What is done again and again, on how many connections."""


def main() -> None:
    """Strike until standard input ends."""
    target = msgspec.json.decode(sys.stdin.readline(), type=Target)
    strike, lines = ATTACKS[target.attack]
    with ExitStack() as stack:
        if target.attack == "searches behind a lock":
            holder = apsw.Connection(f"{target.file}-search")
            stack.callback(holder.close)
            holder.execute("BEGIN IMMEDIATE")
        for _ in range(lines):
            threading.Thread(target=_on_and_on, args=(strike, target), daemon=True).start()
        _say("ready")
        sys.stdin.read()


def _on_and_on(strike: Callable[[Target], None], target: Target) -> None:
    while True:
        try:
            with suppress(OSError, http.client.HTTPException):
                strike(target)
        except RuntimeError:
            os._exit(1)  # whoever measures hears it


if __name__ == "__main__":
    main()
