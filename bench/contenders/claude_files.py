"""Who reads Claude Code's own files: Hitherto, the SDK, and as the limit one question to the system per file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

OURS = "bench.contenders.claude_files:Ours"
THEIRS = "bench.contenders.claude_files:Theirs"
STATS = "bench.contenders.claude_files:Stats"


class Theirs:
    """The functions of a module over the config folder `place`."""

    module = "claude_agent_sdk"

    async def open(self, place: str) -> None:
        """Read the files below `place` from now on."""
        os.environ["CLAUDE_CONFIG_DIR"] = place
        os.environ["HITHERTO_DATA_DIR"] = f"{place}-remembered"
        self._functions: Any = import_module(self.module)
        self._place = Path(place)

    async def close(self) -> None:
        """Nothing is open."""

    def forget(self) -> None:
        """Remove what earlier lists left behind for later ones."""

    def sessions(self, limit: int | None) -> Sequence[object]:
        """The sessions of all projects, or the newest of them."""
        found: Sequence[object] = self._functions.list_sessions(limit=limit)
        return found

    def messages(self, session: str, limit: int | None) -> Sequence[object]:
        """The conversation of a session, or the beginning of it."""
        found: Sequence[object] = self._functions.get_session_messages(session, limit=limit)
        return found


class Ours(Theirs):
    """Hitherto."""

    module = "hitherto.claude"

    def forget(self) -> None:
        """Remove the cache."""
        from hitherto.claude.cache import cache_file

        cache_file(self._place / "projects").unlink(missing_ok=True)


class Stats(Theirs):
    """No list at all: each transcript is asked for once by its size and time."""

    module = "os"

    def sessions(self, limit: int | None) -> Sequence[object]:
        """What the system says of each file."""
        found = []
        for folder in os.scandir(self._place / "projects"):
            found += [entry.stat() for entry in os.scandir(folder.path)]
        return found[:limit]
