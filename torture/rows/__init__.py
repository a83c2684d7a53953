"""The rows of the scorecard, in its order. A module of this package holds the rows of one subject."""

from __future__ import annotations

from torture.rows import (
    agreement,
    erasures,
    faults,
    growth,
    histories,
    inputs,
    kills,
    load,
    machine,
    neighbours,
    postgres,
    stores,
    supply,
)
from torture.trial.row import Row

GROUPS: dict[str, tuple[Row, ...]] = {
    "Nothing lost": (
        kills.R1,
        kills.R1B,
        machine.POWER_CUTS,
        kills.R3,
        postgres.R4,
        kills.R5,
        *stores.KEPT,
    ),
    "Faults survived": (*machine.SURVIVED, *faults.IN_TURN, *stores.SURVIVED, machine.CLOCK_JUMPS),
    "Nothing left": erasures.GONE,
    "Beyond one machine": (postgres.R20, postgres.FEED),
    "Load held": (*load.ROWS, *neighbours.ROWS, agreement.R19, histories.ONE_ORDER, growth.R21),
    "Bad inputs": (*inputs.ROWS, *supply.ROWS),
}
"""Title of a part of the scorecard → its rows."""
ROWS: dict[str, Row] = {row.key: row for rows in GROUPS.values() for row in rows}
