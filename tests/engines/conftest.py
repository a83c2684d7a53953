"""What tests of engines stand on: a provider of models that everything in this process finds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.provider import Provider, serving


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A running provider, whichever wire a model speaks."""
    with serving() as running:
        for name, value in running.environ().items():
            monkeypatch.setenv(name, value)
        yield running
