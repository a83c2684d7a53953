"""The rows of the scorecard, in its order. A module of this package holds the rows of one subject."""

from __future__ import annotations

from torture.row import Row
from torture.rows import killing, load, postgres

GROUPS: dict[str, tuple[Row, ...]] = {
    "Nothing lost": (killing.R1, killing.R3, postgres.R4, killing.R5),
    "Faults survived": (),
    "Beyond one machine": (postgres.R20,),
    "Load held": load.ROWS,
    "Bad inputs": (),
}
"""Title of a part of the scorecard → its rows."""
ROWS: dict[str, Row] = {row.key: row for rows in GROUPS.values() for row in rows}
