"""Names for the holders of leases: processes, named so exactly that another process can see when one has died.

A lease outlives its holder until it expires. On the same machine nobody has to wait for that: a process that no longer
runs will not come back. On another machine, or where the system gives no information, only time decides.
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
_PID_DIGITS = 9
PROC = Path("/proc")


def new_holder() -> str:
    """A name for one more holder in this process: machine, process and a part that is never used twice."""
    return ":".join((_PREFIX, platform.node() or "-", _machine() or "-", _this_process() or "-", uuid7()))


def is_gone(holder: str, proc: Path = PROC) -> bool:
    """Whether the holder was a process of this machine that certainly runs no more. Whatever cannot be found out is no
    certainty. `proc` is the system's folder of processes."""
    fields = holder.rsplit(":", 3)
    if len(fields) != 4 or not holder.startswith(f"{_PREFIX}:"):
        return False
    machine, process = fields[1], fields[2]
    if machine == "-" or machine != _machine() or not _is_process(process):
        return False
    pid = int(process.partition("-")[0])
    if not _exists(pid):
        return True
    try:
        return _process(pid, proc) != process
    except OSError:
        # Hidden from this user (`hidepid`), or no descriptor is free to look.
        return False


def _is_process(text: str) -> bool:
    pid, dash, born = text.partition("-")
    return bool(dash) and pid.isascii() and pid.isdigit() and len(pid) <= _PID_DIGITS and bool(born)


def _machine() -> str | None:
    """This boot of this machine, and in it the spaces of process numbers and of times since boot; None if the system does
    not say now."""
    with suppress(OSError):
        return _identity()
    return None


@functools.cache
def _identity() -> str:
    boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    spaces = [os.readlink(PROC / "self/ns/pid")]
    with suppress(FileNotFoundError):  # older kernels have one such space
        spaces.append(os.readlink(PROC / "self/ns/time"))
    return hashlib.sha256(" ".join((boot, *spaces)).encode()).hexdigest()[:16]


def _exists(pid: int) -> bool:
    """Whether there is a process of this number, possibly one that has ended and is still listed. The system says so to
    every user, and it takes no descriptor."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _process(pid: int, proc: Path = PROC) -> str | None:
    """A process by its number and the moment it was started, as numbers come again; None if it has ended. Raises `OSError`
    if the system does not say."""
    stat = (proc / str(pid) / "stat").read_bytes()
    # The name of the program, in brackets, may hold anything; the state follows it, and 19 fields on the start.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else f"{pid}-{fields[19].decode()}"


def _this_process() -> str | None:
    with suppress(OSError):
        return _process(os.getpid())
    return None
