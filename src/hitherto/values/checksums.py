"""Checksums of stored rows: whether what a disk gives back is what was written, by whom it was, and in that place.

A CRC-32 is enough: it is against disks, not against people.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import add
from typing import Any
from zlib import crc32

import msgspec

from hitherto.model import Lease

_pack = msgspec.msgpack.Encoder().encode

FENCE_BITS = 15
ACQUIRED_BITS = 16


def checksum(*values: Any) -> int:
    """The checksum of a row's values, among them whose it is and its place."""
    try:
        return crc32(_pack(values))
    except UnicodeEncodeError:  # lone surrogates
        return crc32(ascii(values).encode())


def session_place(owner: str, session_id: str, num: int) -> int:
    """The checksum of which session of which owner has a number. Lists ask for it once for each session: hence its own."""
    return crc32(session_id.encode("utf-8", "surrogatepass"), _owner_seed(owner) + num)


@lru_cache(maxsize=1_024)
def _owner_seed(owner: str) -> int:
    return checksum(owner)


def log_seed(owner: str, log: int) -> int:
    """What the place of an entry adds to its checksum, but for its position in the log, which is added too."""
    return checksum(owner, log)


def entry_seeds(owner: str, log: int, first: int, last: int) -> range:
    """What the places of the entries in this stretch add to their checksums: the same bytes have another one elsewhere."""
    start = log_seed(owner, log) + first
    return range(start, start + last - first + 1)


def entry_checksum(owner: str, log: int, seq: int, payload: bytes) -> int:
    """The checksum of an entry's exact bytes in its place."""
    return crc32(payload) + log_seed(owner, log) + seq


def beside_checksum(place: int, beside: tuple[Any, ...]) -> int:
    """The checksum of what stands beside the payload of an entry; `place` is what its place adds to the other one."""
    return crc32(_pack((place, beside)))


def entry_checksums(seeds: Iterable[int], payloads: Iterable[bytes]) -> list[int]:
    """The checksums of entries, each in its place."""
    return list(map(add, map(crc32, payloads), seeds))


def lease_checksum(owner: str, num: int, lease: Lease) -> int:
    """The checksum of a session's lease, with some bits of what every new lease changes."""
    fence = lease.fence & ((1 << FENCE_BITS) - 1)
    acquired = lease.acquired_at & ((1 << ACQUIRED_BITS) - 1)
    whole = checksum(owner, num, lease.holder, lease.fence, lease.acquired_at, lease.expires_at)
    return (acquired << FENCE_BITS | fence) << 32 | whole


def read_checksum(owner: str, num: int, read_at: int | None) -> int | None:
    """The checksum of when a session was last read; None if it never was."""
    return None if read_at is None else checksum(owner, num, read_at)


def is_read_whole(owner: str, num: int, read_at: int | None, known: int | None) -> bool:
    """Whether the session was last read then, as far as that is known."""
    return known is None or known == read_checksum(owner, num, read_at)


def is_lease_whole(owner: str, num: int, lease: Lease | None, known: int | None) -> bool:
    """Whether the lease is what was written. One that a program took which knows of no checksums is believed."""
    if known is None or lease is None:
        return known is None
    expected = lease_checksum(owner, num, lease)
    stamp, known_stamp = expected >> 32, known >> 32
    mask = (1 << FENCE_BITS) - 1
    is_of_older_program = (stamp & mask) != (
        known_stamp & mask
    ) and stamp >> FENCE_BITS != known_stamp >> FENCE_BITS
    return known == expected or is_of_older_program
