"""What one slice cost, and what many slices say together."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """The cost of doing something `units` times: seconds on the wall and seconds of this process's CPU."""

    wall: float
    cpu: float
    units: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The median cost of one unit over many slices, in seconds."""

    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        """Units per second, one after the other."""
        return 1 / self.wall


async def measure(units: int, work: Callable[[], Awaitable[object]]) -> Sample:
    """Time one slice; CPU counts every thread of this process, so work handed to a thread is not free."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    await work()
    return Sample(time.perf_counter() - wall, time.process_time() - cpu, units)


def median(samples: Sequence[Sample]) -> Cost:
    """The middle slice of each clock: half of the slices were cheaper, half were dearer."""
    return Cost(
        statistics.median(sample.wall / sample.units for sample in samples),
        statistics.median(sample.cpu / sample.units for sample in samples),
    )
