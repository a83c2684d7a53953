"""SQLite's own calls of the operating system, of which the n-th fails: a layer between SQLite and its files.

SQLite is given another `write`, `open`, … in place of the system's, so that SQLite itself sees the error, and ignores it where
it can. It asks the system for syncs directly: those fail in a layer above, which is only there if they are to fail, because
apsw reports every error that passes through it. Statements can fail too, each before it is run, and SQLite may have only so
much more memory.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

BELOW = "unix"
STEP_OF_MEMORY = 4_096
STATEMENT, MEMORY, SYNC, WRITE = "statement", "memory", "sync", "write"
FAILED = -1

_word, _number, _text, _size = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_ssize_t
_buffer = (_number, _word, _size)
CALLS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "open": ("open", (_number, _text, _number, _number)),
    "access": ("access", (_number, _text, _number)),
    "stat": ("stat", (_number, _text, _word)),
    "fstat": ("fstat", (_number, _number, _word)),
    "ftruncate": ("ftruncate", (_number, _number, _size)),
    "fcntl": ("lock", (_number, _number, _number, _size)),
    "read": ("read", (_size, *_buffer)),
    "pread": ("read", (_size, *_buffer, _size)),
    "pread64": ("read", (_size, *_buffer, _size)),
    "write": (WRITE, (_size, *_buffer)),
    "pwrite": (WRITE, (_size, *_buffer, _size)),
    "pwrite64": (WRITE, (_size, *_buffer, _size)),
    "unlink": ("unlink", (_number, _text)),
    "mmap": ("map", (_size, _word, _size, _number, _number, _number, _size)),
}
"""What SQLite calls of the system → the name that it has here, and its result and parameters."""
EVERY = frozenset(name for name, _ in CALLS.values())


class Kind(NamedTuple):
    """A kind of fault: which calls it can strike, and with which error."""

    name: str
    calls: frozenset[str]
    error: int = errno.EIO
    half: bool = False
    """Whether half of what is to be written is written first, and the rest fails."""
    stays: bool = False
    """Whether every call from the n-th on fails, until it is over."""


KINDS = (
    Kind("the disk fails", EVERY),
    # Not its locks: SQLite takes that for another who holds them, and the program waits for a minute.
    Kind("the disk fails and stays so", EVERY - {"lock"}, stays=True),
    Kind("the disk is full", frozenset({WRITE, "open", "ftruncate"}), errno.ENOSPC),
    Kind("the disk is full after half a write", frozenset({WRITE}), errno.ENOSPC, half=True),
    Kind("half a write, then the disk fails", frozenset({WRITE}), half=True),
    Kind("the system has no room for a file or map", frozenset({"open", "map"}), errno.ENOMEM),
    Kind("a statement fails", frozenset({STATEMENT}), apsw.SQLITE_IOERR),
    Kind("a statement finds the disk full", frozenset({STATEMENT}), apsw.SQLITE_FULL),
    Kind("a statement finds no memory", frozenset({STATEMENT}), apsw.SQLITE_NOMEM),
    Kind("no more memory for SQLite", frozenset({MEMORY})),
)
SYNCS = (
    Kind("a sync fails", frozenset({SYNC}), apsw.SQLITE_IOERR_FSYNC),
    Kind("syncs fail and stay so", frozenset({SYNC}), apsw.SQLITE_IOERR_FSYNC, stays=True),
)


class Faults:
    """Counts calls, and lets the chosen one fail. There is one for each process, since SQLite has one default layer."""

    def __init__(self) -> None:
        self._kind: Kind | None = None
        self._at = self._count = 0
        self._half_done = False
        self.struck = ""
        """The first call that has failed since the fault was set; empty if none has."""
        self._kept: list[Any] = []

    @contextmanager
    def failing(self, kind: Kind, at: int) -> Iterator[None]:
        """Within, the call of this number fails (and all that follow, if the fault stays)."""
        self._at, self._count, self.struck, self._half_done = at, 0, "", False
        self._kind = kind
        if MEMORY in kind.calls:
            apsw.hard_heap_limit(apsw.memory_used() + at * STEP_OF_MEMORY)
        try:
            yield
        finally:
            apsw.hard_heap_limit(0)
            self._kind = None

    def strike(self, call: str) -> Kind | None:
        """The fault, if this call is the one to fail."""
        kind = self._kind
        if kind is None or call not in kind.calls:
            return None
        self._count += 1
        # After half a write SQLite tries the rest, which is the next write.
        wanted = self._count == self._at or self._half_done
        self._half_done = kind.half and self._count == self._at
        if not (wanted or (kind.stays and self._count > self._at)):
            return None
        self.struck = self.struck or call
        return kind

    def install(self, *, syncs: bool) -> None:
        """From here on, every connection of this process is under it; for `syncs` those fail, else the other calls."""

        def trace(_: object, __: str, ___: object) -> bool:
            if (kind := self.strike(STATEMENT)) is not None:
                raise _told(kind)
            return True

        def connected(db: apsw.Connection) -> None:
            db.exec_trace = trace

        apsw.connection_hooks.append(connected)
        layer = _Layer(self, is_default=syncs)
        self._kept.append(layer)
        for name, (call, shape) in () if syncs else CALLS.items():
            address = layer.xGetSystemCall(name)
            if address:
                self._kept.append(self._failing_call(call, shape, address))
                layer.xSetSystemCall(name, ctypes.cast(self._kept[-1], _word).value or 0)

    def _failing_call(self, call: str, shape: tuple[Any, ...], address: int) -> Any:
        kind_of_call = ctypes.CFUNCTYPE(*shape, use_errno=True)
        real = kind_of_call(address)

        def do(*given: Any) -> int:
            kind = self.strike(call) if call != "lock" or _takes_lock(*given) else None
            if kind is None:
                return int(real(*given))
            if kind.half and self._half_done:
                # Of the parameters of each kind of write, the third is how many bytes there are.
                return int(real(*given[:2], given[2] // 2, *given[3:]))
            ctypes.set_errno(kind.error)
            return FAILED

        return kind_of_call(do)


def _takes_lock(_: int, command: int, lock: int) -> bool:
    """Whether a call of `fcntl` takes a lock. Giving one back never fails: whoever counts on it would wait for ever."""
    return command == fcntl.F_SETLK and ctypes.c_short.from_address(lock).value != fcntl.F_UNLCK


def _told(kind: Kind) -> Exception:
    error = apsw.exception_for(kind.error)
    error.args = (kind.name,)
    return error


class _File(apsw.VFSFile):
    def __init__(self, faults: Faults, name: Any, flags: list[int]) -> None:
        self._faults = faults
        super().__init__(BELOW, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - apsw's name
        if (kind := self._faults.strike(SYNC)) is not None:
            raise _told(kind)
        super().xSync(flags)


class _Layer(apsw.VFS):
    def __init__(self, faults: Faults, *, is_default: bool) -> None:
        self._faults = faults
        super().__init__("faults-in-turn", BELOW, makedefault=is_default)

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802 - apsw's name
        return _File(self._faults, name, flags)
