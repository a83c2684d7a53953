"""Hitherto without the checksums of places: what they cost is the difference."""

from __future__ import annotations

from typing import Any

from bench.contenders.hitherto import Hitherto
from hitherto.stores.sqlite import read_tx, rows, write_tx

LEFT_OUT = {
    read_tx: ("checksum", "beside_checksum"),
    rows: ("session_place",),
    write_tx: ("checksum", "beside_checksum", "log_seed", "session_place"),
}


def nothing(*_: Any) -> int:
    """In place of a checksum, where it is written and where it is compared."""
    return 0


class Unplaced(Hitherto):
    """A store whose rows are summed as they were before: entries and sessions alone, without their places."""

    async def open(self, place: str) -> None:
        # In this contender's own process, which ends with it.
        for module, names in LEFT_OUT.items():
            for name in names:
                setattr(module, name, nothing)
        await super().open(place)
