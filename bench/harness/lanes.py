"""Opens a lane for each entrant, has them take turns, and keeps count of those that could not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bench.contenders import Entrant
from bench.harness.lockstep import ContenderFailed, Job, Lane, Work, interleave
from bench.harness.samples import Cost, Sample, median

T = TypeVar("T")
Arguments = Callable[[Entrant, int], tuple[object, ...]]


@dataclass(slots=True)
class Field:
    """The entrants that run, each with its lane, and why others do not or did not."""

    lanes: dict[Entrant, Lane]
    failures: dict[str, str] = field(default_factory=dict)

    def each(self, work: Work[T], *arguments: object, among: Iterable[Entrant]) -> dict[str, T]:
        """Have each of `among` do `work` once, one after the other; who fails leaves the field."""
        answers = {}
        for entrant in [one for one in among if one in self.lanes]:
            try:
                answers[entrant.name] = self.lanes[entrant].run(work, *arguments)
            except ContenderFailed as failure:
                self.failures[entrant.name] = str(failure)
                del self.lanes[entrant]
        return answers

    def take_turns(
        self,
        work: Work[Sample],
        arguments: Arguments,
        rounds: int,
        tick: Callable[[], None],
        *,
        among: Sequence[Entrant],
    ) -> dict[str, Cost]:
        """Have each of `among` do `work(contender, *arguments(entrant, round))` in each round; median costs by name."""
        done = interleave(
            [
                _job(entrant, self.lanes[entrant], work, arguments)
                for entrant in among
                if entrant in self.lanes
            ],
            rounds,
            tick,
        )
        self.failures |= done.failures
        return {name: median(samples) for name, samples in done.samples.items() if name not in done.failures}


def _job(entrant: Entrant, lane: Lane, work: Work[Sample], arguments: Arguments) -> Job:
    return Job(entrant.name, lane, work, lambda number: arguments(entrant, number))


@contextmanager
def opened(entrants: Iterable[Entrant], folder: Path) -> Iterator[Field]:
    """Run each entrant in a folder of its own below `folder`, which is removed with all that is in it."""
    with tempfile.TemporaryDirectory(dir=folder) as below, ExitStack() as stack:
        ready = Field({})
        for number, entrant in enumerate(entrants):
            place = Path(below) / str(number)
            place.mkdir()
            try:
                ready.lanes[entrant] = stack.enter_context(Lane(entrant.contender, str(place)))
            except ContenderFailed as failure:
                ready.failures[entrant.name] = str(failure)
        yield ready
