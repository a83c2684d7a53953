"""A process that renames a session again and again, and says each title once it is acknowledged, until it is killed.

`python -m tests.claude.rename_worker ID NAME`
"""

from __future__ import annotations

import sys
from itertools import count

from hitherto.claude.edit import rename_session


def main(session_id: str, name: str) -> None:
    for number in count(1):
        rename_session(session_id, f"{name} {number}")
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
