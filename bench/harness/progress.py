"""The progress bar: one line per part, with what is left of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Meter:
    """Counts the steps of the part that is running."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=0, visible=False)

    def begin(self, name: str, steps: int) -> None:
        """Show a new line for `name`, which will take `steps` steps."""
        self._task = self._progress.add_task(name, total=steps)

    def more(self, steps: int) -> None:
        """Say that the running part has `steps` further steps."""
        task = next(task for task in self._progress.tasks if task.id == self._task)
        self._progress.update(self._task, total=(task.total or 0) + steps)

    def step(self) -> None:
        """Count one step."""
        self._progress.advance(self._task)

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(text, markup=False, highlight=False)


@contextmanager
def shown(console: Console) -> Iterator[Meter]:
    """Show a meter on `console` for as long as the block runs."""
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        yield Meter(progress)
