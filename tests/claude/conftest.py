"""A config folder for each test that reads Claude Code's files, and a place for what Hitherto remembers of them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The projects folder of a config folder that is the test's own."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("CLAUDE_CODE_PROJECT_DIR_NAME", raising=False)
    folder = tmp_path / "config" / "projects"
    folder.mkdir(parents=True)
    return folder
