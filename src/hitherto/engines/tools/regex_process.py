"""The process that matches regular expressions, seen from here. It can be ended from any thread at any moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, cast

import msgspec

from hitherto.engines.tools.limits import HIT_CHARS, HITS, SEARCH_MEMORY, SEARCH_SECONDS

WORKER = Path(__file__).with_name("regex_worker.py")


class Hit(NamedTuple):
    """A line in which something was found; `file` counts from 0 within its batch."""

    file: int
    line: int
    text: str


class MatcherEnded(Exception):
    """The process is gone: it was ended, or came to a limit of its own."""


class Matcher:
    """Matches one pattern. It returns at most one hit more than is shown, so that it is known if there are more."""

    def __init__(self, pattern: str, *, ignore_case: bool) -> None:
        self._order = {
            "pattern": pattern,
            "ignore_case": ignore_case,
            "hits": HITS + 1,
            "chars": HIT_CHARS,
            "seconds": SEARCH_SECONDS,
            "memory": SEARCH_MEMORY,
        }
        # Isolated, in no folder of the user's and without their variables: nothing there is taken for a module.
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            (sys.executable, "-I", "-S", str(WORKER)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        self._given = cast("IO[bytes]", self._process.stdin)
        self._told = cast("IO[bytes]", self._process.stdout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(self) -> None:
        """Have the pattern looked at. Raises `ValueError` if it is none, `MatcherEnded`."""
        answer = self._answered(msgspec.json.encode(self._order) + b"\n")
        if "error" in answer:
            raise ValueError(f"not a valid regular expression: {answer['error']}")

    def match(self, files: Sequence[bytes]) -> list[Hit]:
        """The lines of these files in which the pattern is found. Raises `MatcherEnded`."""
        sizes = msgspec.json.encode([len(data) for data in files])
        return [Hit(*hit) for hit in self._answered(sizes + b"\n", *files)]

    def kill(self) -> None:
        """End it at once; whoever waits for it gets `MatcherEnded`."""
        self._process.kill()

    def close(self) -> None:
        """End it and leave nothing of it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._given, self._told):
            # What was not written yet goes nowhere.
            with suppress(OSError):
                pipe.close()

    def _answered(self, *data: bytes) -> Any:
        try:
            self._given.writelines(data)
            self._given.flush()
        except OSError as error:
            raise MatcherEnded from error
        line = self._told.readline()
        if not line:
            raise MatcherEnded
        return msgspec.json.decode(line)
