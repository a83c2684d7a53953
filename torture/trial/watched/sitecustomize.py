"""Loaded by Python itself in a process that is watched: notes each file, program and connection that the process opens.

The file in `TORTURE_NOTES` gets a line of JSON for each. See `torture.trial.process_watch`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

NOTED = {
    "open": 1,
    "subprocess.Popen": 2,
    "os.exec": 1,
    "os.fork": 0,
    "os.forkpty": 0,
    "os.posix_spawn": 1,
    "os.spawn": 2,
    "os.system": 1,
    "socket.connect": 2,
    "socket.getaddrinfo": 1,
    "socket.sendto": 2,
}
"""Events of the interpreter, and how many of their arguments are noted."""

if (_notes := os.environ.get("TORTURE_NOTES")) is not None:
    _file = os.open(_notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _note(event: str, given: tuple[Any, ...]) -> None:
        # What is opened by its number is open already.
        if event in NOTED and not (event == "open" and isinstance(given[0], int)):
            told = [
                os.fsdecode(each) if isinstance(each, bytes) else str(each) for each in given[: NOTED[event]]
            ]
            os.write(_file, json.dumps([event, *told]).encode("utf-8", "backslashreplace") + b"\n")

    sys.addaudithook(_note)
