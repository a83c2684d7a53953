"""Which result belongs to which tool call, and under which id both go to a provider. Pure.

Other agents repeat ids, lose results, and use characters that no provider accepts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import msgspec

from hitherto.model import Entry, ToolCall, ToolResult

Place = tuple[int, int]
"""The number of an entry, and of a part in it."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Paired(msgspec.Struct):
    """A call's id on the wire, and its result, if there is one anywhere after it."""

    id: str
    result: ToolResult | None = None


def paired(entries: Sequence[Entry]) -> dict[Place, Paired]:
    """Each tool call of the assistant, by its place. Results without a call belong nowhere."""
    found: dict[Place, Paired] = {}
    taken: set[str] = set()
    waiting: dict[str, list[Place]] = {}
    for number, entry in enumerate(entries):
        for index, part in enumerate(entry.parts):
            if isinstance(part, ToolCall) and entry.role == "assistant":
                found[number, index] = Paired(_wire_id(part.id, taken))
                waiting.setdefault(part.id, []).append((number, index))
            elif isinstance(part, ToolResult) and (places := waiting.get(part.id)):
                found[_answered(places)].result = part
    return found


def _answered(places: list[Place]) -> Place:
    """Of several calls with the same id, the first one of the newest message; it waits no longer."""
    newest = places[-1][0]
    place = next(place for place in places if place[0] == newest)
    places.remove(place)
    return place


def _wire_id(given: str, taken: set[str]) -> str:
    if not _ID.fullmatch(given):
        given = f"call_{hashlib.sha256(given.encode('utf-8', 'replace')).hexdigest()[:24]}"
    found, count = given, 1
    while found in taken:
        count += 1
        found = f"{given[:32]}-{count}"
    taken.add(found)
    return found
