"""`hitherto acp --agent` beside a relay that only copies bytes: what recording costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.harness.progress import Meter
from bench.harness.results import Part, Table, at_most, duration
from bench.harness.sizes import Sizes
from bench.parts.turns import RUNTIME

LIMIT_SECONDS = 20e-6
PROMISE = "proxy: at most 20 µs of CPU per update over a plain relay"
NAMES = {"flood": "as fast as the agent writes", "paced": "one at a time, a millisecond apart"}


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("ACP proxy", 1)
    asked = {"updates": sizes.proxy_updates, "paced": sizes.proxy_paced, "rounds": sizes.proxy_rounds}
    python = os.environ.get(RUNTIME, sys.executable)
    command = (python, "-m", "bench.workloads.proxy_turns", str(folder), json.dumps(asked))
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    meter.step()
    over = found["flood"]["proxy"] - found["flood"]["plain"]
    return Part(
        title="ACP proxy",
        method=(
            f"Turns of {sizes.proxy_updates:,} updates that the agent writes at once, and of {sizes.proxy_paced:,} that it"
            " writes one by one, a millisecond apart; each is a short piece of text, and all of it is recorded in SQLite"
            " before the turn is answered. The CPU of the process in the middle, user and system, between prompt and"
            f" answer; the median of {sizes.proxy_rounds} turns, in turns, after one that does not count. The plain relay"
            " is a Python program with a thread for each direction that reads what is there and writes it; updates that come"
            " one at a time cost either of them mostly the waking up."
        ),
        bars=[at_most(PROMISE, over, LIMIT_SECONDS, duration(over))],
        tables=[
            Table(
                "CPU per update.",
                ("", "plain relay", "`hitherto acp --agent`"),
                [
                    [NAMES[pace], duration(each["plain"]), duration(each["proxy"])]
                    for pace, each in found.items()
                ],
            )
        ],
    )
