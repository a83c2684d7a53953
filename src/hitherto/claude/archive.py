"""Whether a session is put away: it is until its user goes on with it."""

from __future__ import annotations

import os

from hitherto.claude import lines, metadata, prompts
from hitherto.claude.places import TRANSCRIPT, open_transcript
from hitherto.claude.sidecars import ARCHIVED, read_sidecar


def is_archived(own: str, modified: int) -> bool:
    """Whether the session with the folder `own` is put away; `modified` is when its transcript was changed last."""
    found = read_sidecar(os.path.join(own, ARCHIVED))
    if found.get("archived") is not True:
        return False
    at = _milliseconds(found.get("at"))
    return at is None or modified <= at or _last_prompt_at(own + TRANSCRIPT) <= at


def _milliseconds(at: object) -> int | None:
    if isinstance(at, str):
        return metadata.milliseconds(at)
    return int(at) if isinstance(at, int | float) else None


def _last_prompt_at(path: str) -> int:
    """When the user said something last; 0 if never."""
    last = 0
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return last
    try:
        for _, block, size in lines.read_blocks(descriptor):
            for _, line, _ in lines.split(block[:size]):
                if b'"user"' in line:
                    last = max(last, *map(_prompt_at, metadata.records_in(line)), 0)
    finally:
        os.close(descriptor)
    return last


def _prompt_at(record: metadata.Record) -> int:
    is_prompt = metadata.opening(record) not in (None, prompts.NO_OPENING)
    return (metadata.milliseconds(record.timestamp) or 0) if is_prompt and record.timestamp else 0
