"""Turns through a proxy and through a plain relay: `python -m bench.workloads.proxy_turns FOLDER SIZES`.

Prints, for each pace, the CPU per update of the process in the middle, as JSON. `python -m bench.workloads.proxy_turns plain COMMAND…` is
that relay: a thread for each direction, which reads what is there and writes it. `python -m bench.workloads.proxy_turns agent` is an
agent whose prompts say how many updates it sends, and whether it waits a little before each.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

Json = dict[str, Any]
CHUNK = 256 * 1024
PAUSE_SECONDS = 0.001
UPDATE = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
    '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"some more words of an answer"}}}}\n'
)
ANSWERS: dict[str, Json] = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}


def agent() -> None:
    """See the module."""
    out = sys.stdout
    for line in sys.stdin:
        request = json.loads(line)
        if request["method"] == "session/prompt":
            _stream(**json.loads(request["params"]["prompt"][-1]["text"]))
        result = ANSWERS.get(request["method"], {"stopReason": "end_turn"})
        out.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        out.flush()


def _stream(updates: int, paced: bool) -> None:
    if not paced:
        sys.stdout.write(UPDATE * updates)
        return
    for _ in range(updates):
        time.sleep(PAUSE_SECONDS)
        sys.stdout.write(UPDATE)
        sys.stdout.flush()


def plain(command: list[str]) -> None:
    """See the module."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        ends = (child.stdin.fileno(), child.stdout.fileno())
        back = threading.Thread(target=_copy, args=(ends[1], 1))
        back.start()
        _copy(0, ends[0])
        child.stdin.close()
        back.join()


def _copy(source: int, target: int) -> None:
    while chunk := os.read(source, CHUNK):
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(target, rest) :]


class Middle:
    """A process between this client and the agent, with a session open."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._meter = psutil.Process(self._process.pid)
        self._ask("initialize", {"protocolVersion": 1})
        self._session = self._ask("session/new", {"cwd": str(folder), "mcpServers": []})[0]["sessionId"]

    def cost(self, updates: int, *, paced: bool) -> float:
        """The CPU of one update of a turn of so many, in seconds."""
        script = json.dumps({"updates": updates, "paced": paced})
        before = self._spent()
        prompt = [{"type": "text", "text": script}]
        _, seen = self._ask("session/prompt", {"sessionId": self._session, "prompt": prompt})
        assert seen >= updates
        return (self._spent() - before) / updates

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _spent(self) -> float:
        spent = self._meter.cpu_times()
        return float(spent.user + spent.system)

    def _ask(self, method: str, params: Json) -> tuple[Json, int]:
        """The result, and how many lines came before it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        for seen, answer in enumerate(self._process.stdout):
            if b'"id":1' in answer or b'"id": 1' in answer:
                result: Json = json.loads(answer)["result"]
                return result, seen
        raise AssertionError("the process in the middle has left")


def main(folder: Path, sizes: Json) -> None:
    """Measure both, in turns."""
    behind = [sys.executable, "-m", "bench.workloads.proxy_turns", "agent"]
    store = f"sqlite:///{folder / 'proxy.db'}"
    proxy = [sys.executable, "-m", "hitherto", "acp", "--store", store, "--agent", " ".join(behind)]
    middles = {
        "plain": [sys.executable, "-m", "bench.workloads.proxy_turns", "plain", *behind],
        "proxy": proxy,
    }
    open_ones = {name: Middle(folder, command) for name, command in middles.items()}
    found: dict[str, dict[str, float]] = {}
    for pace, updates in (("flood", sizes["updates"]), ("paced", sizes["paced"])):
        costs: dict[str, list[float]] = {name: [] for name in middles}
        for _ in range(sizes["rounds"] + 1):
            for name, middle in open_ones.items():
                costs[name].append(middle.cost(updates, paced=pace == "paced"))
        found[pace] = {name: statistics.median(each[1:]) for name, each in costs.items()}
    for middle in open_ones.values():
        middle.close()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent"]:
            agent()
        case ["plain", *command]:
            plain(command)
        case [folder, sizes]:
            main(Path(folder), json.loads(sizes))
