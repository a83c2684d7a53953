"""Each worker of a run imports the test modules from another place on: in a fresh clone each is compiled by one of them.

Beginning at the same place, all workers would compile every module at the same time, each for itself, and rewriting the
asserts of ten thousand tests takes longer than importing them.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def pytest_sessionstart(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return  # a single process, or a few tests of many
    modules = [
        ".".join((TESTS.name, *path.relative_to(TESTS).with_suffix("").parts))
        for path in sorted(TESTS.rglob("test_*.py"))
    ]
    first = int(worker["workerid"].removeprefix("gw")) * len(modules) // worker["workercount"]
    for module in (*modules[first:], *modules[:first]):
        importlib.import_module(module)
