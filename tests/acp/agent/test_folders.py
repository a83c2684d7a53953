"""One folder under all its names: links, moves, and the worktrees of its repository."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto.model import LOCAL
from tests.acp.wire import Json, Refusal, Talk, scripted, url_of


async def listed(agent: Talk, cwd: Path, **params: object) -> set[str]:
    rows: list[Json] = (await agent.call("session/list", {"cwd": str(cwd), **params}))["sessions"]
    return {row["sessionId"] for row in rows}


async def spoken(agent: Talk, cwd: Path) -> str:
    session = await agent.new(cwd)
    await agent.prompt(session, "Hello")
    return session


async def test_a_folder_is_the_same_under_every_name_also_after_it_was_moved(tmp_path: Path) -> None:
    real, link, other = tmp_path / "real", tmp_path / "link", tmp_path / "other"
    real.mkdir()
    other.mkdir()
    link.symlink_to(real)
    async with hitherto.open(url_of(tmp_path)) as sessions:
        old = (await sessions.create(LOCAL, cwd=str(link), title="From before")).id
    async with scripted(tmp_path) as agent:
        one, two = await spoken(agent, link), await spoken(agent, real)
        everything = {old, one, two}
        assert await listed(agent, link) == await listed(agent, real) == everything
        assert await listed(agent, other) == set()
        hits = (await agent.call("_hitherto/session/search", {"query": "Hello", "cwd": str(link)}))["hits"]
        assert {hit["session"]["sessionId"] for hit in hits} == {one, two}
        for session in everything:
            for name in (link, real):
                opening = {"sessionId": session, "cwd": str(name), "mcpServers": []}
                await agent.call("session/load", opening)
                await agent.call("session/resume", opening)
    moved = tmp_path / "moved"
    real.rename(moved)
    async with hitherto.open(url_of(tmp_path)) as sessions:
        assert await sessions.catalog.move_folder(LOCAL, str(real), str(moved)) == 3
    async with scripted(tmp_path) as agent:
        for name in (real, moved, link):  # the link leads to the old name
            assert await listed(agent, name) == everything
            await agent.call("session/load", {"sessionId": one, "cwd": str(name), "mcpServers": []})
        with pytest.raises(Refusal) as refused:
            await agent.call("session/load", {"sessionId": one, "cwd": str(other), "mcpServers": []})
        assert refused.value.error["data"]["cwd"] == str(moved)
        real.mkdir()  # another folder, which has taken the name
        assert await listed(agent, real) == set()


async def test_all_worktrees_of_a_repository_can_be_listed_together(tmp_path: Path) -> None:
    main, tree, other = tmp_path / "engine", tmp_path / "topic", tmp_path / "other"
    own = main / ".git" / "worktrees" / "topic"
    own.mkdir(parents=True)
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (own / "HEAD").write_text("ref: refs/heads/topic\n")
    (own / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own}\n")
    other.mkdir()
    async with scripted(tmp_path) as agent:
        here, there, elsewhere = [await spoken(agent, folder) for folder in (main, tree, other)]
        assert await listed(agent, tree) == {there}
        for folder in (main, tree):
            assert await listed(agent, folder, worktrees=True) == {here, there}
        assert await listed(agent, other, worktrees=True) == {elsewhere}
