"""Forking a long session of Claude Code's: against the SDK's own function, on the same file."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.harness.progress import Meter
from bench.harness.results import Bar, Part, Table, at_least, at_most, duration, not_measured, times
from bench.harness.sizes import Sizes
from tests.claude.transcripts import large

OURS, THEIRS = "hitherto.claude", "claude_agent_sdk"
FASTER = 3
HEAVIER = 4
SPEED = f"`fork_session` of a large session: at least {FASTER} times faster than the SDK's, by CPU"
MEMORY = f"… and never more memory than {HEAVIER} times the file"

# One fork first that does not count. Each is removed, so that all find the same folder. The peak that Linux tells of a
# process by getrusage is also that of the process which started it.
WORK = """
import json, re, resource, sys, time
from importlib import import_module
from pathlib import Path

def peak():
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text()).group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

fork_session = import_module(sys.argv[1]).fork_session
folder = Path(sys.argv[2])
used, spent = peak(), []
for _ in range(4):
    began = time.process_time()
    made = fork_session(sys.argv[3]).session_id
    spent.append(time.process_time() - began)
    (folder / f"{made}.jsonl").unlink()
print(json.dumps({"cpu": min(spent[1:]), "memory": peak() - used}))
"""


class Measured(msgspec.Struct):
    """What one process found: the CPU seconds of its best fork, and by how many bytes it grew."""

    cpu: float
    memory: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The middle of all processes in CPU, the most of them in memory."""

    cpu: float
    memory: int


def run(sizes: Sizes, folder: Path, meter: Meter) -> Part:
    """Measure and judge."""
    meter.begin("Claude Code: forks", sizes.fork_rounds * 2)
    projects = folder / "forks" / "projects"
    session = large(projects, sizes.fork_bytes)
    (path,) = projects.glob(f"*/{session}.jsonl")
    size = path.stat().st_size
    found: dict[str, list[Measured]] = {OURS: [], THEIRS: []}
    for _ in range(sizes.fork_rounds):
        for module, measured in found.items():
            measured += _measure(module, path, session, meter)
            meter.step()
    costs = {
        module: Cost(statistics.median(one.cpu for one in measured), max(one.memory for one in measured))
        for module, measured in found.items()
        if measured
    }
    return Part(
        title="Claude Code: forks",
        method=(
            f"One transcript of {size / 1e6:.0f} MB, a tenth of it conversation, forked by processes of their own, in "
            f"turns; the median of {sizes.fork_rounds}. Ours is on disk when it returns, the SDK's is not."
        ),
        bars=[fork_bar(costs), memory_bar(costs, size)],
        tables=[_table(costs, size)],
    )


def fork_bar(costs: dict[str, Cost]) -> Bar:
    """Whether ours is as much faster as promised."""
    if len(costs) < 2:
        return not_measured(SPEED, f"only {', '.join(costs) or 'nothing'} could fork")
    ratio = costs[THEIRS].cpu / costs[OURS].cpu
    figure = f"{times(ratio)} times ({duration(costs[OURS].cpu)} against {duration(costs[THEIRS].cpu)})"
    return at_least(SPEED, ratio, FASTER, figure)


def memory_bar(costs: dict[str, Cost], size: int) -> Bar:
    """Whether ours stays within its memory."""
    if OURS not in costs:
        return not_measured(MEMORY, "the fork failed")
    ratio = costs[OURS].memory / size
    return at_most(MEMORY, ratio, HEAVIER, f"{times(ratio)} times")


def _measure(module: str, path: Path, session: str, meter: Meter) -> list[Measured]:
    """One process; nothing if it failed."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "CLAUDE_CONFIG_DIR": str(path.parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-c", WORK, module, str(path.parent), session],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        meter.say(f"{module}: {done.stderr.strip().splitlines()[-1]}")
        return []
    return [msgspec.json.decode(done.stdout, type=Measured)]


def _table(costs: dict[str, Cost], size: int) -> Table:
    rows = [
        [f"`{module}`", duration(cost.cpu), f"{cost.memory / 1e6:.0f} MB", times(cost.memory / size)]
        for module, cost in costs.items()
    ]
    return Table("One fork of the whole session.", ("", "CPU", "memory it took", "/ file"), rows)
