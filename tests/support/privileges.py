"""Being somebody to whom files can be forbidden: root may read and write them all."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

CAPABILITIES_3 = 0x20080522
"""The version of the kernel's structures: two sets of 32 bits each."""
BEYOND_MODES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: what lets root pass by the modes of files."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def without_privileges() -> Iterator[None]:
    """Within the block the modes of files hold for this thread, and those that it starts, also if this is root.

    Root stays the owner of its files, so that no folder above has to be opened for anybody: other tests, and pytest
    itself, set the modes of those while this one runs.
    """
    if os.geteuid() != 0:
        yield
        return
    header, held = _Header(CAPABILITIES_3, 0), (_Capabilities * 2)()
    _called("capget", header, held)
    before = held[0].effective
    held[0].effective = before & ~BEYOND_MODES
    _called("capset", header, held)
    try:
        yield
    finally:
        held[0].effective = before
        _called("capset", header, held)


def _called(name: str, header: _Header, held: ctypes.Array[_Capabilities]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(ctypes.byref(header), held) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
