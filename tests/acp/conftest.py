"""What all tests of ACP stand on."""

from __future__ import annotations

import pytest

from hitherto.acp import pipes
from hitherto.acp.agent import editor_host
from hitherto.acp.client import process, requests
from hitherto.acp.proxy import agent_list, agent_session
from tests.support.waits import NEVER

PATIENT = (
    (requests, "CANCEL_SECONDS"),
    (process, "LEAVE_SECONDS"),
    (editor_host, "ENDING_SECONDS"),
    (editor_host, "SHOW_SECONDS"),
    (pipes, "LINGER_SECONDS"),
    (agent_session, "CALL_SECONDS"),
    (agent_list, "LIST_SECONDS"),
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is given up for being slow, and nothing is asked for once more meanwhile, unless a test wants it."""
    for module, name in PATIENT:
        monkeypatch.setattr(module, name, NEVER)
