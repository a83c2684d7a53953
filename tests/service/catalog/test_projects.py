"""Projects can be renamed and merged, and what comes later follows."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidInput
from hitherto.model import Filter, Principal
from hitherto.projects import Checkout
from hitherto.service import Sessions


async def placed(sessions: Sessions, who: Principal, cwd: str, seen: Checkout | None) -> str:
    project = await sessions.projects.place(who, cwd, seen)
    await sessions.create(who, cwd=cwd, project=project)
    return project


async def test_two_projects_become_one_for_good(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    shop = Checkout(project="github.com/maya/webshop", top="/src/shop")
    other = Checkout(project="webshop", top="/old/shop", root="a" * 40)
    assert await placed(sessions, ann, "/src/shop", shop) == "github.com/maya/webshop"
    assert await placed(sessions, ann, "/old/shop", other) == "webshop"
    assert await placed(sessions, bob, "/old/shop", other) == "webshop"
    assert await sessions.projects.rename(ann, "webshop", "github.com/maya/webshop") == 1
    assert await reader.projects.counts(ann) == (("github.com/maya/webshop", 2),)
    assert await reader.projects.counts(bob) == (("webshop", 1),)
    # By its commit, in another folder, and by its name alone.
    assert (
        await placed(sessions, ann, "/new/shop", other._replace(top="/new/shop")) == "github.com/maya/webshop"
    )
    assert await placed(sessions, ann, "/x/webshop", Checkout(project="webshop", top="/x/webshop")) == (
        "github.com/maya/webshop"
    )


async def test_a_repository_with_a_remote_keeps_the_name_that_it_was_given(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    seen = Checkout(project="github.com/ada/engine", top="/src/engine", root="b" * 40)
    await placed(sessions, ann, "/src/engine", seen)
    assert await sessions.projects.rename(ann, "github.com/ada/engine", "engine") == 1
    assert await placed(sessions, ann, "/src/engine", seen) == "engine"
    assert await sessions.projects.rename(ann, "engine", "motor") == 2
    assert await placed(sessions, ann, "/src/engine", seen) == "motor"
    assert await sessions.projects.rename(ann, "motor", "github.com/ada/engine") == 3
    assert await placed(sessions, ann, "/src/engine", seen) == "github.com/ada/engine"
    found = await reader.find(ann, Filter(project="github.com/ada/engine"))
    assert len(found.sessions) == 4


async def test_only_a_project_that_is_there_can_be_renamed(sessions: Sessions, ann: Principal) -> None:
    with pytest.raises(InvalidInput, match="no project"):
        await sessions.projects.rename(ann, "nothing", "something")
    await sessions.create(ann, cwd="/a", project="a")
    for wrong in ("", "\0", "x" * 10_000):
        with pytest.raises(InvalidInput):
            await sessions.projects.rename(ann, "a", wrong)
    assert await sessions.projects.rename(ann, "a", "a") == 0
