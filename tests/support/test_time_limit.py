"""A test that never ends is ended, says where it waited, and the run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.paths import ROOT

STUCK = """
import asyncio, contextlib, subprocess, sys
import pytest

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.fixture
async def waits_in_the_end():
    yield
    await the_answer_that_never_comes()

async def the_answer_that_never_comes():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

@pytest.mark.limit(3)
async def test_fails_and_then_its_fixture_is_stuck(waits_in_the_end):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    open("child", "w").write(str(child.pid))
    assert False

@pytest.mark.parametrize("number", range(5))
def test_others(number):
    pass
"""


def test_a_stuck_test_is_ended_with_its_stack_and_the_others_run(tmp_path: Path) -> None:
    (tmp_path / "test_stuck.py").write_text(STUCK)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p tests.support.time_limit\nanyio_mode = auto\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 1
    assert "test_fails_and_then_its_fixture_is_stuck took more than 3 s" in ran.stderr
    assert "in the_answer_that_never_comes" in ran.stderr
    assert "5 passed" in ran.stdout
    assert not psutil.pid_exists(int((tmp_path / "child").read_text()))
