"""The list as editors get it: pages of `session/list` over the pipes of `hitherto acp`, among few and very many sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.harness.results import Bar, Table, at_most, duration, not_measured, times
from bench.harness.sizes import Sizes
from bench.parts.turns import RUNTIME

FLAT = 2.0
PROMISE = "a page of `session/list`, plain and of one folder, costs the agent the same at any depth among 1,000 and 1,000,000 sessions (the dearest within 2 times the cheapest)"

Pages = dict[int, dict[str, float]]
"""Seconds of the agent's CPU by number of sessions and by page."""


def measure(stores: Mapping[int, Path], sizes: Sizes) -> Pages:
    """Ask an agent for each store, all in turns; nothing if one failed."""
    urls = {size: f"sqlite:///{file}" for size, file in stores.items()}
    python = os.environ.get(RUNTIME, sys.executable)
    asked = (str(sizes.list_rounds), str(sizes.list_calls), *urls.values())
    found = subprocess.run(
        (python, "-m", "bench.workloads.acp_pages", *asked), stdout=subprocess.PIPE, check=False
    )
    if found.returncode:
        return {}
    costs = json.loads(found.stdout)
    return {size: costs[url] for size, url in urls.items()}


def bar(pages: Pages) -> Bar:
    """Whether the promise holds."""
    if not pages:
        return not_measured(PROMISE, "an agent failed")
    worst = max(_spreads(pages).values())
    return at_most(PROMISE, worst, FLAT, f"{times(worst)} times at worst")


def table(pages: Pages) -> Table:
    """All pages."""
    rows = [
        [
            given,
            times(spread),
            *(duration(pages[size][f"{given}, {depth}"]) for depth, size in _columns(pages)),
        ]
        for given, spread in _spreads(pages).items()
    ]
    columns = [
        "`session/list`",
        "dearest / cheapest",
        *(f"{depth}, {size:,}" for depth, size in _columns(pages)),
    ]
    return Table(
        "`hitherto acp`: CPU of the agent for a page of 50, asked for and read over its pipes.",
        columns,
        rows,
    )


def _columns(pages: Pages) -> list[tuple[str, int]]:
    return [(depth, size) for depth in ("first", "middle", "deepest") for size in pages]


def _spreads(pages: Pages) -> dict[str, float]:
    """Of each filter, the dearest page over the cheapest."""
    costs: dict[str, list[float]] = {}
    for by_page in pages.values():
        for page, seconds in by_page.items():
            costs.setdefault(page.rpartition(", ")[0], []).append(seconds)
    return {given: max(found) / min(found) for given, found in costs.items()}
