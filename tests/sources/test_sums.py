"""Every sum that is told agrees with a plain reading of the files of seven agents."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL
from tests.sources.spent_sessions import COMPARED, WRITERS, differences, expected, make, sync, told

OF_EACH = 30


@pytest.mark.parametrize("store", ["sqlite", "memory"])
async def test_what_the_sessions_of_seven_agents_used_is_what_their_files_say(
    tmp_path: Path, store: str
) -> None:
    spent = make(tmp_path, OF_EACH)
    url = f"sqlite:///{tmp_path / 'store.db'}" if store == "sqlite" else "memory:sums"
    async with hitherto.open(url) as sessions:
        await sync(sessions, tmp_path)
        found = {name: await told(sessions, **how) for name, (how, _) in COMPARED.items()}
        by_session = await sessions.spending.report(
            LOCAL, since_day="2025-01-01", until_day="2026-02-28", period=None, by="session"
        )
    differ = {name: differences(found[name], expected(spent, of)) for name, (_, of) in COMPARED.items()}
    assert differ == {name: [] for name in COMPARED}
    # Some sessions of Claude Code are copies of others as a whole, and have nothing of their own.
    assert (len(WRITERS) - 1) * OF_EACH < by_session.sessions <= len(WRITERS) * OF_EACH
    assert len({one.key for one in spent if one.agent == "claude"}) < len(spent)
