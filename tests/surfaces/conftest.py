from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with an empty store, and the commands that work on it."""
    return Shell(tmp_path)
