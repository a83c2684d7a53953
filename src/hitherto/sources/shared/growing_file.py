"""Files of lines that only grow: how much of one is complete, and whether it was rewritten since. Pure."""

from __future__ import annotations

import re

from hitherto.claude.lines import is_object
from hitherto.sources.shared import files

SEAL = 64
"""So many bytes before the end of what was read are kept, to tell a file that grew from one that was rewritten."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_REST_OF_LINE = re.compile(rb"[^\n\0]+")


def complete_length(data: bytes) -> int:
    """Where the last complete line ends. A complete record needs no line end: no prefix of it is a record.

    NULs end lines too, but a run of them at the end may grow and waits.
    """
    end = max(data.rfind(b"\n"), data.rfind(b"\0")) + 1
    if end == len(data):
        return len(data.rstrip(b"\0"))
    rest = data[end:].removeprefix(_BYTE_ORDER_MARK)
    return len(data) if rest.rstrip().endswith(b"}") and is_object(rest) else end


def continues_line(data: bytes) -> bool:
    """Whether these bytes continue the line before them."""
    rest = _REST_OF_LINE.match(data)
    return rest is not None and not rest.group().isspace()


def next_seal(seal: bytes, data: bytes, end: int) -> bytes:
    """The seal of a file after `data` was read up to `end`; `seal` is the one before."""
    return (seal + data[max(end - SEAL, 0) : end])[-SEAL:]


def decompress(data: bytes, most: int = files.LARGEST) -> bytes:
    """The content of Zstandard data, up to the first damage. `ValueError` if it has more than `most` bytes."""
    import zstandard  # here: few files are compressed

    if not data:
        return b""  # the reader would wait for more input forever
    pieces, size = list[bytes](), 0
    with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        try:
            # One step at a time: a longer read would lose what comes before the damage.
            while size <= most and (piece := reader.read1(1 << 20)):
                pieces.append(piece)
                size += len(piece)
        except zstandard.ZstdError:
            pass  # what was read before the damage is all there is
    if size > most:
        raise ValueError(f"larger than {most} bytes, the most that is read")
    return b"".join(pieces)
