"""The programs of `examples/` do what they say."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import hitherto
from examples.registry_agent import DAY_MS, clean_up
from hitherto.acp.client import Abilities, Client, Ended, Update
from hitherto.errors import SessionNotFound
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions
from tests.acp.wire import environment, url_of
from tests.support.homes import Clock
from tests.support.paths import ROOT
from tests.support.waits import arrives

EXAMPLES = ROOT / "examples"
AGENT = (sys.executable, str(EXAMPLES / "registry_agent.py"))


@asynccontextmanager
async def agent(folder: Path, *arguments: str, titled: asyncio.Event | None = None) -> AsyncIterator[Client]:
    def hear(update: Update) -> None:
        if titled is not None and update.fields.get("title") == "Paint the barn in":
            titled.set()

    command, *first = AGENT
    async with Client.start(
        command, [*first, *arguments], env=environment(folder), abilities=Abilities(update=hear)
    ) as client:
        yield client


async def browse(folder: Path, *arguments: str) -> str:
    """What `browse.py` prints."""
    store = ("--store", url_of(folder))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / "browse.py"),
        *arguments,
        "--",
        *AGENT,
        *store,
        stdout=asyncio.subprocess.PIPE,
        env=environment(folder),
    )
    said, _ = await arrives(process.communicate(), "the example to end")
    assert process.returncode == 0
    return said.decode()


def test_the_agent_is_shorter_than_sixty_lines() -> None:
    assert len((EXAMPLES / "registry_agent.py").read_text().splitlines()) < 60


async def test_the_agent_keeps_a_registry_with_titles_pages_and_a_filter(tmp_path: Path) -> None:
    titled = asyncio.Event()
    async with agent(tmp_path, titled=titled) as client:
        made = [(await client.new_session(f"/p{number % 2}")).session_id for number in range(60)]
        for session_id in made[1:]:
            await client.set_title(session_id, "Named")
        steps = [step async for step in client.prompt(made[0], "paint the barn in blue")]
        assert isinstance(steps[-1], Ended)
        assert "".join(step.text for step in steps if isinstance(step, Update)) == (
            "You said: paint the barn in blue"
        )
        await arrives(titled.wait(), "the title")
        first = await client.list_page()
        assert first.sessions[0].session_id == made[0]
        assert first.sessions[0].title == "Paint the barn in"
        assert first.next_cursor is not None
        assert sorted({row.session_id async for row in client.list_sessions()}) == sorted(made)
        assert {row.session_id async for row in client.list_sessions(cwd="/p1")} == set(made[1::2])
        heard: list[Update] = []
        await client.load_session(made[0], "/p0", hear=heard.append)
        assert [update.text for update in heard if update.text][-1] == "You said: paint the barn in blue"
        await client.delete_session(made[0])
    async with agent(tmp_path) as client:  # in memory: gone with the process
        assert [row async for row in client.list_sessions()] == []


async def test_the_agent_forgets_what_nobody_has_touched_for_long(sessions: Sessions, clock: Clock) -> None:
    old = await sessions.create(LOCAL, cwd="/p")
    clock.advance(20 * DAY_MS)
    young = await sessions.create(LOCAL, cwd="/p")
    clock.advance(11 * DAY_MS)
    assert await clean_up(sessions, 30) == 1
    assert [session.id for session in (await sessions.find(LOCAL)).sessions] == [young.id]
    with pytest.raises(SessionNotFound):
        await sessions.get(LOCAL, old.id)


async def test_the_agent_cleans_up_when_a_session_is_opened(tmp_path: Path) -> None:
    past = now_ms() - 40 * DAY_MS
    async with hitherto.open(url_of(tmp_path), now=lambda: past) as sessions:
        old = await sessions.create(LOCAL, cwd="/p")
    async with agent(tmp_path, "--store", url_of(tmp_path)) as client:
        young = await client.new_session("/p")
        [step async for step in client.prompt(young.session_id, "Hello")]
        assert [row.session_id async for row in client.list_sessions()] == [young.session_id]
        with pytest.raises(SessionNotFound):
            await client.resume_session(old.id, "/p")


async def test_the_browser_shows_pages_and_keeps_to_a_folder(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        for number in range(60):
            await sessions.create(LOCAL, cwd=f"/p{number % 2}", title=f"Session {number}")
    said = await browse(tmp_path)
    assert "page 1: 50 sessions" in said
    assert "page 2: 10 sessions" in said
    assert len([line for line in said.splitlines() if "Session " in line]) == 60
    said = await browse(tmp_path, "--cwd", "/p1")
    assert "page 1: 30 sessions" in said
    assert "Session 2\n" not in said


async def test_the_browser_goes_on_with_a_session(tmp_path: Path) -> None:
    async with hitherto.open(url_of(tmp_path)) as sessions:
        session = await sessions.create(LOCAL, cwd="/p")
        await sessions.append(LOCAL, session.id, Draft(role="user", parts=(Text(text="Before"),)))
    assert (
        await browse(tmp_path, "--resume", session.id, "--say", "And now?")
        == "You said: And now?[end_turn]\n"
    )
