"""A bar on stderr while something takes long, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(label: str, total: int | None, *, hidden: bool = False) -> Iterator[Advance]:
    """Show a bar that moves with each call of what comes out; without a total it only says that work goes on."""
    if hidden or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, markup=False, highlight=False)
    # What is printed meanwhile goes above the bar if it goes to the same terminal, and else where it belongs.
    same = sys.stdout.isatty()
    with Progress(console=console, transient=True, redirect_stdout=same) as bar:
        task = bar.add_task(label, total=total)
        yield lambda step: bar.advance(task, step)
