from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.engines.provider import Provider, serving

MODEL = "openai:gpt-5"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with an empty store, and the commands that work on it."""
    return Shell(tmp_path)


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A provider of models."""
    with serving() as running:
        yield running


@pytest.fixture
def models(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables by which a command finds the provider and a model of it; this process has them too."""
    variables = {**provider.environ(), "HITHERTO_MODEL": MODEL}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables
