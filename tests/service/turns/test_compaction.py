"""Turns make room with the engine's own summariser, at the share of the window that was set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from hitherto.engine import Choices, Event, Message, Notice, Turn, answering
from hitherto.errors import ModelBusy
from hitherto.model import Draft, Entry, Principal, Text, Usage
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.summariser import CompactionPolicy, Finding, Summary
from hitherto.updates import Compacted
from tests.support.conversations import told
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted, Watcher, ask_once, in_background, says
from tests.support.waits import arrives

FULL = says("x" * 2_000, usage=Usage(input=400, output=500))


class InShort:
    """A summariser that says one thing, or fails, or never comes to an end."""

    def __init__(self, text: str = "", *, fails: bool = False) -> None:
        self.asked: list[tuple[int, int, CompactionPolicy]] = []
        self.begun = asyncio.Event()
        self._text, self._fails = text, fails

    async def summarise(
        self, retired: Sequence[Entry], kept: Sequence[Entry], policy: CompactionPolicy
    ) -> Summary:
        self.asked.append((len(retired), len(kept), policy))
        self.begun.set()
        if self._fails:
            raise ModelBusy("the provider wants fewer requests")
        if not self._text:
            await asyncio.Event().wait()
        return Summary(text=self._text, facts=(Finding(text="It was short.", entries=(retired[0].id,)),))


async def test_a_full_context_is_summarised_by_the_engine(sessions: Sessions, ann: Principal) -> None:
    session, summariser = await sessions.create(ann), InShort("In short: x.")
    engine = Scripted(FULL, window=1_000, summariser=summariser)
    await ask_once(sessions, ann, session.id, engine, "The first question")
    assert summariser.asked == []
    watcher, choices = Watcher(), Choices(model="a:model")
    await ask_once(sessions, ann, session.id, engine, "The second question", emit=watcher, choices=choices)
    ((retired, kept, policy),) = summariser.asked
    assert (retired, kept, policy.kept_tokens) == (2, 1, 250)
    assert engine.summariser_choices == [choices]
    summary, asked = engine.turns[1].history
    assert asked.parts == (Text(text="The second question"),)
    assert "In short: x." in (await told(sessions, ann, session.id))[0]
    assert summary.meta.keys() == {"compaction", "tokens_estimated"}
    assert [fact.text for fact in await sessions.memory.facts(ann)] == ["It was short."]
    assert not any(isinstance(update, Notice) for update in watcher.seen)


async def test_a_summariser_that_fails_is_told_of_and_the_turn_goes_on(
    sessions: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    engine = Scripted(FULL, window=1_000, summariser=InShort(fails=True))
    await ask_once(sessions, ann, session.id, engine, "The first question")
    outcome = await ask_once(sessions, ann, session.id, engine, "The second question", emit=watcher)
    assert outcome.text == "Noted."
    (notice,) = [update for update in watcher.seen if isinstance(update, Notice)]
    assert (notice.severity, "wants fewer requests" in notice.text) == ("warning", True)
    assert sum(isinstance(update, Compacted) for update in watcher.seen) == 1


async def test_a_turn_can_be_cancelled_while_its_context_is_summarised(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, summariser = await sessions.create(ann), InShort()
    engine = Scripted(FULL, window=1_000, summariser=summariser)
    await ask_once(sessions, ann, session.id, engine, "The first question")
    async with sessions.opened(ann, session.id, engine) as opened:
        running = await in_background(opened, "The second question")
        await arrives(summariser.begun.wait(), "the summariser to be asked")
        assert opened.cancel()
        assert (await arrives(running, "the end of the turn")).stop_reason == "cancelled"
    assert [text[:6] for text in await told(other, ann, session.id)] == ["The fi", "xxxxxx", "The se"]
    found = await other.get(ann, session.id)
    assert (found.status, found.last_compaction) == ("idle", None)


@pytest.mark.parametrize(("at", "made"), [(0.5, True), (0.92, False), (0.95, False), (0.8999, True)])
async def test_the_share_of_the_window_at_which_it_is_done_can_be_set(
    store: Store, clock: Clock, ann: Principal, at: float, made: bool
) -> None:
    sessions = Sessions(store, now=clock, compaction=CompactionPolicy(at=at))
    session = await sessions.create(ann)
    engine = Scripted(FULL, window=1_000)
    for text in ("The first question", "The second question"):
        await ask_once(sessions, ann, session.id, engine, text)
    assert bool(await sessions.checkpoints(ann, session.id)) is made


async def test_a_context_that_no_answer_has_measured_is_made_smaller_before_it_is_sent(
    sessions: Sessions, ann: Principal
) -> None:
    session, engine = await sessions.create(ann), Scripted(says("Noted."), window=1_000)
    for number in range(4):
        await sessions.append(ann, session.id, [Draft(role="user", parts=(Text(text=f"{number}" * 1_000),))])
    await ask_once(sessions, ann, session.id, engine, "What was that?")
    assert len(engine.turns[0].history) < 5
    assert [each.reason for each in await sessions.checkpoints(ann, session.id)] == ["compaction"]


async def test_what_was_added_since_an_answer_is_part_of_the_size(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    engine = Scripted(says("Noted.", usage=Usage(input=300, output=100)), window=1_000)
    await ask_once(sessions, ann, session.id, engine, "The first question")
    await sessions.append(ann, session.id, [Draft(role="user", parts=(Text(text="x" * 2_400),))])
    await ask_once(sessions, ann, session.id, engine, "The second question")
    assert len(await sessions.checkpoints(ann, session.id)) == 1


async def test_a_window_that_nobody_knows_is_assumed_and_that_is_said(
    sessions: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    engine = Scripted(says("Noted."), window=None)
    drafts = [Draft(role="user", parts=(Text(text=f"word{number} " * 20_000),)) for number in range(4)]
    await sessions.append(ann, session.id, drafts)
    await ask_once(sessions, ann, session.id, engine, "What was that?", emit=watcher)
    (notice,) = [update for update in watcher.seen if isinstance(update, Notice)]
    assert "128,000 tokens are assumed" in notice.text
    assert "HITHERTO_WINDOWS" in notice.text
    assert sum(isinstance(update, Compacted) for update in watcher.seen) == 1


async def test_what_is_kept_can_be_set_for_all_who_ask(store: Store, clock: Clock, ann: Principal) -> None:
    policy = CompactionPolicy(kept_tokens=5_000, kept_share=0.9)
    sessions = Sessions(store, now=clock, compaction=policy)
    session = await sessions.create(ann)
    engine = Scripted(*[says("y" * 4_000)] * 12)
    for number in range(12):
        await ask_once(sessions, ann, session.id, engine, f"Prompt {number}")
    done = await sessions.compaction.shrink(ann, session.id)
    assert (done.compacted, done.messages_after) == (True, 9)
    assert 4_000 < done.tokens_after < 6_000


async def test_an_engine_that_offers_no_summariser_has_the_built_in_one(
    sessions: Sessions, ann: Principal
) -> None:
    @answering
    async def engine(turn: Turn) -> AsyncIterator[Event]:  # noqa: ARG001
        yield Message(parts=(Text(text="x" * 4_000),))

    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, engine, improve_titles=False) as opened:
        for text in ("One", "Two"):
            await opened.prompt((Text(text=text),))
        done = await opened.compact()
    assert (done.compacted, done.fallback) == (True, None)
