"""Branches of sessions that are read from another agent's files."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hitherto.errors import BranchNotFound, CheckpointNotFound, EntryNotFound
from hitherto.model import HistoryPage, Principal, Text
from hitherto.service import Sessions
from hitherto.service.compaction.imported import Branch, Summarised
from tests.service.transfer.test_synced import entry, imported, texts
from tests.support.homes import Clock


def said(page: HistoryPage) -> list[str]:
    return [part.text for found in page.entries for part in found.parts if isinstance(part, Text)]


async def take_tree(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    """A B D is the conversation, C leaves it after A, E leaves C's branch after C."""
    given = [entry(name, f"plan {name}", at) for at, name in enumerate("ABDCFE", 10)]
    branches = [Branch("A", 2), Branch("C", 1)]
    await sessions.transfer.sync(ann, imported(clock), given, branches=branches)


async def branch_texts(sessions: Sessions, ann: Principal) -> list[list[str]]:
    known = await sessions.branches.known(ann, "claude:1")
    return [said(await sessions.history(ann, "claude:1", checkpoint=each.id)) for each in known]


async def test_branches_stand_beside_the_conversation(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    assert await texts(sessions, ann) == ["plan A", "plan B", "plan D"]
    assert await branch_texts(sessions, ann) == [
        ["plan A", "plan C", "plan F"],
        ["plan A", "plan C", "plan E"],
    ]
    first, second = await sessions.branches.known(ann, "claude:1")
    assert (first.message_count, first.text, first.first, first.after, first.at) == (
        2,
        "plan C",
        "C",
        "A",
        14,
    )
    assert (second.message_count, second.first, second.after) == (1, "E", "C")
    assert (await sessions.get(ann, "claude:1")).message_count == 3
    assert (await sessions.branches.resolve(ann, "claude:1", "2")).id == second.id
    assert (await sessions.branches.resolve(ann, "claude:1", first.id[:8])).id == first.id
    for wrong in ("0", "3", "", "x", "-1", "1" * 5000):
        with pytest.raises(BranchNotFound):
            await sessions.branches.resolve(ann, "claude:1", wrong)


async def test_what_a_branch_says_is_found_and_marked(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    first, second = await sessions.branches.known(ann, "claude:1")
    for word, branch in (("A", None), ("D", None), ("F", first.id), ("E", second.id)):
        (hit,) = (await sessions.search(ann, f'"plan {word}"')).hits
        assert (hit.entry, hit.branch) == (word, branch)
    around = await sessions.history(ann, "claude:1", around="E", view="conversation")
    assert (said(around), around.branch) == (["plan A", "plan C", "plan E"], second.id)
    assert (await sessions.history(ann, "claude:1", around="B")).branch is None


async def test_a_branch_is_forked_from_and_outlives_its_session(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    at_entry = await sessions.fork(ann, "claude:1", at="C")
    (_, second) = await sessions.branches.known(ann, "claude:1")
    whole = await sessions.branch(ann, "claude:1", second.id)
    await sessions.delete(ann, "claude:1")
    await sessions.admin.collect()
    assert await texts(sessions, ann, at_entry.id) == ["plan A", "plan C"]
    assert await texts(sessions, ann, whole.id) == ["plan A", "plan C", "plan E"]
    assert await sessions.branches.known(ann, whole.id) == []


async def test_reading_again_moves_branches_without_losing_one(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    ids = [each.id for each in await sessions.branches.known(ann, "claude:1")]
    await take_tree(sessions, clock, ann)
    assert [each.id for each in await sessions.branches.known(ann, "claude:1")] == ids
    # The branch of C becomes the conversation, and what was that becomes a branch.
    given = [
        entry(name, f"plan {name}", at) for name, at in zip("ACFBDE", (10, 13, 14, 11, 12, 15), strict=True)
    ]
    taken = await sessions.transfer.sync(
        ann, imported(clock), given, branches=[Branch("A", 2), Branch("C", 1)]
    )
    assert not taken.reshaped
    assert await texts(sessions, ann) == ["plan A", "plan C", "plan F"]
    assert await branch_texts(sessions, ann) == [
        ["plan A", "plan B", "plan D"],
        ["plan A", "plan C", "plan E"],
    ]
    # What the source lost stays, as it was.
    await sessions.transfer.sync(ann, imported(clock), given[:3])
    assert ["plan A", "plan B", "plan D"] in await branch_texts(sessions, ann)
    # What comes behind leaves the branches alone.
    await sessions.transfer.sync(ann, imported(clock), [entry("G", at=20)], extends=True)
    assert len(await branch_texts(sessions, ann)) == 2


async def test_a_branch_begins_with_what_was_the_context_there(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    """A B are summarised as S; C leaves after A, before the summary, and X after S."""
    given = [entry(name, at=at) for at, name in enumerate(["A", "B", "S", "D", "C", "X", "T", "Y"], 10)]
    branches = [Branch("A", 1), Branch("S", 3, [Summarised(summary="T")])]
    await sessions.transfer.sync(
        ann, imported(clock), given, compactions=[Summarised(summary="S")], branches=branches
    )
    assert await texts(sessions, ann) == ["text of S", "text of D"]
    assert await branch_texts(sessions, ann) == [["text of A", "text of C"], ["text of T", "text of Y"]]
    (_, second) = await sessions.branches.known(ann, "claude:1")
    page = await sessions.history(ann, "claude:1", checkpoint=second.id, view="conversation")
    assert said(page) == [f"text of {name}" for name in "ABSXTY"]


async def test_what_is_erased_in_a_branch_is_gone_and_stays_so(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    await sessions.erase(ann, "claude:1", "F")
    await take_tree(sessions, clock, ann)
    assert (await sessions.search(ann, '"plan F"')).hits == ()
    assert (await branch_texts(sessions, ann))[0] == ["plan A", "plan C"]


async def test_an_export_brings_branches_along(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    await take_tree(sessions, clock, ann)
    lines = [line async for line in sessions.export(ann, "claude:1")]
    before = await branch_texts(sessions, ann)
    await sessions.delete(ann, "claude:1")
    await sessions.import_(ann, lines, include_deleted=True)
    assert await branch_texts(sessions, ann) == before
    assert (await sessions.admin.check(repair=False)).problems == ()


async def test_only_what_the_conversation_or_a_branch_has_can_be_shown(
    sessions: Sessions, clock: Clock, ann: Principal, bob: Principal
) -> None:
    await take_tree(sessions, clock, ann)
    (first, _) = await sessions.branches.known(ann, "claude:1")
    with pytest.raises(EntryNotFound):
        await sessions.history(ann, "claude:1", around="nobody")
    await sessions.transfer.sync(bob, replace(imported(clock), id="claude:1"), [entry("A")])
    with pytest.raises(CheckpointNotFound):
        await sessions.history(bob, "claude:1", checkpoint=first.id)
    assert await sessions.branches.known(bob, "claude:1") == []


async def test_what_was_kept_in_front_of_a_summary_stays_in_front_of_it(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    """A B stay, C D become S, and E follows."""
    given = [entry(name, at=at) for at, name in enumerate("ABCDSE", 10)]
    compactions = [Summarised(summary="S", prefix=("nobody", "B"))]
    await sessions.transfer.sync(ann, imported(clock), given, compactions=compactions)
    assert await texts(sessions, ann) == [f"text of {name}" for name in "ABSE"]
    page = await sessions.history(ann, "claude:1", view="conversation")
    assert said(page) == [f"text of {name}" for name in "ABCDSE"]
    forked = await sessions.fork(ann, "claude:1", at="D")
    assert await texts(sessions, ann, forked.id) == [f"text of {name}" for name in "ABCD"]
    await sessions.erase(ann, "claude:1", "C")
    assert await texts(sessions, ann) == [f"text of {name}" for name in "ABDE"]
