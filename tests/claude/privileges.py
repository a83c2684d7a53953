"""Being somebody to whom files can be forbidden: root may read them all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65_534


@contextmanager
def without_privileges(folder: Path) -> Iterator[None]:
    """Run the block as nobody, if this is root; `folder` and all in it, and no other place, is then nobody's own."""
    if os.geteuid() != 0:
        yield
        return
    for place in (folder, *folder.rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    modes = {
        parent: parent.stat().st_mode for parent in folder.parents if parent.stat().st_mode & 0o011 != 0o011
    }
    for parent, mode in modes.items():
        parent.chmod(mode | 0o011)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        for parent, mode in modes.items():
            parent.chmod(mode)
