"""What other agents keep packed by Zstandard."""

from __future__ import annotations

from hitherto.sources import files


def unpacked(data: bytes, most: int = files.LARGEST) -> bytes:
    """What is packed in these bytes, as far as it can be had. `ValueError` if it is more than `most` bytes."""
    import zstandard  # here: few things are packed

    if not data:
        return b""  # of nothing at all, the reader would wait for more without end
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
        raise ValueError(f"larger than {most} bytes")
    return b"".join(pieces)
