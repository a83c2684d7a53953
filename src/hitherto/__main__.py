"""The command `hitherto`. It checks the arguments before it imports anything slow."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process. `hitherto acp` starts without importing the command line."""
    os.umask(0o077)  # only the user may read the files that this program writes
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not support every character
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["acp"]:
        from hitherto.acp.main import run_plain

        if run_plain(given[1:]):
            return
    from hitherto.cli import app
    from hitherto.cli.terminal.exit_codes import INTERRUPTED

    try:
        app.main(given, prog_name="hitherto")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once(INTERRUPTED)
        raise


def _leave_at_once(code: int) -> None:
    """End the process without waiting for its threads: an interrupt may have prevented them from being stopped."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
