"""Facts about the machine and the packages that a reader needs to judge the figures; no names, no paths."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw

PAGE = 4096
SYNCS = 200


def facts(folder: Path) -> list[tuple[str, str]]:
    """Name and value of each fact; the cost of making one page durable is measured in `folder`."""
    return [
        ("cores", str(os.cpu_count())),
        ("system", f"{platform.system()} on {platform.machine()}"),
        ("Python", platform.python_version()),
        ("SQLite in apsw", apsw.sqlite_lib_version()),
        ("SQLite in Python", sqlite3.sqlite_version),
        ("one page written and synced", f"{_sync_seconds(folder) * 1e6:.0f} µs (median)"),
    ]


def versions(packages: Iterable[str]) -> list[tuple[str, str]]:
    """The installed version of each package, each once."""
    return [(package, _version(package)) for package in dict.fromkeys(packages)]


def _version(package: str) -> str:
    if package == "hitherto":
        # Runs from its sources, without having been installed.
        import hitherto

        return hitherto.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _sync_seconds(folder: Path) -> float:
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            file.write(b"\0" * PAGE)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start)
    return statistics.median(taken)
