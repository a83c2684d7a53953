"""The agents whose own files are read, one module for each. See `port` for what a source is."""

from __future__ import annotations

import os
from pathlib import Path

from recollect.claude.places import config_home
from recollect.sources.claude_source import ClaudeSource
from recollect.sources.pi_source import PiSource
from recollect.sources.port import Source


def sources_here() -> list[Source]:
    """The sources of this machine, whether anything lies in them or not."""
    return [
        ClaudeSource(config_home()),
        PiSource(_folder("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions"),
    ]


def _folder(variable: str, otherwise: str) -> Path:
    """The folder that a variable names, else one in the home folder."""
    given = os.environ.get(variable)
    return Path(given) if given else Path.home() / otherwise


__all__ = ["Source", "sources_here"]
