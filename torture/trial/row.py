"""What a row of the scorecard is: a promise, how it is tried, and the control that must fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torture.trial.needs import Need


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how hard a row is tried."""

    seed: int
    short: bool
    folder: Path
    """An empty folder of the row's own, on a real disk."""
    say: Callable[[str], None]

    def dice(self, use: str) -> random.Random:
        """The same numbers for the same seed and use."""
        return random.Random(f"{self.seed}:{use}")

    def of(self, *, short: int, full: int) -> int:
        """A size: small in tests, whole on the scorecard."""
        return short if self.short else full


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to."""

    met: bool
    figure: str
    """One sentence with the numbers, as the scorecard prints it."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Any of `faults`, `acknowledged`, `lost`, `inputs`, `leaked`: summed up at the head of the scorecard."""
    missed: str = ""
    """Why the target is missed, where the trial knows it."""
    broke_off: bool = False
    """Whether the trial itself ended with an exception: then nothing is known of the program."""

    @property
    def is_failure(self) -> bool:
        """Whether the trial came to its end and found the program wanting, as a control must."""
        return not self.met and not self.broke_off


Trial = Callable[[Setting], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One promise of the scorecard."""

    key: str
    promise: str
    target: str
    how: str
    run: Trial
    control: Trial
    """The same trial of a program that is broken on purpose: it must not be met, else the row does not count."""
    broken: str
    """What the control breaks."""
    needs: tuple[Need, ...] = ()
    in_tests: bool = True
    """Whether `make test` runs the short form of the row, where its needs are met. Not if other tests are that form."""
    short_forms: tuple[str, ...] = ()
    """The tests that are the short form of a row that is not `in_tests`, by their names."""
