"""Who has a session open, seen from everywhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest

from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.holders import new_holder
from hitherto.model import Draft, Filter, Page, Principal, Text
from hitherto.service import Sessions
from hitherto.service.access.presence import DRAFT_MS, PRESENT_MS
from tests.support.homes import Clock
from tests.support.waits import arrives

HOLDER = "import hitherto.holders as h, sys; print(h.new_holder()); sys.stdout.flush(); sys.stdin.read()"


async def test_a_session_is_attended_from_when_somebody_says_so_until_the_last_has_left(
    sessions: Sessions, other: Sessions, ann: Principal, new_id: Callable[[], str]
) -> None:
    one, two = await sessions.create(ann), await sessions.create(ann)
    before = await sessions.changes.newest(ann)
    here, there = new_holder(), new_holder()
    assert not await other.presence.attended(ann, one.id)
    await sessions.presence.attend(ann, here, opened=[one.id, two.id, "nowhere", "\0", new_id()])
    await other.presence.attend(ann, there, opened=[one.id])
    assert [await other.presence.attended(ann, each.id) for each in (one, two)] == [True, True]
    await sessions.presence.attend(ann, here, left=[one.id, two.id])
    assert [await sessions.presence.attended(ann, each.id) for each in (one, two)] == [True, False]
    assert not await sessions.presence.attended(ann, one.id, besides=there)
    await other.presence.attend(ann, there, opened=[two.id], left=[one.id])
    assert [await sessions.presence.attended(ann, each.id) for each in (one, two)] == [False, True]
    # It is no change of a session: lists and those who watch see nothing of it.
    assert await sessions.changes.newest(ann) == before
    assert await sessions.get(ann, one.id) == one


async def test_who_says_nothing_for_long_is_no_longer_believed_to_be_there(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    await sessions.presence.attend(ann, "somebody, on another machine", opened=[session.id])
    clock.advance(PRESENT_MS - 1)
    assert await other.presence.attended(ann, session.id)
    await sessions.presence.attend(ann, "somebody, on another machine", opened=[session.id])
    clock.advance(PRESENT_MS - 1)
    assert await other.presence.attended(ann, session.id)
    clock.advance(1)
    assert not await other.presence.attended(ann, session.id)


async def test_a_process_that_has_died_has_nothing_open(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    holder = (await arrives(process.stdout.readline(), "the holder's name")).decode().strip()
    await sessions.presence.attend(ann, holder, opened=[session.id])
    assert await other.presence.attended(ann, session.id)
    process.kill()
    await arrives(process.communicate(), "the end of a killed process")
    assert not await other.presence.attended(ann, session.id)


async def test_nobody_learns_of_sessions_of_others(
    sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.presence.attend(bob, new_holder(), opened=[session.id])
    assert not await sessions.presence.attended(ann, session.id)
    for who, session_id in ((bob, session.id), (ann, "nowhere"), (ann, "\0")):
        with pytest.raises(SessionNotFound):
            await sessions.presence.attended(who, session_id)
    with pytest.raises(InvalidInput):
        await sessions.presence.attend(ann, "", opened=[session.id])


async def test_a_draft_is_listed_nowhere_until_it_has_a_message_or_a_name(
    sessions: Sessions, ann: Principal
) -> None:
    drafts = [await sessions.create(ann, cwd="/p", draft=True) for _ in range(6)]
    everything = Filter(archived="include")
    assert await sessions.find(ann, everything) == Page(sessions=())
    assert await sessions.catalog.count(ann) == 0
    unsaid, said, named, tagged, pinned, put_away = (draft.id for draft in drafts)
    await sessions.append(ann, said, [Draft(role="user", parts=(Text(text="Hello"),))])
    await sessions.rename(ann, named, "Mine")
    await sessions.tag(ann, tagged, add=["mine"])
    await sessions.pin(ann, pinned)
    await sessions.archive(ann, put_away)
    listed = {session.id for session in (await sessions.find(ann)).sessions}
    assert listed == {said, named, tagged, pinned}
    assert await sessions.catalog.count(ann) == 4
    listed = {session.id for session in (await sessions.find(ann, everything)).sessions}
    assert listed == {said, named, tagged, pinned, put_away}
    assert (await sessions.get(ann, unsaid)).message_count == 0


async def test_a_draft_that_was_left_is_removed_an_hour_later_unless_somebody_has_it_open(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    here, there = new_holder(), new_holder()
    left, taken, kept = [(await sessions.create(ann, draft=True)).id for _ in range(3)]
    await sessions.presence.attend(ann, here, opened=[left, taken, kept])
    await sessions.rename(ann, kept, "Mine")
    await sessions.presence.attend(ann, here, left=[left, taken, kept])
    clock.advance(DRAFT_MS - 1)
    await other.presence.attend(ann, there, opened=[taken])
    assert await other.presence.remove_drafts(ann) == 0
    clock.advance(1)
    assert await other.presence.remove_drafts(bob) == 0
    assert await other.presence.remove_drafts(ann) == 1
    with pytest.raises(SessionNotFound):
        await sessions.get(ann, left)
    assert {(await sessions.get(ann, each)).id for each in (taken, kept)} == {taken, kept}
    assert await other.presence.remove_drafts(ann) == 0
