"""The agents whose own files are read, by name. One module for each, pure: bytes in, entries out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from recollect.sources import claude, claude_files


class Format(NamedTuple):
    """How to find an agent's transcripts under its folder, and how to read one."""

    find: Callable[[Path], Iterator[claude_files.Found]]
    parse: Callable[[bytes, claude.State | None], claude.Parsed]


FORMATS = {
    "claude": Format(find=claude_files.find, parse=claude.parse),
}
"""Source → format. A new one is a module and a line here."""
