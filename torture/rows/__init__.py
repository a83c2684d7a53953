"""The rows of the scorecard, in its order. A module of this package holds the rows of one subject."""

from __future__ import annotations

from torture.row import Row
from torture.rows import agreement, growth, inputs, killing, load, machine, postgres, stores, supply

GROUPS: dict[str, tuple[Row, ...]] = {
    "Nothing lost": (
        killing.R1,
        killing.R1B,
        machine.POWER_CUTS,
        killing.R3,
        postgres.R4,
        killing.R5,
        *stores.KEPT,
    ),
    "Faults survived": (*machine.SURVIVED, *stores.SURVIVED, machine.CLOCK_JUMPS),
    "Beyond one machine": (postgres.R20,),
    "Load held": (*load.ROWS, agreement.R19, growth.R21),
    "Bad inputs": (*inputs.ROWS, *supply.ROWS),
}
"""Title of a part of the scorecard → its rows."""
ROWS: dict[str, Row] = {row.key: row for rows in GROUPS.values() for row in rows}
