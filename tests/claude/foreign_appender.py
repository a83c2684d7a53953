"""A process that appends to a transcript as Claude Code does: whole lines, one write for each.

`python -m tests.claude.foreign_appender FILE NAME` says the number of each line after it was written, until it is
killed. Every so often it breaks off in the middle of a line, as a crash would, and says nothing of it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from itertools import count

TORN_EVERY = 4
BEGINNING = b'{"type":"user","uuid":"other'
"""What each line of an appender called `other…` begins with."""


def line(name: str, number: int) -> bytes:
    """The line that appender `name` writes as its `number`th."""
    text = "x" * random.Random(f"{name} {number}").randrange(10, 10_000)
    record = {"type": "user", "uuid": f"{name}-{number}", "message": {"role": "user", "content": text}}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def main(path: str, name: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    for number in count(1):
        whole = line(name, number)
        if number % TORN_EVERY == 0:
            os.write(descriptor, whole[: len(whole) // 2])
        else:
            assert os.write(descriptor, whole) == len(whole)
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
        # Only so that the file does not grow faster than it can be examined.
        os.fsync(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
