"""Messages in quarantine that are those of a session: they go when they are erased or deleted there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from hitherto.errors import StoreDamaged
from hitherto.model import Entry, decode_entry, encode, plain_text
from hitherto.ports import QuarantinedLog, Reader, Writer
from hitherto.service.records import blank_entry, is_erased
from hitherto.values.spans import EntryPlace, Stretch

FORM = re.compile(r"~[0-9]+\Z")
"""What is put behind an id if the record of this id has changed: see `transfer.synced`."""


async def erase_quarantined(
    tx: Writer, owner: str, load_lost: Callable[[], Awaitable[Iterable[Entry]]]
) -> None:
    """Blank the owner's messages in quarantine that are those that are lost, by their id and what they say.

    With them go the system messages of the same log: a summary may tell of what it stood beside. The lost ones are
    loaded only if something is in quarantine.
    """
    logs = [each for each in await tx.quarantined() if each.owner == owner]
    if not logs:
        return
    lost = defaultdict[str, list[Entry]](list)
    for entry in await load_lost():
        lost[source_id(entry.id)].append(entry)
    for log in logs:
        held = await _readable(tx, log)
        gone = [place for place, (entry, _) in held.items() if _is_among(entry, lost)]
        told = [place for place, (entry, _) in held.items() if gone and entry.role == "system"]
        for place in dict.fromkeys((*gone, *told)):
            entry, size = held[place]
            await tx.erase(owner, place, encode(blank_entry(entry, size)))


def source_id(entry_id: str) -> str:
    """The id that the source gave a record, of whichever form of it."""
    return FORM.sub("", entry_id)


def tells_the_same(one: Entry, other: Entry) -> bool:
    """Whether one of these may be a form of the other, or a copy."""
    said, told = plain_text(one), plain_text(other)
    return one.parts == other.parts or bool(said and told and (said in told or told in said))


def _is_among(entry: Entry, lost: Mapping[str, Sequence[Entry]]) -> bool:
    return any(tells_the_same(entry, each) for each in lost.get(source_id(entry.id), ()))


async def _readable(tx: Reader, log: QuarantinedLog) -> dict[EntryPlace, tuple[Entry, int]]:
    """The messages of a log that are neither damaged nor blank, with their sizes."""
    found: dict[EntryPlace, tuple[Entry, int]] = {}
    for stretch in log.stretches:
        for seq in range(stretch.first, stretch.last + 1):
            with suppress(StoreDamaged):
                (payload,) = await tx.payloads(log.owner, [Stretch(log.log, seq, seq)])
                entry = decode_entry(payload)
                if not is_erased(entry):
                    found[EntryPlace(log.log, seq)] = (entry, len(payload))
    return found
