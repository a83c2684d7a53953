"""`jsonl`: the lossless lines, and nothing else."""

from __future__ import annotations

from hitherto.exports.writing import Writer


class JsonLines(Writer):
    """One line after the other."""

    keeps = True

    def line(self, line: bytes) -> bytes:
        """The line with its end."""
        return line + b"\n"
