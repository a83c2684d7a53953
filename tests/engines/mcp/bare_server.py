"""A server without the SDK: it starts at once, speaks the older protocol, and does what no SDK would do.

    python bare_server.py [wait PIPE | say TEXT]

`wait` tells its process id through a named pipe before it begins, and then waits for a word through the one that is
named PIPE.go; `say` prints a line that is no message first.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def offer(*more: str) -> None:
    TOOLS.extend(more)
    tell({"method": "notifications/tools/list_changed"})


ACTS: dict[str, Callable[[], object]] = {
    "pid": lambda: None,
    "mute": lambda: None,
    "deafen": lambda: os.close(0),
    "grow": lambda: offer("grown"),
    "swarm": lambda: offer(*(f"bee{number}" for number in range(1_000))),
    "die": lambda: os._exit(7),
    "flood": lambda: sys.stdout.write("x" * (9 << 20)),
    "noise": lambda: sys.stdout.write("what a noise\n"),
    "grumble": lambda: sys.stderr.write("grumble " * (3 << 20)),
    "doze": lambda: None,
}
DEEP = "[" * 5_000 + "]" * 5_000
LINES = {
    "halves": '{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "a\\ud800b"}]}}',
    "deep": '{"jsonrpc": "2.0", "id": %s, "result": {"content": [], "structuredContent": {"x": '
    + DEEP
    + "}}}",
    "behind": '{"result": {"id": 0, "is": "method", "x": ' + DEEP + '}, "jsonrpc": "2.0", "id": %s}',
    "cut": '{"jsonrpc": "2.0", "id": %s, "result": {"content": [',
    "empty": '{"jsonrpc": "2.0", "id": %s}',
}
"""What is printed for an answer, with the id of the request in it."""
TOOLS = [*ACTS, *LINES, "long"]


def call(name: str, id: Any) -> dict[str, Any] | None:
    if name in LINES:
        sys.stdout.write(LINES[name] % json.dumps(id) + "\n")
        sys.stdout.flush()
        return None
    if name == "long":
        return text("x" * 7_000_000)
    ACTS[name]()
    return None if name == "mute" else text(str(os.getpid()))


def answer(method: str, given: dict[str, Any], id: Any) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "bare", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    return call(given["name"], id)


def main(what: str = "", where: str = "") -> None:
    if what == "wait":
        with open(where, "w") as pipe:
            pipe.write(str(os.getpid()))
        with open(where + ".go") as pipe:
            pipe.read(1)
    elif what == "say":
        print(where, flush=True)  # noqa: T201
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] not in ("initialize", "tools/list", "tools/call"):
            tell({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
        elif (result := answer(request["method"], request.get("params", {}), request["id"])) is not None:
            tell({"id": request["id"], "result": result})
        if request.get("params", {}).get("name") in ("deafen", "doze"):
            signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
