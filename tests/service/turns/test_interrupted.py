"""A turn whose process died is closed without waiting for the next prompt, and its session says so at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hitherto.engine import Delta
from hitherto.errors import LeaseLost
from hitherto.holders import new_holder
from hitherto.model import Draft, Filter, Live, Principal, Text, Thought, ToolCall, encode
from hitherto.ports import Writer
from hitherto.service import Sessions
from hitherto.service.turns.context import CUT_OFF, INTERRUPTED
from hitherto.service.turns.interrupted import GRACE_MS
from hitherto.service.turns.partial_message import PartialMessage
from tests.support.homes import Clock

SAID = (Thought(text="Hm."), Text(text="The answer "), Thought(text="Wait."), Text(text="begins"))


def _dead_holder() -> str:
    """A process of this machine that runs no more."""
    fields = new_holder().split(":")
    pid, _, born = fields[-2].partition("-")
    return ":".join([*fields[:-2], f"{pid}-{int(born) + 1}", fields[-1]])


async def _left_running(sessions: Sessions, who: Principal, holder: str) -> tuple[str, int]:
    """A session in whose turn a tool was called and an answer begun, by this holder."""
    session = await sessions.create(who)
    await sessions.append(who, session.id, Draft(role="user", parts=(Text(text="Go"),)))
    lease = await sessions.leases.acquire(who, session.id, new_holder(), ttl_ms=1_000)
    await sessions.catalog.set_status(who, session.id, "running")
    call = Draft(role="assistant", parts=(ToolCall(id="call", name="look"),))
    await sessions.append(who, session.id, call, fence=lease.fence)
    message = PartialMessage("half")
    for part in SAID:
        message.add(Delta(text=part.text, thought=isinstance(part, Thought)))
    await sessions.changes.put_live(who, session.id, message.live(), fence=lease.fence)

    async def work(tx: Writer) -> None:
        record = await tx.session(who.owner, session.id)
        assert record is not None
        await tx.put_lease(record, replace(lease, holder=holder))

    await sessions.core.store.write(work)
    return session.id, lease.fence


async def test_what_a_dead_process_left_running_is_interrupted_and_all_its_words_are_kept(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    left, _ = await _left_running(sessions, ann, _dead_holder())
    # Before anybody closes it, lists and the session itself say so.
    assert (await other.get(ann, left)).status == "interrupted"
    assert [each.status for each in (await other.find(ann)).sessions] == ["interrupted"]
    assert await other.turns.close_interrupted() == 1
    page = await sessions.history(ann, left)
    _, _, result, half = page.entries
    assert result.meta == {"partial": INTERRUPTED}
    assert (half.id, half.parts, half.meta) == ("half", SAID, {"partial": CUT_OFF})
    assert await sessions.changes.live(ann, left) is None
    (hit,) = (await sessions.search(ann, "begins")).hits
    assert hit.entry == "half"
    (listed,) = (await sessions.find(ann, Filter(status="interrupted"))).sessions
    assert (listed.id, listed.status) == (left, "interrupted")
    assert await other.turns.close_interrupted() == 0
    assert len((await sessions.history(ann, left)).entries) == 4


async def test_a_living_turn_is_left_alone(sessions: Sessions, ann: Principal, clock: Clock) -> None:
    left, fence = await _left_running(sessions, ann, new_holder())
    assert await sessions.turns.close_interrupted() == 0
    assert (await sessions.get(ann, left)).status == "running"
    # Its lease has run out, but it may only have slept.
    clock.advance(1_000 + GRACE_MS - 1)
    assert await sessions.turns.close_interrupted() == 0
    clock.advance(1)
    assert await sessions.turns.close_interrupted() == 1
    with pytest.raises(LeaseLost):
        await sessions.leases.renew(ann, left, fence)


async def test_a_turn_that_comes_back_after_it_was_closed_writes_nothing(
    sessions: Sessions, ann: Principal
) -> None:
    left, fence = await _left_running(sessions, ann, _dead_holder())
    await sessions.turns.close_interrupted()
    lease = await sessions.leases.acquire(ann, left, new_holder(), ttl_ms=1_000)
    assert lease.fence > fence + 1
    with pytest.raises(LeaseLost):
        await sessions.append(ann, left, Draft(role="assistant", parts=(Text(text="Late"),)), fence=fence)


async def test_a_status_that_somebody_set_without_a_turn_stays(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    await sessions.catalog.set_status(ann, session.id, "running")
    assert await sessions.turns.close_interrupted() == 0
    assert (await sessions.get(ann, session.id)).status == "running"


def test_what_is_shown_of_a_long_message_fits_whatever_its_characters() -> None:
    message = PartialMessage("long")
    for thought in (True, False, True):
        message.add(Delta(text="\0" * 60_000, thought=thought))
    data = message.live()
    assert len(data) < 1024 * 1024
    assert data == encode(
        Live(
            entry="long",
            parts=(Thought(text="\0" * 60_000),),
            earlier=(Thought(text="\0" * 27_381),),
            starts=(0, 120_000),
        )
    )
