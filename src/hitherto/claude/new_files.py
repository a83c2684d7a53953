"""New files in folders that other programs use: there as a whole, or not at all. What is there is never touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hitherto.claude.edit import sync_folder
from hitherto.claude.paths import open_transcript


@contextmanager
def new_file(path: Path) -> Iterator[int]:
    """A descriptor of a new file, which appears under its name, and lasts, when the block ends. Only its owner may read it.

    `FileExistsError` if something else has that name by then; then, and whenever the block fails, nothing is left.
    """
    # No reader takes a file of this name for a transcript.
    fresh = path.with_name(f"{path.name}.tmp")
    target = open_transcript(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        try:
            yield target
            os.fsync(target)
        finally:
            os.close(target)
        _name(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


def _name(fresh: Path, path: Path) -> None:
    """Give the file its name. A link, unlike a renaming, never takes the place of what is there."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        raise
    except OSError:  # not every file system has links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(fresh, path)
