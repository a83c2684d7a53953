"""Stands between a client and an agent, passes on every line, and writes each into a file of its own in a folder.

python -m tests.interop.tap FOLDER COMMAND ARGUMENTS…
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

Json = dict[str, Any]


def main(folder: str, *command: str) -> int:
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None
    assert agent.stdout is not None
    with (Path(folder) / f"{os.getpid()}.jsonl").open("a", buffering=1) as log:
        threading.Thread(
            target=_pass_on, args=("client", sys.stdin.buffer, agent.stdin, log), daemon=True
        ).start()
        _pass_on("agent", agent.stdout, sys.stdout.buffer, log)
        return agent.wait()


def _pass_on(side: str, source: IO[bytes], target: IO[bytes], log: IO[str]) -> None:
    for line in source:
        log.write(json.dumps({"side": side, "line": line.decode()}) + "\n")
        try:
            target.write(line)
            target.flush()
        except BrokenPipeError:
            break
    with suppress(BrokenPipeError):
        target.close()


def conversations(folder: Path) -> list[list[tuple[str, str]]]:
    """What was passed on, by process, in order: who said it, and the line."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(row) for row in path.read_text().splitlines()]
        found.append([(row["side"], row["line"]) for row in rows])
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
