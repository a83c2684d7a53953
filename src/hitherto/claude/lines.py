"""From bytes to intact records. Whatever happened to a transcript, its intact records are read and the damage is counted."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

BLOCK = 1 << 20
"""How much of a file is read at a time."""
RECORD_LIMIT = 128 << 20
"""A longer line is skipped, so that no file can exhaust memory."""
EFFORT = 64 << 20
"""How many characters of a broken line are searched in vain for intact records, at most."""

_BOM = b"\xef\xbb\xbf"
_NULS = re.compile(rb"\0+")
_LINE = re.compile(rb"[^\n]+")
_END = re.compile(rb"[\n\0]")
_NOTHING = bytes(BLOCK)
# Inside a string the quote would be escaped, so this starts an object; its end shows which one.
_BEGINNING = re.compile(r'\{\s*"')
_BLANK = " \t\r"
# The cost of finding out that a value is nested too deeply.
_DEEP = 100_000


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """The damage in a transcript, counted; false if there is none.

    `unreadable` lines held no whole record; `torn_tail` is the last line if it broke off, as one that is being
    written does; `spliced` lines held something beside or instead of one record, and their whole records were read;
    `nul_runs` stand where a crash lost blocks of the file; `bad_utf8` records were read with U+FFFD for the bad
    bytes; `overlong` lines were passed over.
    """

    unreadable: int = 0
    torn_tail: int = 0
    spliced: int = 0
    nul_runs: int = 0
    bad_utf8: int = 0
    byte_order_marks: int = 0
    overlong: int = 0

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))

    @property
    def records(self) -> int:
        """How many records, or places of records, are lost for good."""
        return self.unreadable + self.spliced + self.nul_runs + self.bad_utf8 + self.overlong

    def __add__(self, other: Damage) -> Damage:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Damage(**dict(zip(self.__struct_fields__, (a + b for a, b in pairs), strict=True)))


UNHARMED = Damage()


class _Object(msgspec.Struct):
    """Any JSON object: decoding to it checks the syntax and keeps nothing."""


_object = msgspec.json.Decoder(_Object)
_json = json.JSONDecoder()


def read_records(data: bytes) -> tuple[list[bytes], Damage]:
    """The intact records of a transcript, in order, each as the bytes of one JSON object; and the damage."""
    if b"\0" not in data:
        try:
            objects = _object.decode_lines(data)
        except (ValueError, RecursionError):  # among them every error of msgspec's
            pass
        else:
            whole = [line for line in data.split(b"\n") if line and not line.isspace()]
            # It reads two objects in one line as two lines.
            if len(objects) == len(whole):
                return whole, Damage(bad_utf8=count_bad_utf8(data))
    records: list[bytes] = []
    damage = Damage(nul_runs=count_nul_runs(data))
    for _, line, tail in split(data):
        found, harm = read_line(line, tail)
        records += found
        damage = damage + harm if harm else damage
    return records, damage


def split(data: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """The lines that are not blank: offset, bytes, and whether it is a last line without a line end."""
    for found in _LINE.finditer(without_nuls(data)):
        line = found.group()
        if not line.isspace():
            yield found.start(), line, found.end() == len(data)


def without_nuls(data: bytes) -> bytes:
    """The same with line ends in place of NULs, which are never part of a record; offsets stay the same."""
    return _NULS.sub(_blank, data) if b"\0" in data else data


def _blank(run: re.Match[bytes]) -> bytes:
    return b" " * (run.end() - run.start() - 1) + b"\n"


def read_line(line: bytes, tail: bool = False) -> tuple[list[bytes], Damage]:
    """The intact records in one line: usually the line itself. `tail`: nothing follows, so it may still be being written."""
    marks = line.startswith(_BOM)
    record = line.removeprefix(_BOM) if marks else line
    if is_object(record):
        return [record], Damage(byte_order_marks=marks, bad_utf8=count_bad_utf8(record))
    pieces = _pieces(record)
    if not pieces:
        return [], Damage(unreadable=not tail, torn_tail=tail, byte_order_marks=marks)
    bad = sum(map(count_bad_utf8, pieces))
    return pieces, Damage(spliced=1, byte_order_marks=marks, bad_utf8=bad)


def is_object(record: bytes) -> bool:
    """Whether these bytes are one JSON object, as the standard library reads it: lone surrogates and NaN included."""
    try:
        _object.decode(record)
    except (ValueError, RecursionError):
        try:
            return isinstance(json.loads(record.decode("latin-1")), dict)
        except (ValueError, RecursionError):
            return False
    return True


def decode(record: bytes | msgspec.Raw) -> object:
    """A JSON value; bad UTF-8 is replaced, and the standard library reads what msgspec refuses."""
    try:
        return msgspec.json.decode(record)
    except (ValueError, RecursionError):
        return json.loads(bytes(record).decode("utf-8", "replace"))


def decode_object(record: bytes) -> dict[str, Any]:
    """A JSON object; empty for any other value."""
    value = decode(record)
    return value if isinstance(value, dict) else {}


def encode(value: object) -> bytes:
    """A value as JSON, whatever text it has."""
    return json.dumps(value).encode()


def _pieces(line: bytes) -> list[bytes]:
    """The intact records in a line that several writers, or a crash, put together.

    A record counts only if it has a type and the line ends with it or another begins at once: an object in the middle
    of a torn record is followed by something else.
    """
    # One character for each byte: the syntax is ASCII, and offsets stay those of the bytes.
    text = line.decode("latin-1").rstrip(_BLANK)
    pieces, place, effort = [], 0, 0
    while effort < EFFORT and (begun := _BEGINNING.search(text, place)):
        start = begun.start()
        try:
            value, place = _json.raw_decode(text, start)
        except json.JSONDecodeError as error:
            effort += error.pos - start
            place = start + 1
        except (ValueError, RecursionError):
            effort += _DEEP
            place = start + 1
        else:
            if "type" in value and (place == len(text) or text[place] == "{"):
                pieces.append(line[start:place])
    return pieces


def count_bad_utf8(data: bytes) -> int:
    """How many lines of `data` are not UTF-8."""
    if data.isascii() or _is_utf8(data):
        return 0
    return sum(not line.isascii() and not _is_utf8(line) for line in data.split(b"\n"))


def _is_utf8(data: bytes) -> bool:
    # In blocks: decoded at once, the text could take four times its size.
    reader = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), BLOCK):
            reader.decode(data[start : start + BLOCK])
        reader.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def count_nul_runs(data: bytes) -> int:
    """How many runs of NUL bytes there are."""
    return sum(1 for _ in _NULS.finditer(data)) if b"\0" in data else 0


def count_nul_runs_of(descriptor: int) -> int:
    """How many runs of NUL bytes a file has."""
    runs, offset, open_run = 0, 0, False
    while piece := os.pread(descriptor, BLOCK, offset):
        offset += len(piece)
        # A run that continues from the block before was counted there.
        found = 1 if piece == _NOTHING else count_nul_runs(piece)
        runs += found - (open_run and piece.startswith(b"\0"))
        open_run = piece.endswith(b"\0")
    return runs


def read_blocks(descriptor: int, start: int = 0) -> Iterator[tuple[int, bytes, int]]:
    """A file from `start` on in pieces: offset, bytes, and how many of these bytes are complete lines.

    The rest comes again with the next piece. At the end of the file a line without an end counts as whole. NULs come
    as by `without_nuls`, and blocks of nothing else not at all. What is kept in memory at one time is a block, or the
    longest line up to `RECORD_LIMIT`; for one that is longer, there is a piece of no bytes.
    """
    size = os.fstat(descriptor).st_size
    offset, block = start, BLOCK
    while offset < size:
        piece = os.pread(descriptor, min(block, size - offset), offset)
        if not piece:
            break  # the file shrank meanwhile
        if piece == _NOTHING:
            offset += BLOCK
            continue
        piece = without_nuls(piece)
        end = len(piece) if offset + len(piece) >= size else piece.rfind(b"\n") + 1
        if end:
            yield offset, piece, end
            offset, block = offset + end, BLOCK
        elif block < RECORD_LIMIT:
            block *= 2
        else:
            yield offset, b"", 0
            offset, block = _line_end(descriptor, offset + len(piece)), BLOCK


def _line_end(descriptor: int, offset: int) -> int:
    """Where the line around `offset` ends."""
    while piece := os.pread(descriptor, BLOCK, offset):
        found = _END.search(piece)
        if found:
            return offset + found.end()
        offset += len(piece)
    return offset
