"""Standard input and output of this process, for the protocol alone."""

from __future__ import annotations

import os

from hitherto.rpc.transport import FrameTooLong, Lines

CHUNK = 64 * 1024
STDIN, STDOUT, STDERR = 0, 1, 2


class Wires:
    """The two descriptors of the protocol, closed to other code in this process; and lines read ahead."""

    def __init__(self) -> None:
        self.source, self.target, self.lines = os.dup(STDIN), os.dup(STDOUT), Lines()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, STDIN)
        os.close(nothing)
        os.dup2(STDERR, STDOUT)

    def first(self) -> bytes | None:
        """The first line; None if there is none. A line that is too long is left for later."""
        while not self.lines:
            chunk = os.read(self.source, CHUNK)
            if not chunk:
                return None
            self.lines.feed(chunk)
        try:
            return self.lines.take()
        except FrameTooLong as dropped:
            self.lines.put_back(dropped)
            return None

    def write(self, data: bytes) -> None:
        """Write all of it; only before the loop runs."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.target, rest) :]
