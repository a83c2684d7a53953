"""Numbers of sessions, days on which something was said, and projects: right at every moment, and in every store."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hitherto.model import (
    DayCount,
    Entry,
    Facets,
    Filter,
    Overview,
    Principal,
    ProjectCount,
    Share,
    Text,
    Usage,
)
from hitherto.projects import Checkout
from hitherto.service import Imported, Sessions
from hitherto.values.days import DAY_MS
from tests.support.conversations import finds, listed, say, started, talk
from tests.support.homes import Clock

FIRST, SECOND = "2025-06-15", "2025-06-16"
"""The clock begins in the evening of the first."""


async def days(sessions: Sessions, who: Principal) -> Overview:
    """What was said on both days, without what the store says of itself."""
    return replace(await sessions.statistics.overview(who, since_day=FIRST, until_day=SECOND), store={})


def entry(name: str, at: int, text: str, **fields: Any) -> Entry:
    return Entry(id=name, at=at, role="user", parts=(Text(text=text),), **fields)


# Numbers of sessions


async def test_the_numbers_of_sessions_follow_every_change(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    assert await reader.statistics.facets(ann) == Facets()
    one, _ = await started(sessions, ann, "a", project="p", agent_id="x", tags=["t", "u"])
    two, _ = await started(sessions, ann, "b", project="p", agent_id="x", tags=["t"])
    three, _ = await started(sessions, ann, "c", project="q")
    await started(sessions, bob, "d", project="p")
    assert await reader.statistics.facets(ann) == Facets(
        total=3, agents=(("x", 2),), projects=(("p", 2), ("q", 1)), tags=(("t", 2), ("u", 1))
    )
    await sessions.pin(ann, one.id)
    await sessions.archive(ann, two.id)
    await sessions.tag(ann, one.id, add=["v"], remove=["t"])
    await sessions.projects.assign(ann, three.id, "p")
    await talk(sessions, ann, one.id, "more")
    assert await reader.statistics.facets(ann) == Facets(
        total=2, archived=1, pinned=1, agents=(("x", 1),), projects=(("p", 2),), tags=(("u", 1), ("v", 1))
    )
    await sessions.archive(ann, two.id, archived=False)
    await sessions.fork(ann, one.id)
    await sessions.delete(ann, one.id)
    assert await reader.statistics.facets(ann) == Facets(
        total=3, agents=(("x", 2),), projects=(("p", 3),), tags=(("t", 1),)
    )


async def test_a_session_of_another_agent_is_counted_under_its_source(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given = Imported(
        id="claude:1", source="claude", created_at=1, updated_at=1, agent_id="claude-code", branch="topic"
    )
    await sessions.transfer.sync(ann, given, [entry("e", clock.now, "x")])
    assert await reader.statistics.facets(ann) == Facets(
        total=1, agents=(("claude", 1),), sources=(("claude", 1),)
    )
    assert (await reader.get(ann, "claude:1")).branch == "topic"
    (share,) = (await days(reader, ann)).by_agent
    assert share.name == "claude"


async def test_only_the_most_frequent_are_told_and_equal_ones_by_name(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    for number in range(55):
        await sessions.create(ann, project=f"p{number:02}")
    await sessions.create(ann, project="p54")
    found = (await reader.statistics.facets(ann)).projects
    assert found == (("p54", 2), *((f"p{number:02}", 1) for number in range(49)))


async def test_a_failed_change_leaves_the_numbers_as_they_were(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, project="p")
    with pytest.raises(Exception, match="revision"):
        await sessions.tag(ann, session.id, add=["t"], expected_revision=9)
    assert await reader.statistics.facets(ann) == Facets(total=1, projects=(("p", 1),))


# Days


async def test_what_was_said_is_told_by_day_agent_model_and_project(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    one, _ = await started(sessions, ann, "a", project="p", agent_id="x")
    answer = say("b", "assistant", model="m", tokens=7, usage=Usage(cost=0.25))
    await sessions.append(ann, one.id, answer)
    two, _ = await started(sessions, ann, "c", project="q")
    await started(sessions, bob, "foreign")
    clock.advance(DAY_MS)
    await sessions.append(ann, one.id, [answer, say("d", tokens=1)])
    assert await days(reader, ann) == Overview(
        days=(
            DayCount(day=FIRST, sessions=2, messages=3, tokens=7, cost=0.25),
            DayCount(day=SECOND, sessions=1, messages=2, tokens=8, cost=0.25),
        ),
        by_agent=(
            Share(day=FIRST, name=None, messages=1, tokens=0),
            Share(day=FIRST, name="x", messages=2, tokens=7, cost=0.25),
            Share(day=SECOND, name="x", messages=2, tokens=8, cost=0.25),
        ),
        by_model=(
            Share(day=FIRST, name=None, messages=2, tokens=0),
            Share(day=FIRST, name="m", messages=1, tokens=7, cost=0.25),
            Share(day=SECOND, name=None, messages=1, tokens=1),
            Share(day=SECOND, name="m", messages=1, tokens=7, cost=0.25),
        ),
        projects=(
            ProjectCount(project="p", sessions=1, messages=4, tokens=15, cost=0.5),
            ProjectCount(project="q", sessions=1, messages=1, tokens=0),
        ),
        longest=tuple([await reader.get(ann, each.id) for each in (one, two)]),
    )
    assert (await sessions.statistics.overview(ann, since_day=SECOND, until_day=SECOND)).days[0].sessions == 1
    assert (await sessions.statistics.overview(ann, since_day=FIRST, until_day=FIRST)).store["kind"]


async def test_a_list_by_day_has_the_sessions_in_which_something_was_said_then(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    one, ids = await started(sessions, ann, "one first")
    two, _ = await started(sessions, ann, "two", project="p")
    await started(sessions, bob, "foreign")
    clock.advance(DAY_MS)
    await talk(sessions, ann, one.id, "one second")
    fork = await sessions.fork(ann, one.id, at=ids[0])
    empty = await sessions.create(ann)
    assert await listed(reader, ann, Filter(day=FIRST), limit=1) == [one.id, two.id]
    assert await listed(reader, ann, Filter(day=SECOND)) == [one.id]
    assert await listed(reader, ann, Filter(day=FIRST, project="p")) == [two.id]
    assert await listed(reader, ann, Filter(day=FIRST, text="one")) == [one.id]
    assert await reader.count(ann, Filter(day=FIRST)) == 2
    assert await finds(reader, ann, "one", Filter(day=SECOND)) == [one.id]
    assert await finds(reader, ann, "two", Filter(day=SECOND)) == []
    await talk(sessions, ann, fork.id, "in the fork")
    assert set(await listed(reader, ann, Filter(day=SECOND))) == {one.id, fork.id}
    assert empty.id not in await listed(reader, ann, Filter(day="2025-06-16"))


async def test_days_go_with_their_session_and_not_with_its_forks(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    source, _ = await started(sessions, ann, "a", "b")
    fork = await sessions.fork(ann, source.id)
    await talk(sessions, ann, fork.id, "c")
    assert (await days(reader, ann)).days[0].messages == 3
    await sessions.delete(ann, source.id)
    assert (await days(reader, ann)).days[0].messages == 1
    assert await listed(reader, ann, Filter(day=FIRST)) == [fork.id]
    await sessions.delete(ann, fork.id)
    assert await days(reader, ann) == Overview()


async def test_what_is_erased_still_counts_for_its_day_and_model(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    answer = say("b", "assistant", model="m", tokens=7, usage=Usage(cost=0.25))
    appended = await sessions.append(ann, session.id, answer)
    await sessions.erase(ann, session.id, appended.entries[0])
    before = await days(reader, ann)
    assert [(share.name, share.tokens) for share in before.by_model] == [(None, 0), ("m", 7)]
    healthy = await sessions.admin.check(repair=True)
    assert (healthy.problems, healthy.repaired) == ((), ())
    assert await days(reader, ann) == before


async def test_a_message_that_its_source_has_amended_counts_once(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given = Imported(id="claude:1", source="claude", created_at=1, updated_at=clock.now)
    await sessions.transfer.sync(ann, given, [entry("e", clock.now, "half", tokens=3)])
    for text, tokens in (("half and", 5), ("half and half", 9)):
        assert (await days(reader, ann)).days[0].messages == 1
        amended = entry("e", clock.now + DAY_MS, text, tokens=tokens)
        await sessions.transfer.sync(ann, given, [], extends=True, amended=amended)
    (day,) = (await days(reader, ann)).days
    assert (day.day, day.messages, day.tokens) == (SECOND, 1, 9)
    assert await listed(reader, ann, Filter(day=FIRST)) == []
    assert (await sessions.admin.check(repair=True)).repaired == ()


async def test_a_session_that_changes_its_project_takes_its_days_along(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a", project="old")
    assert [each.project for each in (await days(reader, ann)).projects] == ["old"]
    await sessions.projects.assign(ann, session.id, "new")
    await talk(sessions, ann, session.id, "b")
    (project,) = (await days(reader, ann)).projects
    assert (project.project, project.messages) == ("new", 2)


# Projects


async def test_a_list_by_project_crosses_folders(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    one = await sessions.create(ann, cwd="/a", project="host/ann/p")
    two = await sessions.create(ann, cwd="/b", project="host/ann/p")
    await sessions.create(ann, cwd="/a", project="other")
    await sessions.create(bob, cwd="/a", project="host/bob/p")
    assert await listed(reader, ann, Filter(project="host/ann/p"), limit=1) == [two.id, one.id]
    assert await finds(reader, ann, "project:host/ann/p") == [two.id, one.id]
    assert await finds(reader, ann, "project:p") == [two.id, one.id]
    assert await reader.projects.called(ann, "ann/p") == "host/ann/p"
    await sessions.create(ann, project="host/cy/p")
    assert await reader.projects.called(ann, "p") == "p", "two end so: which is meant cannot be told"
    assert await finds(reader, ann, "project:nowhere") == []


async def test_every_folder_that_a_session_had_is_kept(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/a", project="p")
    await sessions.move(ann, session.id, "/b/")
    await sessions.catalog.move_folder(ann, "/b", "/c")
    moved = await sessions.move(ann, session.id, "/a")
    assert (moved.cwd, moved.earlier_cwds, moved.project) == ("/a", ("/b", "/c"), "p")
    assert await reader.get(ann, session.id) == moved


async def test_a_repository_without_a_remote_keeps_its_name_when_its_folder_is_renamed(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal
) -> None:
    root = "4" * 40
    assert await sessions.projects.place(ann, "/engine", Checkout("engine", "/engine", root=root)) == "engine"
    assert await other.projects.place(ann, "/motor", Checkout("motor", "/motor", root=root)) == "engine"
    assert await other.projects.place(bob, "/motor", Checkout("motor", "/motor", root=root)) == "motor"


async def test_sessions_of_a_repository_follow_when_it_gets_a_remote(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    root = "4" * 40
    name = await sessions.projects.place(ann, "/w/engine/src", Checkout("engine", "/w/engine", root=root))
    one = await sessions.create(ann, cwd="/w/engine/src", project=name)
    apart = await sessions.create(ann, cwd="/elsewhere/engine", project="engine")
    placed = Checkout("host/ada/engine", "/w/engine", root=root)
    assert await sessions.projects.place(ann, "/w/engine", placed) == "host/ada/engine"
    assert (await reader.get(ann, one.id)).project == "host/ada/engine"
    assert (await reader.get(ann, apart.id)).project == "engine"
    fork = Checkout("host/bob/engine", "/w/fork", root=root)
    assert await sessions.projects.place(ann, "/w/fork", fork) == "host/bob/engine", (
        "a fork is a project of its own"
    )
    assert (await reader.get(ann, one.id)).project == "host/ada/engine"


async def test_sessions_of_work_trees_clones_and_earlier_folders_follow_too(
    sessions: Sessions, other: Sessions, reader: Sessions, ann: Principal
) -> None:
    root, made = "4" * 40, []
    for cwd, top in (("/w/engine", "/w/engine"), ("/w/tree/src", "/w/engine"), ("/w/clone", "/w/clone")):
        name = await sessions.projects.place(ann, cwd, Checkout("engine", top, root=root))
        made.append((await sessions.create(ann, cwd=cwd, project=name)).id)
    relocated = await sessions.create(ann, cwd="/w/clone", project="engine")
    await sessions.move(ann, relocated.id, "/x/clone")
    apart = await sessions.create(ann, cwd="/elsewhere/engine", project="engine")
    moved = Checkout("host/ada/engine", "/x/engine", root=root)
    assert await other.projects.place(ann, "/x/engine", moved) == "host/ada/engine"
    followed = [(await reader.get(ann, session)).project for session in (*made, relocated.id)]
    assert followed == ["host/ada/engine"] * 4
    assert (await reader.get(ann, apart.id)).project == "engine"
    rootless = Checkout("engine", "/w/clone")
    assert await other.projects.place(ann, "/w/clone", rootless) == "host/ada/engine", "the folder is known"
    assert await other.projects.place(ann, "/w/other", rootless) == "engine"


async def test_sessions_follow_at_the_next_chance_when_that_was_interrupted(
    sessions: Sessions, reader: Sessions, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, made = "4" * 40, []
    for cwd in ("/w/engine", "/w/tree"):
        name = await sessions.projects.place(ann, cwd, Checkout("engine", "/w/engine", root=root))
        made.append((await sessions.create(ann, cwd=cwd, project=name)).id)
    assign, left = sessions.projects.assign, [None]

    async def interrupted(*args: Any, **more: Any) -> Any:
        left.pop()
        return await assign(*args, **more)

    remote = Checkout("host/ada/engine", "/w/engine", root=root)
    with monkeypatch.context() as patch:
        patch.setattr(sessions.projects, "assign", interrupted)
        with pytest.raises(IndexError):
            await sessions.projects.place(ann, "/w/engine", remote)
    assert await sessions.projects.place(ann, "/w/engine", remote) == "host/ada/engine"
    assert [(await reader.get(ann, session)).project for session in made] == ["host/ada/engine"] * 2


async def test_repositories_without_a_remote_that_share_a_name_are_told_apart_by_their_first_commits(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal
) -> None:
    one, two = Checkout("engine", "/a/engine", root="1" * 40), Checkout("engine", "/b/engine", root="2" * 40)
    assert await sessions.projects.place(ann, "/a/engine", one) == "engine"
    assert await other.projects.place(ann, "/b/engine", two) == "engine@2222222"
    assert await sessions.projects.place(ann, "/b/engine/src", two) == "engine@2222222"
    assert await other.projects.place(ann, "/a/engine", one) == "engine"
    assert await other.projects.place(bob, "/b/engine", two) == "engine"
    long = Checkout("e" * 500, "/c", root="3" * 40)
    assert await sessions.projects.place(ann, "/c", long) == long.project
    assert await sessions.projects.place(ann, "/d", long._replace(root="5" * 40)) == "e" * 492 + "@5555555"
    remote = Checkout("host/ada/engine", "/a/engine", root="1" * 40)
    assert await sessions.projects.place(ann, "/a/engine", remote) == remote.project
    same = remote._replace(root="6" * 40)
    assert await sessions.projects.place(ann, "/a/engine", same) == remote.project, (
        "a remote tells a project for sure"
    )


async def test_of_a_folder_that_is_gone_is_told_what_was_known(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await sessions.create(ann, cwd="/gone/tree", project="host/ada/engine")
    assert await reader.projects.place(ann, "/gone/tree") == "host/ada/engine"
    assert await reader.projects.place(ann, "/gone/never") == "never"
    assert await reader.projects.place(ann, "/") == "/"


async def test_sessions_without_a_project_are_found_by_their_folders_and_given_one(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    for cwd in ("/b", "/a", "/b"):
        await sessions.create(ann, cwd=cwd)
    await sessions.archive(ann, (await sessions.create(ann, cwd="/a")).id)
    await sessions.create(ann)
    await sessions.create(bob, cwd="/c")
    assert await reader.projects.placeless(ann) == ["/a", "/b"]
    assert await sessions.projects.place_folder(ann, "/a", "p") == 2
    assert await reader.projects.placeless(ann) == ["/b"]
    assert await sessions.projects.place_folder(ann, "/a", "q") == 0
