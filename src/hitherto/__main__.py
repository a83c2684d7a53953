"""The command `hitherto`: a look at the arguments before anything slow is imported."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process. An editor that starts the agent does not wait for the command line."""
    os.umask(0o077)  # whatever this program writes is for its user alone
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every letter
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
    """End the process, whatever its threads wait for: an interrupt may have come before anybody could tell them to stop."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
