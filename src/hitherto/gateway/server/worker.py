"""A worker process: `python -P -m hitherto.gateway.server.worker`. It reads one piece of work after the other, and answers.

It ends with its server: at the end of its input. It is nicer than the server, and has bounded memory.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from hitherto.presentation import effort

HEAD = struct.Struct("!?I")
"""Before each message: whether it is a result (else what went wrong), and how long it is."""
NICE = 5
MEMORY_BYTES = 2 << 30

Work = tuple[float, Callable[..., bytes], tuple[Any, ...]]
"""The CPU seconds for all parts that are bounded, a function and what to give it."""


def main() -> None:
    """Serve standard input until it ends."""
    given, taken = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group: the server decides
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICE)
    with suppress(ValueError, OSError):  # not everywhere
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    gc.freeze()
    while head := given.read(HEAD.size):
        _, size = HEAD.unpack(head)
        _answer(given.read(size), taken)


def pickled(work: Callable[..., Any], *given: Any) -> bytes:
    """Work whose result is no bytes."""
    return pickle.dumps(work(*given))


def _answer(message: bytes, taken: BinaryIO) -> None:
    try:
        work: Work = pickle.loads(message)  # noqa: S301 - the server wrote it
        seconds, function, given = work
        effort.begin(seconds)
        done, result = True, function(*given)
    except Exception:  # noqa: BLE001 - the server tells whoever asked
        done, result = False, traceback.format_exc().encode("utf-8", "replace")
    taken.write(HEAD.pack(done, len(result)) + result)
    taken.flush()


if __name__ == "__main__":
    main()
