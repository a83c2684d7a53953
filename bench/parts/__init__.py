"""The parts of the benchmark. A new part is one file and one line in `PARTS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.harness.progress import Meter
from bench.harness.results import Part
from bench.harness.sizes import Sizes
from bench.parts import (
    agentsview,
    append,
    checks,
    claude_files,
    claude_forks,
    history,
    housekeeping,
    import_time,
    list,
    load,
    origins,
    page,
    postgres,
    proxy,
    replay,
    search,
    sync,
    turns,
)

PARTS: dict[str, Callable[[Sizes, Path, Meter], Part]] = {
    "append": append.run,
    "history": history.run,
    "list": list.run,
    "checks": checks.run,
    "search": search.run,
    "postgres": postgres.run,
    "import": import_time.run,
    "claude-files": claude_files.run,
    "claude-forks": claude_forks.run,
    "sync": sync.run,
    "agentsview": agentsview.run,
    "turns": turns.run,
    "acp": replay.run,
    "proxy": proxy.run,
    "load": load.run,
    "page": page.run,
    "housekeeping": housekeeping.run,
    "origins": origins.run,
}
