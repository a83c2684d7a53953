"""A copy of the program that is broken on purpose, for the controls: what a trial finds in it, it would find in us."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests import mutants
from tests.mutants import Change

HALF_WRITTEN = "*.pyc.*"
"""Compiled modules are copied too, which spares the trial their compiling: those of changed sources are out of date."""


def broken_program(folder: Path, *changes: Change) -> Mapping[str, str]:
    """Copy the sources into a folder and change them there; the environment in which a process runs that copy.

    Raises `LookupError` if the text of a change is no longer in the sources.
    """
    mutants.copy_sources(folder, ["src"], HALF_WRITTEN)
    if not mutants.apply_changes(folder, changes):
        raise LookupError(f"not in the sources any more: {[change.old for change in changes]}")
    return {"PYTHONPATH": f"{folder / 'src'}:{mutants.ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
