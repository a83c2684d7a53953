"""Which servers of a store run on this machine, and where: a small file for each in the data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from hitherto.holders import is_gone, new_holder
from hitherto.model import Value


class RunningServer(Value, frozen=True):
    """The address of a server in a browser, and the process that it is."""

    address: str
    holder: str


@contextmanager
def announced(folder: Path, store_id: str, address: str) -> Iterator[None]:
    """Within it, `running_address` tells this address."""
    path = folder / f"server-{store_id}-{os.getpid()}.json"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.encode(RunningServer(address=address, holder=new_holder())))
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_address(folder: Path, store_id: str) -> str | None:
    """The address of the server of this store that was started last; None if none runs here."""
    known = []
    for path in folder.glob(f"server-{store_id}-*.json"):
        with suppress(OSError, msgspec.DecodeError):
            server = msgspec.json.decode(path.read_bytes(), type=RunningServer)
            if is_gone(server.holder):
                path.unlink(missing_ok=True)
            else:
                known.append((path.stat().st_mtime_ns, server.address))
    return max(known)[1] if known else None
