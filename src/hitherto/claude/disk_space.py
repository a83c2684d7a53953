"""Room on the disk for what is about to be written, so that a full disk refuses all of it instead of taking a part."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable

KEEP_SIZE = 1
"""Of Linux: the room lies behind the end of the file, which nobody sees move."""
REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def reserve(descriptor: int, offset: int, length: int) -> None:
    """Have the file system keep room for so many bytes from here on; `OSError` if there is none.

    Where it keeps no room for anybody, nothing is done: then a write may still find none.
    """
    call = _fallocate()
    if call is not None and (failed := call(descriptor, KEEP_SIZE, offset, length)) in REFUSALS:
        raise OSError(failed, os.strerror(failed))


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system's call, which Python does not offer; None where there is none. It returns the number of its error."""
    import ctypes  # here: only who writes needs it

    library = ctypes.CDLL(None, use_errno=True)
    found = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if found is None:
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return lambda *given: ctypes.get_errno() if found(*given) else 0
