"""Measures agents over their pipes, in the environment that Recollect runs in: `python -m bench.replays FOLDER SIZES`.

`SIZES` is JSON: messages, few, sdk_messages, rounds, starts. Prints figures as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

import recollect
from recollect.model import LOCAL, Draft, Text

Json = dict[str, Any]
INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


class Agent:
    """An agent process, spoken to line by line. Each line that comes is decoded, as any client must."""

    def __init__(self, *command: str) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            (sys.executable, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        self.call("initialize", INITIALIZE)
        self.ready = time.perf_counter() - self.began

    def call(self, method: str, params: Json, keep: list[bytes] | None = None) -> int:
        """Make a request; the number of messages that come before its answer."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._in.write(json.dumps(request).encode() + b"\n")
        self._in.flush()
        decode = msgspec.json.decode
        for seen, line in enumerate(self._out):
            message = decode(line)
            if "id" in message:
                assert "error" not in message, message
                return seen
            if keep is not None:
                keep.append(line)
        raise AssertionError("the agent has left")

    def peak_bytes(self) -> int:
        """The most memory that it ever had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def end(self) -> None:
        """Close its input, and see it leave."""
        self._in.close()
        self._process.wait()
        self._out.close()


def ours(url: str) -> tuple[str, ...]:
    """The command of Recollect's agent."""
    return ("-m", "recollect", "acp", "--store", url)


async def told(url: str, count: int) -> tuple[str, list[str]]:
    """A session of so many messages, and their texts."""
    texts = [f"message {number:>8} of a long conversation about one thing" for number in range(count)]
    async with recollect.open(url) as sessions:
        session = await sessions.create(LOCAL, cwd="/somewhere", title="Long")
        for start in range(0, count, 10_000):
            drafts = [
                Draft(role="assistant" if number % 2 else "user", parts=(Text(text=texts[number]),))
                for number in range(start, min(start + 10_000, count))
            ]
            await sessions.append(LOCAL, session.id, drafts)
    return session.id, texts


def load(agent: Agent, session_id: str) -> float:
    """Updates per second of one replay."""
    began = time.perf_counter()
    seen = agent.call("session/load", {"sessionId": session_id, "cwd": "/somewhere", "mcpServers": []})
    return seen / (time.perf_counter() - began)


def replayed(folder: Path, sizes: Json) -> Json:
    """Updates per second of all three, in turns; the most memory of ours, for a short and a long session."""
    url, short_url = f"sqlite:///{folder / 'long.db'}", f"sqlite:///{folder / 'short.db'}"
    session_id, texts = asyncio.run(told(url, sizes["messages"]))
    short_id, _ = asyncio.run(told(short_url, sizes["few"]))
    (folder / "texts.json").write_text(json.dumps(texts[: sizes["sdk_messages"]]))
    first, kept = Agent(*ours(url)), list[bytes]()
    params = {"sessionId": session_id, "cwd": "/somewhere", "mcpServers": []}
    assert first.call("session/load", params, kept) >= sizes["messages"]
    long_peak = first.peak_bytes()
    first.end()
    short = Agent(*ours(short_url))
    load(short, short_id)
    short_peak = short.peak_bytes()
    short.end()
    (folder / "lines").write_bytes(b"".join(kept))
    commands = {
        "ours": ours(url),
        "sdk": ("-m", "bench.agents", "sdk", str(folder / "texts.json")),
        "splice": ("-m", "bench.agents", "splice", str(folder / "lines")),
    }
    speeds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(sizes["rounds"]):
        for name, command in commands.items():
            agent = Agent(*command)
            speeds[name].append(load(agent, session_id))
            agent.end()
    medians = {name: statistics.median(figures) for name, figures in speeds.items()}
    return {**medians, "short_peak": short_peak, "long_peak": long_peak}


def started(folder: Path, starts: int) -> Json:
    """Seconds until `initialize` is answered, and until a Python that only imports msgspec has ended; in turns."""
    url = f"sqlite:///{folder / 'short.db'}"
    answers, imports = list[float](), list[float]()
    for _ in range(starts):
        agent = Agent(*ours(url))
        answers.append(agent.ready)
        agent.end()
        imports.append(_run(("-c", "import msgspec")))
    return {"initialize": statistics.median(answers), "import": statistics.median(imports)}


def _run(arguments: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run((sys.executable, *arguments), check=True)
    return time.perf_counter() - began


def main(folder: Path, sizes: Json) -> None:
    """Measure everything."""
    os.environ.pop("RECOLLECT_MODEL", None)
    json.dump({**replayed(folder, sizes), **started(folder, sizes["starts"])}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
