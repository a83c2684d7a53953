"""A provider in a process of its own, so that its work is not counted: `python -m bench.workloads.provider CHUNKS`.

Prints its address and plays the same long answer to everyone, until its input ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.engines.provider import Provider, serving


@contextmanager
def streaming(chunks: int) -> Iterator[dict[str, str]]:
    """The variables by which a model client finds a provider whose every answer has so many chunks."""
    command = (sys.executable, "-m", "bench.workloads.provider", str(chunks))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        provider = Provider(url=process.stdout.readline().strip())
        try:
            yield provider.environ()
        finally:
            process.stdin.close()


def main(chunks: int) -> None:
    """Serve until nobody wants it any more."""
    with serving() as provider:
        provider.otherwise = [f"word {number} " for number in range(chunks)]
        os.write(1, f"{provider.url}\n".encode())
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
