"""Names for the holders of leases: processes, named so exactly that another process can see when one has died.

A lease outlives its holder until it expires. On the same machine nobody has to wait for that: a process that no longer
runs will not come back. On another machine, or where the system does not tell, only time decides.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

from hitherto.ids import uuid7

_PREFIX = "hitherto"


def new_holder() -> str:
    """A name for one more holder in this process: machine, process and a part that is never used twice."""
    return ":".join(
        (_PREFIX, platform.node() or "-", _machine() or "-", _process(os.getpid()) or "-", uuid7())
    )


def is_gone(holder: str) -> bool:
    """Whether the holder was a process of this machine that certainly runs no more."""
    fields = holder.rsplit(":", 3)
    if len(fields) != 4 or not holder.startswith(f"{_PREFIX}:"):
        return False
    machine, process = fields[1], fields[2]
    if machine != _machine() or machine == "-" or not _is_process(process):
        return False
    return _process(int(process.partition("-")[0])) != process


def _is_process(text: str) -> bool:
    pid, dash, born = text.partition("-")
    return bool(dash) and pid.isascii() and pid.isdigit() and bool(born)


@functools.cache
def _machine() -> str | None:
    """This boot of this machine, and within it this space of process numbers; None if the system does not tell."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = os.readlink("/proc/self/ns/pid")
        return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:16]
    return None


def _process(pid: int) -> str | None:
    """A process by its number and the moment it was started, as numbers come again; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name of the program, in brackets, may hold anything; the state follows it, and 19 fields on the start.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else f"{pid}-{fields[19].decode()}"
