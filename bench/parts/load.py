"""`hitherto serve` under load: durable appends through sockets, subscribers that wait, and some that never read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, times
from bench.harness.sizes import Sizes
from bench.parts.turns import RUNTIME

HALF = "8 clients appending durably through WebSocket: at least 0.5 of the store's own rate with 8 writers"
WAITING = "an idle subscriber: under 50 KB of the server's memory"
SILENT = "a subscriber that never reads: under 1 MB of the server's memory"
RESUMED = "every subscriber that never reads is closed, and resumes from its last cursor"
OTHERS = "the other subscribers wait at most 2 times as long meanwhile (99 of 100 messages)"


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("Load", 1)
    asked = {
        "rounds": sizes.load_rounds,
        "slice": sizes.load_slice,
        "writers": sizes.writers,
        "idle": sizes.load_idle,
        "silent": sizes.load_silent,
        "calls": sizes.load_calls,
        "sessions": sizes.load_sessions,
        "history": sizes.load_history,
    }
    python = os.environ.get(RUNTIME, sys.executable)
    place = folder / "load"
    place.mkdir()
    command = (python, "-m", "bench.workloads.server_load", str(place), json.dumps(asked))
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    meter.step()
    return Part(
        title="Load",
        method=(
            f"`hitherto serve` on SQLite, spoken to by another process. Appends: messages of 1 KB, {sizes.load_slice} in"
            f" each of {sizes.load_rounds} rounds, shared by {sizes.writers} clients, each of which sends the next when the"
            " last one is answered; beside them, in turns, as many tasks that append to a store of their own. Both until the"
            f" search index is up to date; the median round. Waiting: {sizes.load_idle:,} sockets with a subscription each."
            f" Silent: {sizes.load_silent} sockets that subscribe to a session and read nothing: first of messages of 20 KB,"
            " more than is kept for anybody, then of 1 KB, until the server gives them up; the others are four that read. Reading: the CPU of the server's"
            " process for a request, and of a process that asks the store itself."
        ),
        bars=_bars(found, sizes),
        tables=[_table(found, sizes)],
    )


def _bars(found: dict[str, Any], sizes: Sizes) -> list[Bar]:
    bare, socket, silent = found["append"]["bare"], found["append"]["socket"], found["silent"]
    share, slower = socket["rate"] / bare["rate"], silent["beside"] / silent["alone"]
    resumed = min(silent["closed"], silent["resumed"])
    told = f"{duration(silent['beside'])}, before that {duration(silent['alone'])}"
    return [
        at_least(
            HALF, share, 0.5, f"{times(share)} of it ({socket['rate']:,.0f} of {bare['rate']:,.0f} a second)"
        ),
        at_most(WAITING, found["idle"], 50_000, f"{found['idle'] / 1e3:.0f} KB"),
        at_most(SILENT, silent["bytes"], 1_000_000, f"{silent['bytes'] / 1e3:.0f} KB"),
        at_least(RESUMED, resumed, sizes.load_silent, f"{resumed} of {sizes.load_silent}"),
        at_most(OTHERS, slower, 2, f"{times(slower)} times ({told})"),
    ]


def _table(found: dict[str, Any], sizes: Sizes) -> Table:
    append, rows = found["append"], list[list[str]]()
    names = {
        "list": f"the newest 50 of {sizes.load_sessions:,} sessions, and how many there are",
        "history": f"the newest 100 of {sizes.load_history:,} messages",
    }
    bare, socket = append["bare"]["cpu"], append["socket"]["cpu"]
    rows.append(["an append", duration(bare), duration(socket), times(socket / bare), "", ""])
    for name, told in names.items():
        own, served = found[name]["bare"], found[name]["served"]
        ratio = times(served["cpu"] / own["cpu"])
        walls = (duration(own["wall"]), duration(served["wall"]))
        rows.append([told, duration(own["cpu"]), duration(served["cpu"]), ratio, *walls])
    columns = ("", "CPU, bare store", "CPU, server", "times", "until it is there, bare", "… through a socket")
    return Table("One request.", columns, rows)
