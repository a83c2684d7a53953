"""A plugin of pytest: every line that an agent says in the tests of `tests/acp` is held against the official schema too.

python -m pytest -p tests.interop.schema_plugin tests/acp
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.acp import protocol_models, wire
from tests.acp.agent import in_process
from tests.interop.packages import install
from tests.interop.schema import Schema


def pytest_configure() -> None:
    install()


@pytest.fixture(autouse=True)
def official_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def checked(line: bytes, asked: dict[Any, str]) -> dict[str, Any]:
        Schema(asked).check(line)
        return protocol_models.checked(line, asked)

    for module in (wire, in_process):
        monkeypatch.setattr(module, "checked", checked)
