"""The web page: what a page costs the server, and how many bytes it is, in a small store and in one a hundred times larger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration, times
from bench.harness.sizes import Sizes
from bench.parts.turns import RUNTIME

TIMES = 100
CPU, BYTES = 1.25, 1.05
NOT_PROMISED = ("found in the transcript", "search, a word that one session says again and again")
"""Shown, and not promised: they grow with how often one session has the word, up to a bound, and not with the store."""


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("Page", 1)
    asked = {
        "sessions": sizes.page_sessions,
        "bytes": sizes.page_bytes,
        "times": TIMES,
        "rounds": sizes.page_rounds,
        "calls": sizes.page_calls,
    }
    python = os.environ.get(RUNTIME, sys.executable)
    command = (python, "-m", "bench.workloads.page_views", str(folder), json.dumps(asked))
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    meter.step()
    bars, rows = list[Bar](), list[list[str]]()
    for name, got in found.items():
        cpu, size = got["many"] / got["few"], got["many_bytes"] / got["few_bytes"]
        if name not in NOT_PROMISED:
            figure = f"{times(cpu)} times ({duration(got['many'])})"
            bars.append(at_most(promise(name, "CPU"), cpu, CPU, figure))
            bars.append(at_most(promise(name, "bytes"), size, BYTES, f"{times(size)} times"))
        rows.append(
            [
                name,
                duration(got["few"]),
                duration(got["many"]),
                f"{got['few_bytes']:,}",
                f"{got['many_bytes']:,}",
            ]
        )
    return Part(
        title="The web page",
        method=(
            f"`hitherto serve` over a store of {sizes.page_sessions:,} sessions with {10 * sizes.page_sessions:,} messages and"
            f" one more session of {sizes.page_bytes / 1e6:,.0f} MB, and over one that is a hundred times smaller, in turns. CPU"
            f" is that of the server for one page, the median of {sizes.page_rounds} rounds of {sizes.page_calls} pages over one"
            " connection; bytes are those of the page as it is sent."
        ),
        bars=bars,
        tables=[Table("One page.", ("", "CPU, small", "CPU, large", "bytes, small", "bytes, large"), rows)],
    )


def promise(name: str, what: str) -> str:
    """What is promised of a page."""
    limit = {"CPU": CPU, "bytes": BYTES}[what]
    return f"page, {name}: {what} at most {limit} times as in a store a hundred times smaller"
