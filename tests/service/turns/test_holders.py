"""Who holds a lease: only those who are certainly dead are taken for dead."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitherto.holders import is_gone, new_holder
from hitherto.model import Principal
from hitherto.service import Sessions

HOLDER = "import hitherto.holders as h, sys; print(h.new_holder(), flush=True); sys.stdin.read()"


class Holding:
    """A process that runs, and its name as a holder."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=pipe, stdout=pipe, text=True)
        assert self.process.stdout is not None
        self.name = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def holding() -> Iterator[Holding]:
    held = Holding()
    yield held
    held.kill()


@contextlib.contextmanager
def no_free_descriptor() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as opened:
        newest = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, newest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest + 32, hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.suppress(OSError):
            while True:
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        yield


async def test_a_process_without_a_free_descriptor_takes_nobody_living_for_dead(
    sessions: Sessions, ann: Principal, holding: Holding
) -> None:
    session = await sessions.create(ann)
    await sessions.leases.acquire(ann, session.id, holding.name, ttl_ms=3_600_000)
    await sessions.leases.current(ann, session.id)  # opens what reading needs
    with no_free_descriptor():
        with pytest.raises(OSError, match="Too many open files"):
            os.open("/proc/self/stat", os.O_RDONLY)
        held = await sessions.leases.current(ann, session.id)
    assert held is not None
    assert held.holder == holding.name


def test_a_living_process_that_the_system_hides_is_not_taken_for_dead(
    holding: Holding, tmp_path: Path
) -> None:
    # With hidepid=2 other people's processes are not in /proc at all, as in this empty folder.
    assert not is_gone(holding.name, proc=tmp_path)
    holding.kill()
    assert is_gone(holding.name, proc=tmp_path)


def test_a_file_of_a_living_process_that_cannot_be_read_tells_nothing(
    holding: Holding, tmp_path: Path
) -> None:
    (tmp_path / str(holding.process.pid) / "stat").mkdir(parents=True)
    assert not is_gone(holding.name, proc=tmp_path)


def test_a_process_that_has_ended_is_dead_before_its_parent_asks_for_it(holding: Holding) -> None:
    assert not is_gone(holding.name)
    holding.process.kill()
    os.waitid(os.P_PID, holding.process.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone(holding.name)


def test_the_number_of_a_dead_process_that_another_has_now_does_not_revive_it() -> None:
    *rest, process, last = new_holder().split(":")
    pid, _, born = process.partition("-")
    assert is_gone(":".join((*rest, f"{pid}-{int(born) + 1}", last)))


def test_a_name_that_no_process_can_have_is_nobody_of_whom_anything_is_known() -> None:
    *rest, _, last = new_holder().split(":")
    for process in ("-", "7", "x-1", "-1-1", f"{'9' * 10}-1", f"{'9' * 5_000}-1"):
        assert not is_gone(":".join((*rest, process, last)))
