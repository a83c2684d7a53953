"""What an editor sends to one session is stored in the order in which it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hitherto.model import LOCAL
from tests.acp import scripted_agent
from tests.acp.agent.in_process import opened, serving
from tests.support.homes import PostgresHome
from tests.support.postgres_server import PostgresServer

MANY = 20
DATABASE = "order_of_an_editor"


@pytest.fixture(params=("memory", "sqlite", "postgres"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        database: PostgresServer = request.getfixturevalue("postgres_server")
        yield PostgresHome(database, DATABASE).url
        database.drop_database(DATABASE)
    else:
        yield "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'r.db'}"


async def test_titles_and_modes_that_are_sent_without_waiting_end_with_the_last(url: str) -> None:
    async with serving(scripted_agent.engine, store=url) as (line, sessions):
        session_id = await opened(line)
        numbers = []
        for number in range(MANY):
            numbers += [
                line.begin("session/set_title", sessionId=session_id, title=f"title {number}"),
                line.begin("session/archive", sessionId=session_id),
                line.begin("session/unarchive", sessionId=session_id),
            ]
        answers = [await line.answer(number) for number in numbers]
        assert [each["title"] for each in answers[::3]] == [f"title {number}" for number in range(MANY)]
        session = await sessions.get(LOCAL, session_id)
        assert (session.title, session.archived) == (f"title {MANY - 1}", False)
        assert list(session.earlier_titles)[-3:] == [f"title {MANY - each}" for each in (4, 3, 2)]
