"""A turn whose answer is streamed, stored and watched, beside bare pydantic-ai that streams the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_most, duration, times
from bench.harness.sizes import Sizes

MOST = 1.5
RUNTIME = "BENCH_RUNTIME"
"""Names the Python of the environment that Hitherto runs in: models and peers want different packages."""


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    chunks, rounds = sizes.turn_chunks, sizes.turn_rounds
    meter.begin("Turns", 1)
    python = os.environ.get(RUNTIME, sys.executable)
    command = (python, "-m", "bench.workloads.turns", str(chunks), str(rounds), str(folder))
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    meter.step()
    bars, rows = list[Bar](), list[list[str]]()
    for wire, (bare, ours) in json.loads(done.stdout).items():
        ratio = ours / bare
        promise = f"{wire}: a turn at most 1.5 times the CPU of bare streaming"
        bars.append(at_most(promise, ratio, MOST, f"{times(ratio)} times"))
        rows += [
            [f"{wire}, bare pydantic-ai", duration(bare), "1"],
            [f"{wire}, a turn of Hitherto", duration(ours), times(ratio)],
        ]
    return Part(
        title="Turns",
        method=(
            f"One answer of {chunks:,} chunks, sent as fast as it is taken by a provider in another process. Bare:"
            " `pydantic_ai.direct.model_request_stream`, every event looked at. Ours: a whole turn into an SQLite store, each"
            " chunk handed to a watcher in the process, the text so far shown to a second connection that follows it, the"
            f" prompt and the answer stored. CPU of all threads, the median of {rounds} turns after one that is not counted."
        ),
        bars=bars,
        tables=[Table(f"CPU of {chunks:,} chunks.", ("", "CPU", "times bare"), rows)],
    )
