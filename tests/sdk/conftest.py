"""What tests of the session API stand on: folders of their own, a provider, and nothing left behind by any test."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.engines.provider import Provider, serving


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is kept is kept in the test's own folder."""
    for variable, name in (
        ("HITHERTO_DATA_DIR", "data"),
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("HOME", "home"),
    ):
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.delenv("HITHERTO_STORE", raising=False)
    monkeypatch.delenv("HITHERTO_MODEL", raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store; when the test is over, nobody has it open."""
    file = tmp_path / "sessions.db"
    yield f"sqlite:///{file}"
    assert not file.with_name("sessions.db-wal").exists()


@pytest.fixture(autouse=True)
def tidy(request: pytest.FixtureRequest) -> None:
    """No test that runs tasks leaves one behind."""
    if inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("nothing_left")


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    """When the test is over, no task is left that it has started."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before
    assert [task for task in left if "TestRunner" not in repr(task.get_coro())] == []


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A running provider that every model finds."""
    with serving() as running:
        for name, value in running.environ().items():
            monkeypatch.setenv(name, value)
        yield running
