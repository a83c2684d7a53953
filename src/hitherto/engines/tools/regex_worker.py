"""A program that looks for a regular expression in what it is sent, and in nothing else.

It is a process of its own because a pattern can take for ever, and Python's matching holds the interpreter meanwhile:
only a process can be ended. It is started by its path, without site packages, and imports the standard library alone.

In: a line of JSON (`pattern`, `ignore_case`, `hits`, `chars`, `seconds`, `memory`); then for each batch a line with the
sizes of some files, and the files. Out, a line of JSON each: `{}` or `{"error": …}` about the pattern; then for each
batch `[[file, line number, text], …]`, where files are counted from 0.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

SNIFFED = 8_192
BEFORE = 80
"""How much of a very long line is shown before what was found in it."""


def main(given: BinaryIO, output: BinaryIO) -> None:
    order = json.loads(given.readline())
    _bound(resource.RLIMIT_CPU, int(order["seconds"]) + 1)
    _bound(resource.RLIMIT_AS, order["memory"])
    try:
        pattern = re.compile(order["pattern"], re.IGNORECASE if order["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        _write(output, {"error": str(error)})
        return
    _write(output, {})
    left = order["hits"]
    while line := given.readline():
        files = [given.read(size) for size in json.loads(line)]
        hits = list(_hits(pattern, files, left, order["chars"]))
        left -= len(hits)
        _write(output, hits)


def _hits(
    pattern: re.Pattern[str], files: list[bytes], most: int, chars: int
) -> Iterator[tuple[int, int, str]]:
    for file, data in enumerate(files):
        if b"\0" in data[:SNIFFED]:
            continue
        for number, line in enumerate(_lines(data), 1):
            if found := pattern.search(line):
                if most <= 0:
                    return
                yield file, number, _cut(line, found.start(), chars)
                most -= 1


def _lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _cut(line: str, at: int, chars: int) -> str:
    """The line, or the part of a long one around what was found."""
    if len(line) <= chars:
        return line
    start = max(0, min(at - BEFORE, len(line) - chars))
    return ("…" if start else "") + line[start : start + chars] + ("…" if start + chars < len(line) else "")


def _write(output: BinaryIO, value: Any) -> None:
    output.write(json.dumps(value).encode("ascii") + b"\n")
    output.flush()


def _bound(what: int, most: int) -> None:
    """Ask for a limit of the system; not every system has every one."""
    try:
        resource.setrlimit(what, (most, most))
    except (ValueError, OSError):
        return


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
