"""The controls of the scorecard's rows, each in its short form: the trial of a broken program, which must fail."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.runner import NOTICED, tell
from tests.torture.test_rows import SHORT, setting
from torture.trial.row import Row

CONTROLS: dict[str, Row] = {f"control-{row.key}": row for row in SHORT}


def control_verdicts(folder: Path, chosen: Sequence[str]) -> dict[str, str]:
    """What became of each of these controls."""
    return {name: _try(folder / name, name) for name in chosen}


def _try(folder: Path, name: str) -> str:
    began, row = time.monotonic(), CONTROLS[name]
    folder.mkdir()
    outcome = row.control(setting(folder))
    verdict = NOTICED if outcome.is_failure else "NOT RUN" if outcome.broke_off else "SURVIVED"
    tell(f"{verdict:11}  {name:52} {time.monotonic() - began:5.1f} s  {row.broken}: {outcome.figure}")
    return verdict
