"""`hitherto acp` over its pipes: replay beside an agent of the protocol's Python package and beside prepared bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.harness.progress import Meter
from bench.harness.results import Part, Table, at_least, at_most, duration, times
from bench.harness.sizes import Sizes
from bench.parts.turns import RUNTIME

TEN = "replay: at least 10 times the updates per second of an agent made with the Python SDK"
HALF = "replay: at least 0.5 of prepared bytes down a pipe"
FLAT = "replay: the same peak memory for 1,000 and for 100,000 updates (within a tenth)"
START = "from the start of the process to the `initialize` answer: at most 2 times `import msgspec`"


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("ACP", 1)
    asked = {
        "messages": sizes.replay_messages,
        "few": sizes.replay_few,
        "sdk_messages": sizes.replay_sdk_messages,
        "rounds": sizes.replay_rounds,
        "starts": sizes.replay_starts,
    }
    python = os.environ.get(RUNTIME, sys.executable)
    command = (python, "-m", "bench.workloads.replays", str(folder), json.dumps(asked))
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    meter.step()
    by_sdk, by_splice = found["ours"] / found["sdk"], found["ours"] / found["splice"]
    memory, start = found["long_peak"] / found["short_peak"], found["initialize"] / found["import"]
    return Part(
        title="ACP",
        method=(
            f"`session/load` of a conversation of {sizes.replay_messages:,} short messages"
            f" ({sizes.replay_sdk_messages:,} for the agent made with the Python SDK), each agent a process of its own, all"
            " read by the same client, which decodes every line; the median of"
            f" {sizes.replay_rounds} replays, in turns, after one that does not count. The agent made with the Python SDK"
            " sends the same updates, ids and times included; prepared bytes are the very lines of our replay, from memory."
        ),
        bars=[
            at_least(TEN, by_sdk, 10, f"{times(by_sdk)} times"),
            at_least(HALF, by_splice, 0.5, f"{times(by_splice)} of it"),
            at_most(
                FLAT,
                memory,
                1.1,
                f"{found['short_peak'] / 1e6:.0f} MB and {found['long_peak'] / 1e6:.0f} MB: {times(memory)}",
            ),
            at_most(START, start, 2, f"{times(start)} times ({duration(found['initialize'])})"),
        ],
        tables=[
            Table(
                "Replay.",
                ("", "updates per second"),
                [
                    ["prepared bytes", f"{found['splice']:,.0f}"],
                    ["`hitherto acp`", f"{found['ours']:,.0f}"],
                    ["an agent made with the Python SDK", f"{found['sdk']:,.0f}"],
                ],
            )
        ],
    )
