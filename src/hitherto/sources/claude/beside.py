"""The files beside a transcript of Claude Code: long outputs of tools, and what started a subagent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from hitherto.claude.paths import session_folder
from hitherto.limits import RAW_BYTES
from hitherto.model import PERSISTED_OUTPUT, Entry, Part, Text, ToolResult
from hitherto.ports import RawCopy
from hitherto.sources.claude.files import SUBAGENTS, TranscriptFile
from hitherto.sources.port import Unreadable
from hitherto.sources.shared.files import BESIDE, list_folder, read_whole

TOOL_RESULTS = "tool-results"
META = ".meta.json"
MOST_FILES = 2_000
SHOWN_BYTES = 512 * 1024
"""How much of a long output stands with its result; the raw copy has all of it."""
EARLIER_NS = 60_000_000_000
"""An output is written before the record that names it, by less than this."""
_PERSISTED = re.compile(r"<persisted-output>.*?\btool-results[/\\]([A-Za-z0-9_-][A-Za-z0-9_.-]*)", re.DOTALL)


def copies_beside(found: TranscriptFile, since_ns: int | None) -> Iterator[RawCopy]:
    """The files beside a transcript, byte for byte, named by their path from its folder; those that are `since` a time."""
    if found.agent is not None:
        yield from _copy(found.path.with_suffix(META), found.path.stem + META)
        return
    unreadable = list[Unreadable]()
    there = list_folder(_folder(found) / TOOL_RESULTS, "", unreadable=unreadable).files
    for file in sorted(there, key=lambda file: file.name)[:MOST_FILES]:
        if since_ns is None or file.stamp[3] >= since_ns - EARLIER_NS:
            yield from _copy(file.path, f"{found.session}/{TOOL_RESULTS}/{file.name}")


LongOutput = Callable[[str], bytes | None]
"""Gives the content of a file with a long output by its name; None if there is no such file."""


def output_beside(found: TranscriptFile, name: str) -> bytes | None:
    """A long output in the folder beside a transcript."""
    try:
        return read_whole(_folder(found) / TOOL_RESULTS / name)
    except (OSError, ValueError):
        return None


def output_among(copies: Iterable[RawCopy], name: str) -> bytes | None:
    """A long output among the copies that were kept of the files beside a transcript."""
    ending = f"/{TOOL_RESULTS}/{name}"
    return next(
        (each.data for each in copies if each.name.startswith(BESIDE) and each.name.endswith(ending)), None
    )


def with_long_outputs(entries: Iterable[Entry], output: LongOutput) -> list[Entry]:
    """The entries; where a result only begins an output, with the file that has all of it."""
    return [
        replace(entry, parts=tuple(_with_output(part, output) for part in entry.parts))
        if entry.role == "tool"
        else entry
        for entry in entries
    ]


def _with_output(part: Part, output: LongOutput) -> Part:
    if not isinstance(part, ToolResult):
        return part
    texts = (inner.text for inner in part.content if isinstance(inner, Text))
    named = next(filter(None, map(_PERSISTED.search, texts)), None)
    if named is None:
        return part
    data = output(named[1])
    if data is None:
        return part
    text = data[:SHOWN_BYTES].decode("utf-8", "replace")
    kept = part.output if isinstance(part.output, dict) else {}
    return replace(part, output={**kept, PERSISTED_OUTPUT: text})


def _copy(path: Path, name: str) -> Iterator[RawCopy]:
    try:
        data = read_whole(path)
    except (OSError, ValueError):
        return
    if data and len(data) <= RAW_BYTES:
        yield RawCopy(BESIDE + name, data)


def _folder(found: TranscriptFile) -> Path:
    """The folder of the session that a transcript, its own or a subagent's, belongs to."""
    if found.agent is None:
        return session_folder(found.path)
    return next((each.parent for each in found.path.parents if each.name == SUBAGENTS), found.path.parent)
