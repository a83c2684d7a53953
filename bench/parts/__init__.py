"""The parts of the benchmark. A new part is one file and one line in `PARTS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.meter import Meter
from bench.parts import (
    appending,
    browsing,
    claude_files,
    claude_forks,
    histories,
    importing,
    listing,
    loading,
    on_postgres,
    proxying,
    replaying,
    searching,
    syncing,
    turning,
)
from bench.results import Part
from bench.sizes import Sizes

PARTS: dict[str, Callable[[Sizes, Path, Meter], Part]] = {
    "append": appending.run,
    "history": histories.run,
    "list": listing.run,
    "search": searching.run,
    "postgres": on_postgres.run,
    "import": importing.run,
    "claude-files": claude_files.run,
    "claude-forks": claude_forks.run,
    "sync": syncing.run,
    "turns": turning.run,
    "acp": replaying.run,
    "proxy": proxying.run,
    "load": loading.run,
    "page": browsing.run,
}
