"""Measures pages of `session/list` over an agent's pipes: `python -m bench.workloads.acp_pages ROUNDS CALLS STORE…`.

Prints JSON: for each store, for each filter and depth, the seconds of the agent's CPU for a page.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence

from bench.workloads.replay_client import Agent, Json, ours

FILTERS: dict[str, Json] = {"plain": {}, "in a folder": {"cwd": "/projects/often"}}


def depths(agent: Agent, given: Json) -> dict[str, Json]:
    """What to ask for the first, the middle and the last full page: found by walking the whole list."""
    asked = [given]
    while (cursor := agent.ask("session/list", asked[-1]).get("nextCursor")) is not None:
        asked.append({**given, "cursor": cursor})
    return {"first": asked[0], "middle": asked[len(asked) // 2], "deepest": asked[-2]}


def cost(agent: Agent, params: Json, calls: int) -> float:
    """Seconds of CPU for a page."""
    before = agent.cpu_seconds()
    for _ in range(calls):
        agent.ask("session/list", params)
    return (agent.cpu_seconds() - before) / calls


def measured(rounds: int, calls: int, urls: Sequence[str]) -> Json:
    """All stores, filters and depths in turns; the median of the rounds, after one that does not count."""
    agents = {url: Agent(*ours(url)) for url in urls}
    jobs = {
        (url, f"{name}, {depth}"): params
        for url, agent in agents.items()
        for name, given in FILTERS.items()
        for depth, params in depths(agent, given).items()
    }
    costs: dict[tuple[str, str], list[float]] = {job: [] for job in jobs}
    for number in range(rounds + 1):
        for job, params in jobs.items():
            seconds = cost(agents[job[0]], params, calls)
            if number:
                costs[job].append(seconds)
    for agent in agents.values():
        agent.end()
    return {
        url: {page: statistics.median(found) for (of, page), found in costs.items() if of == url}
        for url in urls
    }


if __name__ == "__main__":
    json.dump(measured(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]), sys.stdout)
