"""What all tests of ACP stand on."""

from __future__ import annotations

import pytest

from hitherto.acp import client_asking, client_process, host
from hitherto.acp.proxy import seats, theirs
from tests.waits import NEVER

PATIENT = (
    (client_asking, "CANCEL_SECONDS"),
    (client_process, "LEAVE_SECONDS"),
    (host, "ENDING_SECONDS"),
    (host, "SHOW_SECONDS"),
    (seats, "CALL_SECONDS"),
    (theirs, "LIST_SECONDS"),
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given up for being slow, and nothing is asked for once more meanwhile, unless a test wants it."""
    for module, name in PATIENT:
        monkeypatch.setattr(module, name, NEVER)
