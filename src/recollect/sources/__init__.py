"""The agents whose own files are read, one module for each. See `port` for what a source is."""

from __future__ import annotations

from recollect.claude.places import config_home
from recollect.sources.claude_source import ClaudeSource
from recollect.sources.port import Source


def sources_here() -> list[Source]:
    """The sources of this machine, whether anything lies in them or not."""
    return [ClaudeSource(config_home())]


__all__ = ["Source", "sources_here"]
