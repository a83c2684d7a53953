"""Our writer and eight others on one transcript, all of them killed at any moment."""

from __future__ import annotations

from pathlib import Path

from tests.claude.many_writers import begun, left, one_life

LIVES = 3
ACKNOWLEDGED = 60


def test_no_acknowledged_line_is_lost_and_no_foreign_byte_is_changed(tmp_path: Path) -> None:
    path = begun(tmp_path)
    found = left(path, [one_life(tmp_path, path, life, ACKNOWLEDGED, {}) for life in range(LIVES)])
    assert (found.ours_lost, found.theirs_changed) == (0, 0)
    assert found.acknowledged > 2 * LIVES * ACKNOWLEDGED
