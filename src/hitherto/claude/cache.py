"""What lists read from transcripts, remembered beside Hitherto's own data; never in the agent's folder.

A cache is only ever a shortcut. One that is missing, damaged, of another version or not writable is as if it were
empty, and so is one in a data folder that is refused because others can write to it. Processes that write it at the
same time replace each other's file as a whole; the loser's work is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping, Set
from pathlib import Path

import msgspec

from hitherto.claude.metadata import Metadata, mark, read_metadata
from hitherto.claude.paths import open_transcript
from hitherto.errors import InvalidInput
from hitherto.settings import read_settings

_VERSION = b"hitherto claude list 1\n"
_CHECKSUM_LENGTH = 4


class _Known(msgspec.Struct, array_like=True, gc=False):
    """What a transcript said when its file was this one."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    metadata: Metadata


_Folder = dict[str, _Known]
_folders = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_folder = msgspec.msgpack.Decoder(_Folder)
_encoder = msgspec.msgpack.Encoder()


class Reader:
    """Reads transcripts, each anew."""

    def __init__(self, projects: Path) -> None:
        self._file: Path | None
        try:
            self._file = cache_file(projects)
        except InvalidInput:
            self._file = None

    def metadata(self, folder: str, name: str, found: os.stat_result) -> Metadata | None:
        """What a transcript says, or None if it cannot be read; `found` is what the folder said of the file."""
        del found
        read = _read(os.path.join(folder, name), None)
        return read.metadata if read else None

    def close(self, names: Callable[[], Mapping[str, Set[str]]], *, everything: bool) -> None:
        """Called when all is read. `names` are those in each folder that was looked into.

        `everything`: there are no other transcripts, so a cache of many more is of no use any longer.
        """
        del names
        if everything and self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()


class CachedReader(Reader):
    """Reads a transcript only if it changed since another list read it, and then only what was added to it."""

    def __init__(self, projects: Path) -> None:
        super().__init__(projects)
        self._stored = {} if self._file is None else _load(self._file)
        self._open: dict[str, _Folder] = {}
        self._changed: set[str] = set()

    def metadata(self, folder: str, name: str, found: os.stat_result) -> Metadata | None:
        """The same."""
        entries = self._open.get(folder)
        if entries is None:
            entries = self._open[folder] = _decoded(self._stored.get(folder))
        known = entries.get(name)
        if known is not None and _is_same(known, found):
            return known.metadata
        read = _read(os.path.join(folder, name), known)
        if read is None:
            return None
        entries[name] = read
        self._changed.add(folder)
        return read.metadata

    def close(self, names: Callable[[], Mapping[str, Set[str]]], *, everything: bool) -> None:
        """Remember what was read, and forget the transcripts that are gone."""
        if self._file is None:
            return
        seen = names()
        for folder, entries in self._open.items():
            gone = entries.keys() - seen.get(folder, entries.keys())
            if gone:
                self._changed.add(folder)
                self._open[folder] = {name: entries[name] for name in entries if name not in gone}
        gone_folders = self._stored.keys() - seen.keys() if everything else set()
        gone_folders |= {folder for folder, found in seen.items() if not found and folder in self._stored}
        if not self._changed and not gone_folders:
            return
        kept = self._stored | {
            folder: msgspec.Raw(_encoder.encode(self._open[folder])) for folder in self._changed
        }
        kept = {folder: entries for folder, entries in kept.items() if folder not in gone_folders}
        with contextlib.suppress(OSError):
            _save(self._file, _encoder.encode(kept))


def cache_file(projects: Path) -> Path:
    """Where lists of this projects folder are remembered. Raises `InvalidInput` if others can put files there."""
    name = hashlib.sha256(os.fsencode(os.path.abspath(projects))).hexdigest()[:16]
    return read_settings().data_dir / "cache" / f"claude-{name}"


def _is_same(known: _Known, found: os.stat_result) -> bool:
    return (
        known.size == found.st_size
        and known.mtime_ns == found.st_mtime_ns
        and known.inode == found.st_ino
        and known.device == found.st_dev
    )


def _read(path: str, known: _Known | None) -> _Known | None:
    """What the transcript at `path` says; of a file that has only grown since it was `known`, the new part is read."""
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        # Before reading: what is added meanwhile makes the file another one for the next list.
        found = os.fstat(descriptor)
        grown = known is not None and _has_grown(known, found, descriptor)
        metadata = read_metadata(descriptor, known.metadata if known is not None and grown else None)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return _Known(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, metadata)


def _has_grown(known: _Known, found: os.stat_result, descriptor: int) -> bool:
    same = known.inode == found.st_ino and known.device == found.st_dev and known.size < found.st_size
    return same and mark(descriptor, known.metadata.end) == known.metadata.mark


def _load(file: Path) -> dict[str, msgspec.Raw]:
    try:
        data = file.read_bytes()
    except OSError:
        return {}
    checksum, body = data[len(_VERSION) :][:_CHECKSUM_LENGTH], data[len(_VERSION) + _CHECKSUM_LENGTH :]
    if not data.startswith(_VERSION) or _checksum(body) != checksum:
        return {}
    try:
        return _folders.decode(body)
    except (ValueError, RecursionError):  # among them every error of msgspec's
        return {}


def _decoded(stored: msgspec.Raw | None) -> _Folder:
    try:
        return _folder.decode(stored) if stored is not None else {}
    except (ValueError, RecursionError):
        return {}


def _save(file: Path, body: bytes) -> None:
    """Replace the file as a whole; readers see the old one or the new one."""
    for folder in (file.parent.parent, file.parent):  # one by one: `parents` are made as the mask says
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}-")
    try:
        with os.fdopen(descriptor, "wb") as written:
            written.write(_VERSION + _checksum(body))
            written.write(body)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise


def _checksum(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECKSUM_LENGTH, "big")
