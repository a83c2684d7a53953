"""The machine of a trial in one line: what a reader needs to judge the figures; no names, no paths."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from pathlib import Path

import apsw
import psutil

from tests.support.postgres_server import PostgresFailed, binaries

GIGABYTE = 1 << 30
NUMBER = re.compile(r"\d+(?:\.\d+)+")


@functools.cache
def facts(folder: Path) -> str:
    """Cores, memory, kernel, Python, databases, and the file system that holds this folder."""
    memory = psutil.virtual_memory().total / GIGABYTE
    return ", ".join(
        (
            f"{os.cpu_count()} cores",
            f"{memory:.0f} GB of memory",
            f"{platform.system()} {_number(platform.release())} on {platform.machine()}",
            f"Python {platform.python_version()}",
            f"SQLite {apsw.sqlite_lib_version()}",
            f"PostgreSQL {_postgres()}",
            f"files on {_file_system(folder)}",
        )
    )


def _number(text: str) -> str:
    found = NUMBER.search(text)
    return found[0] if found else "of an unknown version"


def _postgres() -> str:
    try:
        asked = subprocess.run(
            [binaries() / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, PostgresFailed, subprocess.CalledProcessError):
        return "of an unknown version"
    return _number(asked.stdout)


def _file_system(folder: Path) -> str:
    """The type of what is mounted nearest above."""
    above = {str(path) for path in (folder.resolve(), *folder.resolve().parents)}
    mounted = [part for part in psutil.disk_partitions(all=True) if part.mountpoint in above]
    return max(mounted, key=lambda part: len(part.mountpoint)).fstype if mounted else "an unknown file system"
