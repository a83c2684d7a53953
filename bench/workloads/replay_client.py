"""The client that reads what agents say: the same for every agent that is measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import msgspec

Json = dict[str, Any]
INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


class Agent:
    """An agent process, spoken to line by line. Each line that comes is decoded, as any client must."""

    def __init__(self, *command: str) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            (sys.executable, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self.ask("initialize", INITIALIZE)
        self.ready = time.perf_counter() - began

    def call(self, method: str, params: Json, keep: list[bytes] | None = None) -> int:
        """Make a request; the number of messages that come before its answer."""
        return self._ask(method, params, keep)[0]

    def ask(self, method: str, params: Json) -> Json:
        """Make a request; its result."""
        result: Json = self._ask(method, params, None)[1]["result"]
        return result

    def peak_bytes(self) -> int:
        """The most memory that it ever had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def cpu_seconds(self) -> float:
        """The processor time that all its threads have used; this is how Linux names the clock of another process."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def end(self) -> None:
        """Close its input, and see it leave."""
        self._in.close()
        self._process.wait()
        self._out.close()

    def _ask(self, method: str, params: Json, keep: list[bytes] | None) -> tuple[int, Json]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._in.write(json.dumps(request).encode() + b"\n")
        self._in.flush()
        decode = msgspec.json.decode
        for seen, line in enumerate(self._out):
            message = decode(line)
            if "id" in message:
                assert "error" not in message, message
                return seen, message
            if keep is not None:
                keep.append(line)
        raise AssertionError("the agent has exited or closed the connection")


def ours(url: str) -> tuple[str, ...]:
    """The command of Hitherto's agent."""
    return ("-m", "hitherto", "acp", "--store", url)
