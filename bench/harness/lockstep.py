"""Contenders as live processes that take turns.

Every contender has a process and a database of its own for the whole of a part. In each round every one of
them does one slice, in a shuffled order, while all others wait. So all of them meet the same moods of the
machine, and the medians of their slices may be compared.
"""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import random
import re
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from bench.contenders.port import Contender
from bench.harness.samples import Sample

T = TypeVar("T")
Work = Callable[..., Coroutine[Any, Any, T]]

# Nothing that is measured may call home.
_QUIET = {
    "AGNO_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
_CLOSE_SECONDS = 30
_PATH = re.compile(r"(?:/[^\s/:'\"]+){2,}")


class ContenderFailed(Exception):
    """A contender raised or did not answer in time; the text says which."""


@dataclass(slots=True)
class _Failure:
    text: str


def _serve(pipe: Connection, contender: str, place: str) -> None:
    """Be one contender: open it, do what the pipe asks until it says nothing more, close it."""
    module, name = contender.split(":")
    with asyncio.Runner() as runner:
        try:
            subject: Contender = getattr(importlib.import_module(module), name)()
            runner.run(subject.open(place))
        except Exception as error:  # noqa: BLE001  the other side decides what a failure means
            pipe.send(_failure(error))
            return
        pipe.send(None)
        # Between two requests the event loop stands still: a contender cannot use up another one's turn.
        while (request := pipe.recv()) is not None:
            work, arguments = request
            try:
                pipe.send(runner.run(work(subject, *arguments)))
            except Exception as error:  # noqa: BLE001
                pipe.send(_failure(error))
        runner.run(subject.close())


def _failure(error: Exception) -> _Failure:
    where = traceback.extract_tb(error.__traceback__)[-1]
    # The text may end up on a page that everyone reads: what it says of this machine's folders is left out.
    said = _PATH.sub("…", str(error))
    return _Failure(f"{type(error).__name__}: {said} ({Path(where.filename).name}:{where.lineno})")


class Lane:
    """One contender's process, seen from the driver."""

    def __init__(self, contender: str, place: str, *, seconds: float = 900) -> None:
        """Start `module:Class` at `place` (a folder or an address); no answer may take longer than `seconds`."""
        os.environ.update(_QUIET)
        context = multiprocessing.get_context("spawn")
        self._seconds = seconds
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, contender, place), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, work: Work[T], *arguments: object) -> T:
        """Have the contender do `work(contender, *arguments)` and return what it returns."""
        try:
            self._pipe.send((work, arguments))
        except BrokenPipeError:
            raise ContenderFailed("its process ended") from None
        answer: T = self._answer()
        return answer

    def close(self) -> None:
        """Let the contender close its database, and end its process."""
        if self._process.is_alive():
            with suppress(BrokenPipeError):
                self._pipe.send(None)
            self._process.join(_CLOSE_SECONDS)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()
        self._pipe.close()

    def _answer(self) -> Any:
        if not self._pipe.poll(self._seconds):
            self._process.terminate()
            raise ContenderFailed(f"no answer within {self._seconds:.0f} s")
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise ContenderFailed("its process ended") from None
        if isinstance(answer, _Failure):
            raise ContenderFailed(answer.text)
        return answer


@dataclass(frozen=True, slots=True)
class Job:
    """What one lane does in each round: `work(contender, *arguments(round))`, which returns a `Sample`."""

    key: str
    lane: Lane
    work: Work[Sample]
    arguments: Callable[[int], tuple[object, ...]] = field(default=lambda _: ())


@dataclass(slots=True)
class Rounds:
    """The slices of each job, and why a job was given up, if it was."""

    samples: dict[str, list[Sample]]
    failures: dict[str, str]


def interleave(jobs: Sequence[Job], rounds: int, tick: Callable[[], None], *, seed: int = 20) -> Rounds:
    """Give every job one slice per round, in an order that is shuffled anew for each round.

    One more round goes before and is not counted: it fills caches and prepares statements.
    """
    rng = random.Random(seed)
    done = Rounds({job.key: [] for job in jobs}, {})
    for number in range(rounds + 1):
        for job in rng.sample(jobs, len(jobs)):
            if job.key in done.failures:
                continue
            try:
                sample = job.lane.run(job.work, *job.arguments(number))
            except ContenderFailed as failure:
                done.failures[job.key] = str(failure)
                continue
            if number:
                done.samples[job.key].append(sample)
        tick()
    return done
