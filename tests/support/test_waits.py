"""Waits end with what they are for, or say what it was; a process that is waited for does not outlive the limit."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.waits import (
    LIMIT,
    arrives,
    block_until,
    end_of,
    ended,
    is_over,
    is_set,
    line_of,
    or_killed,
    output,
    until,
    within,
)

SHORT = 0.05
MISSED = r"^waited 0\.05 s for a sign$"
SILENT = "import threading; threading.Event().wait()"
ECHO = "import sys; sys.stdout.write(sys.stdin.read())"
SPEAKS = (
    "import sys; sys.stdout.write('one\\ntwo\\n'); sys.stdout.flush(); sys.stderr.write('three'); sys.exit(4)"
)


@contextlib.contextmanager
def running(program: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_what_arrives_is_returned_and_what_does_not_is_named() -> None:
    assert await arrives(asyncio.sleep(0, "here"), "a sign") == "here"
    with pytest.raises(AssertionError, match=MISSED):
        await arrives(asyncio.Event().wait(), "a sign", limit=SHORT)
    with pytest.raises(AssertionError, match=MISSED):
        async with within("a sign", limit=SHORT):
            await asyncio.Event().wait()


async def test_an_error_of_what_is_awaited_stays_what_it_is() -> None:
    async def gives_up() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await arrives(gives_up(), "a sign")


async def test_a_condition_is_asked_until_it_is_true() -> None:
    asked = itertools.count()

    async def later() -> AsyncIterator[int]:
        for number in (0, 0, 7):
            yield number

    answers = later()
    assert await until(lambda: anext(answers), "a sign") == 7
    assert await until(lambda: next(asked) == 3, "a sign")
    assert next(asked) == 4
    with pytest.raises(AssertionError, match=MISSED):
        await until(list, "a sign", limit=SHORT)


def test_without_a_loop_the_same_is_promised() -> None:
    asked = itertools.count()
    assert block_until(lambda: next(asked), "a sign") == 1
    with pytest.raises(AssertionError, match=MISSED):
        block_until(lambda: "", "a sign", limit=SHORT)


def test_threads_are_waited_for() -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    with pytest.raises(AssertionError, match=MISSED):
        is_set(event, "a sign", limit=SHORT)
    with pytest.raises(AssertionError, match=MISSED):
        is_over(thread, "a sign", limit=SHORT)
    event.set()
    is_set(event, "the event")
    is_over(thread, "the thread")


def test_what_a_process_says_is_read_to_its_end() -> None:
    with running(SPEAKS) as process:
        assert line_of(process, "a line") == "one\n"
        assert output(process, "the rest") == ("two\n", "three")
        assert ended(process, "its end") == 4
    with running(SPEAKS) as process:
        assert line_of(process, "an error", pipe=process.stderr) == "three"
    with running(ECHO) as process:
        assert output(process, "its end", "input") == ("input", "")
    with running(ECHO) as process:
        assert output(process, "its end") == ("", "")


@pytest.mark.parametrize("way", [line_of, output, ended])
def test_a_process_that_says_nothing_is_killed_at_the_limit(way: object) -> None:
    assert callable(way)
    with running(SILENT) as process:
        with pytest.raises(AssertionError, match=MISSED):
            way(process, "a sign", limit=SHORT)
        assert ended(process, "the end of a killed process") == -9


def test_what_goes_wrong_since_a_process_was_killed_is_told_as_the_limit() -> None:
    def read(limit: float, wanted: str) -> None:
        with or_killed(process, "a sign", limit=limit):
            assert process.stdout is not None
            assert process.stdout.readline() == wanted, "said something else"

    with running(SILENT) as process, pytest.raises(AssertionError, match=MISSED):
        read(SHORT, "a line")
    with running(SPEAKS) as process, pytest.raises(AssertionError, match="said something else"):
        read(LIMIT, "a line")


def test_a_pipe_has_an_end_to_write_to_once_somebody_reads(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert end_of(pipe) is None
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    end = end_of(pipe)
    assert end is not None
    with end:
        end.write(b"go")
    assert os.read(reading, 9) == b"go"
    os.close(reading)
    with pytest.raises(FileNotFoundError):
        end_of(tmp_path / "nowhere")
