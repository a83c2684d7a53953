"""Every row of the scorecard that needs no special machine holds in its short form, and its control fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from torture.row import Row, Setting
from torture.rows import ROWS

SEED = 11
SHORT = [row for row in ROWS.values() if row.in_tests]


def setting(folder: Path) -> Setting:
    return Setting(SEED, short=True, folder=folder, say=lambda _line: None)


@pytest.mark.parametrize("row", SHORT, ids=lambda row: row.key)
def test_the_promise_of_the_row_is_kept(row: Row, tmp_path: Path) -> None:
    outcome = row.run(setting(tmp_path))
    assert outcome.met, outcome.figure


@pytest.mark.parametrize("row", SHORT, ids=lambda row: row.key)
def test_the_same_trial_of_a_broken_program_fails(row: Row, tmp_path: Path) -> None:
    outcome = row.control(setting(tmp_path))
    assert not outcome.met, f"{row.broken}: {outcome.figure}"
