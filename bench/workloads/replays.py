"""Measures agents over their pipes, in the environment that Hitherto runs in: `python -m bench.workloads.replays FOLDER SIZES`.

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

import hitherto
from bench.workloads.replay_client import Agent, Json, ours
from hitherto.model import LOCAL, Draft, Text

TEXT = "message %8d of a long conversation about one thing"


async def told(url: str, count: int) -> str:
    """A session of so many messages."""
    async with hitherto.open(url) as sessions:
        session = await sessions.create(LOCAL, cwd="/somewhere", title="Long")
        for start in range(0, count, 10_000):
            drafts = [
                Draft(role="assistant" if number % 2 else "user", parts=(Text(text=TEXT % number),))
                for number in range(start, min(start + 10_000, count))
            ]
            await sessions.append(LOCAL, session.id, drafts)
    return session.id


def load(agent: Agent, session_id: str, keep: list[bytes] | None = None) -> float:
    """Updates per second of one replay."""
    began = time.perf_counter()
    seen = agent.call("session/load", {"sessionId": session_id, "cwd": "/somewhere", "mcpServers": []}, keep)
    return seen / (time.perf_counter() - began)


def replayed(folder: Path, sizes: Json) -> Json:
    """Updates per second of all three, in turns; the most memory of ours, for a short and a long session.

    Each agent replays once before it is measured: ours answers `initialize` before it has imported anything, and how
    long it takes to be ready is another figure.
    """
    url, short_url = f"sqlite:///{folder / 'long.db'}", f"sqlite:///{folder / 'short.db'}"
    session_id = asyncio.run(told(url, sizes["messages"]))
    agents, kept = {"ours": Agent(*ours(url))}, list[bytes]()
    load(agents["ours"], session_id, kept)
    assert len(kept) == sizes["messages"]
    long_peak, short_peak = agents["ours"].peak_bytes(), _short_peak(short_url, sizes["few"])
    (folder / "lines").write_bytes(b"".join(kept))
    (folder / "some").write_bytes(b"".join(kept[: sizes["sdk_messages"]]))
    for name, file in (("sdk", "some"), ("splice", "lines")):
        agents[name] = Agent("-m", "bench.workloads.replay_agents", name, str(folder / file))
        load(agents[name], session_id)
    speeds: dict[str, list[float]] = {name: [] for name in agents}
    for _ in range(sizes["rounds"]):
        for name, agent in agents.items():
            speeds[name].append(load(agent, session_id))
    for agent in agents.values():
        agent.end()
    medians = {name: statistics.median(figures) for name, figures in speeds.items()}
    return {**medians, "short_peak": short_peak, "long_peak": long_peak}


def _short_peak(url: str, count: int) -> int:
    session_id = asyncio.run(told(url, count))
    agent = Agent(*ours(url))
    load(agent, session_id)
    peak = agent.peak_bytes()
    agent.end()
    return peak


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
    os.environ.pop("HITHERTO_MODEL", None)
    json.dump({**replayed(folder, sizes), **started(folder, sizes["starts"])}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
