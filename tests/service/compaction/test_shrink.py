"""Making a session smaller: the end stays, a summary and facts take the place of the rest, or nothing changes."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import pytest

import hitherto
from hitherto.errors import Busy, InvalidInput, LeaseLost, ModelUnreachable, ReadOnly, SessionNotFound
from hitherto.model import Draft, Entry, Principal, Session, Text, ToolCall, ToolResult, Usage, plain_text
from hitherto.ports import Store, Writer
from hitherto.service import Imported, Sessions
from hitherto.service.compaction.compact import ATTEMPTS, LONGEST_MS
from hitherto.service.compaction.plan import CHANGED, EMPTY, NOT_SMALLER, SILENT, UNSETTLED, WHOLE
from hitherto.summariser import CompactionPolicy, Finding, Summary
from hitherto.values.token_count import ESTIMATED
from tests.summaries.planted import practice
from tests.summaries.planted.conversations import conversation
from tests.support.conversations import everything, exported, say, started, told
from tests.support.homes import Clock, Home
from tests.support.paths import ROOT
from tests.support.shrink_worker import OWNER
from tests.support.waits import arrives, within

KINDS = ("ask", "answer")


class Saying:
    """A summariser that says what it is told to, when it is told to; `seen` is what it was given."""

    def __init__(self, text: str = "In short: nothing.", *facts: Finding, waits: bool = False) -> None:
        self.seen: list[tuple[Sequence[Entry], Sequence[Entry]]] = []
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self._summary = Summary(text=text, facts=facts)
        if not waits:
            self.go.set()

    async def summarise(
        self,
        retired: Sequence[Entry],
        kept: Sequence[Entry],
        policy: CompactionPolicy,  # noqa: ARG002
    ) -> Summary:
        self.seen.append((retired, kept))
        self.begun.set()
        await arrives(self.go.wait(), "leave to make a summary")
        return self._summary


async def long_session(
    sessions: Sessions, who: Principal, exchanges: int = 20, **fields: object
) -> tuple[Session, list[str]]:
    """A session of prompts and answers of about a hundred tokens each."""
    session = await sessions.create(who, **fields)  # type: ignore[arg-type]
    texts = [
        f"{kind} {'x' * number}{'y' * (40 - number)} " + "and so on " * 40
        for number in range(exchanges)
        for kind in KINDS
    ]
    drafts = [say(text, "assistant" if text.startswith("answer") else "user") for text in texts]
    await sessions.append(who, session.id, drafts)
    return await sessions.get(who, session.id), texts


async def test_all_but_the_end_is_summarised(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session, texts = await long_session(sessions, ann)
    clock.advance()
    done = await sessions.compaction.shrink(ann, session.id, summariser=Saying())
    (summary, *kept) = await told(reader, ann, session.id)
    assert summary == "[Compacted summary from 2025-06-15]\nIn short: nothing."
    assert kept == texts[-4:]
    assert (done.compacted, done.reason, done.estimated, done.facts_extracted) == (True, None, True, 0)
    assert (done.messages_before, done.messages_after) == (40, 5)
    assert done.tokens_after < done.tokens_before / 5
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    assert (checkpoint.id, checkpoint.message_count) == (done.checkpoint, 40)
    assert await told(reader, ann, session.id, "conversation") == [*texts, summary]
    found = await reader.get(ann, session.id)
    assert (found.last_compaction, found.message_count) == (clock.now, 5)
    entry = await reader.entry(ann, session.id, done.summary or "")
    assert (entry.role, entry.meta) == ("system", {"compaction": done.checkpoint, "tokens_estimated": True})
    assert entry.tokens == found.token_count  # nobody has counted those of the others


async def test_restoring_gives_the_exact_earlier_history_also_after_two_compactions(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    before = (await sessions.history(ann, session.id, limit=1_000)).raw
    first = await sessions.compaction.shrink(ann, session.id)
    more = ["once more " * 400, "and again"]
    await sessions.append(ann, session.id, [say(text) for text in more])
    between = (await sessions.history(ann, session.id, limit=1_000)).raw
    second = await sessions.compaction.shrink(ann, session.id)
    assert first.compacted
    assert second.compacted
    conversation = await told(reader, ann, session.id, "conversation")
    assert [text for text in conversation if not text.startswith("[Compacted")] == [*texts, *more]
    assert len(conversation) == len(texts) + len(more) + 2
    await sessions.restore(ann, session.id, second.checkpoint or "")
    assert (await reader.history(ann, session.id, limit=1_000)).raw == between
    await sessions.restore(ann, session.id, first.checkpoint or "")
    assert (await reader.history(ann, session.id, limit=1_000)).raw == before


async def test_what_is_said_while_a_summary_is_made_stays_word_for_word(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    summariser = Saying(waits=True)
    task = asyncio.create_task(sessions.compaction.shrink(ann, session.id, summariser=summariser))
    await arrives(summariser.begun.wait(), "the summariser to be asked")
    await other.append(ann, session.id, say("Meanwhile"))  # nothing is locked
    await other.rename(ann, session.id, "A better title")
    summariser.go.set()
    done = await arrives(task, "the compaction")
    assert done.compacted
    assert (await told(other, ann, session.id))[1:] == [*texts[-4:], "Meanwhile"]
    assert (done.messages_before, done.messages_after) == (41, 6)
    assert (await other.get(ann, session.id)).title == "A better title"


@pytest.mark.parametrize("change", ["rewind", "reset", "erase", "compact", "replace"])
async def test_a_context_that_changed_meanwhile_is_left_alone(
    sessions: Sessions, other: Sessions, ann: Principal, change: str
) -> None:
    session, _ = await long_session(sessions, ann)
    ids = [entry.id for entry in (await sessions.history(ann, session.id)).entries]
    summariser = Saying("S", Finding(text="A fact"), waits=True)
    task = asyncio.create_task(sessions.compaction.shrink(ann, session.id, summariser=summariser))
    await arrives(summariser.begun.wait(), "the summariser to be asked")
    match change:
        case "rewind":
            await other.rewind(ann, session.id, ids[10])
        case "reset":
            await other.reset(ann, session.id)
        case "erase":
            await other.erase(ann, session.id, ids[3])
        case "compact":
            await other.compact(ann, session.id, say("S"), keep=3)
        case "replace":
            await other.delete(ann, session.id)
            await started(other, ann, "x", session_id=session.id)
    before, facts = await everything(other, ann), await other.memory.facts(ann)
    summariser.go.set()
    done = await arrives(task, "the compaction")
    assert (done.compacted, done.reason) == (False, CHANGED)
    assert await everything(other, ann) == before
    assert await other.memory.facts(ann) == facts
    assert bool(facts) == (change == "reset")  # which takes its own


async def test_of_two_compactions_at_once_one_is_done(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    one, two = Saying("One", waits=True), Saying("Two")
    task = asyncio.create_task(sessions.compaction.shrink(ann, session.id, summariser=one))
    await arrives(one.begun.wait(), "the summariser to be asked")
    with pytest.raises(Busy):
        await other.compaction.shrink(ann, session.id, summariser=two)
    assert not two.begun.is_set()  # nobody pays for it
    one.go.set()
    assert (await arrives(task, "the compaction")).compacted
    assert len(await other.checkpoints(ann, session.id)) == 1
    assert (await told(other, ann, session.id))[1:] == texts[-4:]
    assert (await other.compaction.shrink(ann, session.id, summariser=two)).compacted


async def test_a_compaction_that_fails_leaves_the_way_free(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, _ = await long_session(sessions, ann)
    task = asyncio.create_task(
        sessions.compaction.shrink(ann, session.id, summariser=(waiting := Saying(waits=True)))
    )
    await arrives(waiting.begun.wait(), "the summariser to be asked")
    task.cancel()
    await arrives(asyncio.wait([task]), "the end of the compaction")
    assert (await other.compaction.shrink(ann, session.id, summariser=Saying())).compacted


async def test_a_compaction_whose_process_never_came_back_is_not_waited_for_without_end(
    sessions: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await long_session(sessions, ann)
    task = asyncio.create_task(
        sessions.compaction.shrink(ann, session.id, summariser=(waiting := Saying(waits=True)))
    )
    await arrives(waiting.begun.wait(), "the summariser to be asked")
    clock.advance(LONGEST_MS)
    assert (await sessions.compaction.shrink(ann, session.id, summariser=Saying("Two"))).compacted
    waiting.go.set()
    assert (await arrives(task, "the compaction")).reason == CHANGED


async def test_a_summary_that_is_not_smaller_changes_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    dense = await sessions.create(ann)
    await sessions.append(ann, dense.id, [say(f"box-{n} is at /srv/{n}/x{n}.") for n in range(12)])
    before = await everything(reader, ann)
    for given, summariser in ((session, Saying(" ".join(texts))), (dense, Saying("word " * 60))):
        done = await sessions.compaction.shrink(ann, given.id, summariser=summariser)
        assert (done.compacted, done.reason, done.facts_extracted) == (False, NOT_SMALLER, 0)
        assert (done.messages_before, done.tokens_before) == (done.messages_after, done.tokens_after)
        assert (done.checkpoint, done.summary) == (None, None)
    done = await sessions.compaction.shrink(ann, session.id, summariser=Saying(" \n", Finding(text="A fact")))
    assert (done.compacted, done.reason) == (False, SILENT)
    assert await everything(reader, ann) == before


async def test_without_anything_to_leave_out_nothing_changes(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    empty = await sessions.create(ann)
    one = await sessions.create(ann)
    await sessions.append(ann, one.id, [say("The only prompt"), say("Answer " * 5_000, "assistant")])
    before = await everything(reader, ann)
    summariser = Saying()
    assert (await sessions.compaction.shrink(ann, empty.id, summariser=summariser)).reason == EMPTY
    assert (await sessions.compaction.shrink(ann, one.id, summariser=summariser)).reason == WHOLE
    assert summariser.seen == []
    assert await everything(reader, ann) == before


async def test_a_summariser_that_fails_changes_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    class Failing:
        async def summarise(self, *_: object) -> Summary:
            raise InvalidInput("I cannot")

    session, _ = await long_session(sessions, ann)
    before = await everything(reader, ann)
    with pytest.raises(InvalidInput, match="I cannot"):
        await sessions.compaction.shrink(ann, session.id, summariser=Failing())
    assert await everything(reader, ann) == before


async def test_a_summariser_that_could_not_do_it_this_time_is_stood_in_for(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    class Away:
        async def summarise(self, *_: object) -> Summary:
            raise ModelUnreachable("nobody answers")

    (one, _), (two, _) = await long_session(sessions, ann), await long_session(sessions, ann)
    done = await sessions.compaction.shrink(ann, one.id, summariser=Away())
    assert (done.compacted, done.fallback, done.reason) == (True, "nobody answers", None)
    assert (await sessions.compaction.shrink(ann, two.id)).fallback is None
    assert await told(reader, ann, one.id) == await told(reader, ann, two.id)
    short, _ = await started(sessions, ann, "One", "Two")
    done = await sessions.compaction.shrink(ann, short.id, summariser=Away())
    assert (done.compacted, done.fallback) == (False, "nobody answers")


async def test_a_summary_without_facts_has_those_that_are_found_without_it(
    sessions: Sessions, ann: Principal
) -> None:
    class Brief:
        async def summarise(self, *_: object) -> Summary:
            return Summary(text="Much was said.", facts=None, model="a:model", usage=Usage(cost=0.5))

    session, _ = await started(sessions, ann, "My name is Ada.", *["and so on " * 60] * 9, "The end")
    done = await sessions.compaction.shrink(ann, session.id, summariser=Brief())
    assert done.facts_extracted == 1
    assert [fact.text for fact in await sessions.memory.facts(ann)] == ["My name is Ada."]
    summary = await sessions.entry(ann, session.id, done.summary or "")
    assert (summary.model, summary.usage) == ("a:model", Usage(cost=0.5))
    assert (await sessions.get(ann, session.id)).cost == 0.5


SECRETS = ("hunter2-Zq8!vT5x", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")


@pytest.mark.parametrize("summariser", [None, Saying("The password is hunter2-Zq8!vT5x.")])
async def test_a_secret_that_somebody_states_is_not_remembered(
    sessions: Sessions, reader: Sessions, ann: Principal, summariser: Saying | None
) -> None:
    said = f"My name is Ada. The password is {SECRETS[0]}. My token is {SECRETS[1]}."
    session, _ = await started(sessions, ann, said, *["and so on " * 60] * 9, "The end")
    assert (await sessions.compaction.shrink(ann, session.id, summariser=summariser)).compacted
    summary = (await told(reader, ann, session.id))[0]
    assert "[redacted: " in summary
    for text in (summary, *(fact.text for fact in await reader.memory.facts(ann))):
        assert not any(secret in text for secret in SECRETS)
    assert (await told(reader, ann, session.id, "conversation"))[0] == said


async def test_tokens_that_were_estimated_when_they_were_stored_are_told_as_estimated(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    drafts = [say("ask", tokens=100, meta={ESTIMATED: True}), say("answer", "assistant", tokens=4)]
    await sessions.append(ann, session.id, drafts)
    done = await sessions.compaction.shrink(ann, session.id)
    assert (done.compacted, done.tokens_before, done.estimated) == (False, 104, True)


async def test_open_questions_and_identifiers_are_kept_whatever_the_summariser_says(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    texts = [
        "The broker is at /srv/broker/conf.yaml and listens on port 5671.",
        "Still open: who pays for the licence of Falcon?",
        *("filler words " * 100 for _ in range(10)),
        "The last one",
    ]
    await sessions.append(ann, session.id, [say(text) for text in texts])
    assert (await sessions.compaction.shrink(ann, session.id, summariser=Saying("Much was said."))).compacted
    summary, *_ = await told(reader, ann, session.id)
    for kept in ("Much was said.", "/srv/broker/conf.yaml", "5671", "who pays for the licence of Falcon?"):
        assert kept in summary


async def test_what_a_summary_had_to_keep_the_next_one_keeps_too(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    first = ["The broker is at /srv/broker/conf.yaml.", "Still open: who pays for the licence of Falcon?"]
    filler = ["filler words " * 100 for _ in range(10)]
    for texts in ((*first, *filler, "One end"), (*filler, "Another end"), (*filler, "The last end")):
        await sessions.append(ann, session.id, [say(text) for text in texts])
        assert (
            await sessions.compaction.shrink(ann, session.id, summariser=Saying("Much was said."))
        ).compacted
        summary, *_ = await told(reader, ann, session.id)
        for kept in ("/srv/broker/conf.yaml", "who pays for the licence of Falcon?"):
            assert summary.count(kept) == 1


async def test_a_tool_s_call_and_its_result_stay_together(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    for seed in range(6):
        dice = random.Random(seed)
        session = await sessions.create(ann)
        drafts: list[Draft] = []
        for number in range(dice.randint(5, 30)):
            call = ToolCall(id=f"c{number}", name="t", input={"x": "y" * dice.randint(0, 2_000)})
            result = ToolResult(id=call.id, content=(Text(text="z" * dice.randint(0, 2_000)),))
            drafts += [say(f"ask {number} " + "w" * 200), Draft(role="assistant", parts=(call,))]
            if dice.random() < 0.3:
                drafts.append(say("one thing more"))  # while the tool runs
            drafts += [Draft(role="tool", parts=(result,)), say("done", "assistant")]
        await sessions.append(ann, session.id, drafts)
        done = await sessions.compaction.shrink(
            ann, session.id, policy=CompactionPolicy(kept_tokens=dice.randint(1, 5_000), kept_share=0.9)
        )
        assert done.compacted
        context = (await reader.history(ann, session.id, limit=1_000)).entries
        parts = [part for entry in context for part in entry.parts]
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert calls == [part.id for part in parts if isinstance(part, ToolResult)]


async def test_tokens_are_the_provider_s_where_it_told_them(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    drafts = [say("ask", tokens=100), say("answer", "assistant", usage=Usage(input=7, output=900))] * 10
    await sessions.append(ann, session.id, drafts)
    policy = CompactionPolicy(kept_tokens=1_000)
    done = await sessions.compaction.shrink(ann, session.id, summariser=Saying(), policy=policy)
    assert (done.tokens_before, done.messages_after) == (10_000, 3)
    assert 1_000 < done.tokens_after < 1_040
    one = await sessions.create(ann)
    await sessions.append(ann, one.id, [say("ask", tokens=100), say("answer", "assistant", tokens=4)])
    alone = await sessions.compaction.shrink(ann, one.id)
    assert (alone.compacted, alone.tokens_before, alone.estimated) == (False, 104, False)


async def test_only_who_may_write_may_make_it_smaller(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    session, _ = await long_session(sessions, ann)
    given = Imported(id="claude:1", source="claude", created_at=clock(), updated_at=clock())
    await sessions.transfer.sync(ann, given, [Entry(id="a", at=5, role="user", parts=(Text(text="Before"),))])
    with pytest.raises(ReadOnly):
        await sessions.compaction.shrink(ann, "claude:1")
    with pytest.raises(SessionNotFound):
        await sessions.compaction.shrink(bob, session.id)
    lease = await sessions.leases.acquire(ann, session.id, "a turn")
    with pytest.raises(Busy):
        await other.compaction.shrink(ann, session.id)
    with pytest.raises(LeaseLost):
        await other.compaction.shrink(ann, session.id, fence=lease.fence + 1)
    assert (await other.compaction.shrink(ann, session.id, fence=lease.fence)).compacted


async def test_a_turn_that_begins_meanwhile_comes_first(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    summariser = Saying(waits=True)
    task = asyncio.create_task(sessions.compaction.shrink(ann, session.id, summariser=summariser))
    await arrives(summariser.begun.wait(), "the summariser to be asked")
    await other.leases.acquire(ann, session.id, "a turn")
    summariser.go.set()
    with pytest.raises(Busy):
        await arrives(task, "the compaction")
    assert await told(other, ann, session.id) == texts


class Meddled:
    """A store in which something happens before each of the first writes."""

    def __init__(self, store: Store, meddle: Callable[[], Awaitable[object]], times: int) -> None:
        self._store, self._meddle, self._times = store, meddle, times
        self.secret = store.secret

    async def write(self, work: Callable[[Writer], Awaitable[Any]], about: str | None = None) -> Any:
        if self._times > 0:
            self._times -= 1
            await self._meddle()
        return await self._store.write(work, about)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_session_that_others_write_to_is_made_smaller_all_the_same(
    store: Store, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session, texts = await long_session(other, ann)
    meddled = Meddled(store, lambda: other.append(ann, session.id, say("more")), 5)
    done = await Sessions(cast(Store, meddled), now=clock).compaction.shrink(
        ann, session.id, summariser=Saying()
    )
    assert (done.compacted, done.messages_before, done.messages_after) == (True, 45, 10)
    assert (await told(other, ann, session.id))[1:] == [*texts[-4:], *["more"] * 5]


async def test_a_session_that_never_rests_is_left_alone(
    store: Store, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session, texts = await long_session(other, ann)
    meddled = Meddled(store, lambda: other.append(ann, session.id, say("more")), 1_000)
    done = await Sessions(cast(Store, meddled), now=clock).compaction.shrink(ann, session.id)
    assert (done.compacted, done.reason) == (False, UNSETTLED)
    assert await told(other, ann, session.id) == [*texts, *["more"] * ATTEMPTS]
    assert not await other.memory.facts(ann)
    assert not await other.checkpoints(ann, session.id)


async def test_a_process_that_is_killed_leaves_the_old_state_or_the_new_one(shared_home: Home) -> None:
    texts = ["My name is Ada Lovelace.", *["and so on and so forth " * 40] * 20, "the end"]
    async with hitherto.open(shared_home.url) as sessions:
        ids = [(await sessions.create(OWNER, cwd=f"/{number}")).id for number in range(60)]
        for session_id in ids:
            await sessions.append(OWNER, session_id, [say(text) for text in texts])
        worker = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.support.shrink_worker", shared_home.url, *ids),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert worker.stdout is not None
        async with within("25 sessions that were made smaller"):
            acknowledged = [(await worker.stdout.readline()).split()[0].decode() for _ in range(25)]
        worker.kill()
        rest, _ = await arrives(worker.communicate(), "the end of a killed process")
        acknowledged += [line.split()[0].decode() for line in rest.splitlines() if line.endswith(b"1")]
        facts = {fact.session for fact in await sessions.memory.facts(OWNER)}
        for session_id in ids:
            context = await told(sessions, OWNER, session_id)
            made = len(await sessions.checkpoints(OWNER, session_id))
            assert (len(context), made, session_id in facts) in ((3, 1, True), (len(texts), 0, False))
            assert made == 1 or session_id not in acknowledged
        assert (await sessions.admin.check(repair=False)).problems == ()


async def test_a_compacted_session_and_its_facts_are_exported_whole(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, cwd="/work", agent_id="main")
    made = conversation(practice.TEMPLATES, 1, exchanges=40)
    await sessions.append(ann, session.id, made.drafts)
    done = await sessions.compaction.shrink(ann, session.id)
    facts = await reader.memory.facts(ann, session.id)
    assert done.facts_extracted == len(facts) > 50
    lines = await exported(reader, ann, session.id)
    copy = await sessions.import_(ann, lines, new_id=True)
    assert await told(reader, ann, copy.id) == await told(reader, ann, session.id)
    copied = await reader.memory.facts(ann, copy.id)
    assert sorted(fact.text for fact in copied) == sorted(fact.text for fact in facts)
    await sessions.delete(ann, session.id)
    await sessions.import_(ann, lines, include_deleted=True)
    assert await exported(reader, ann, session.id) == lines


async def test_the_built_in_summariser_gives_the_same_for_the_same(
    sessions: Sessions, ann: Principal
) -> None:
    made = conversation(practice.TEMPLATES, 2, exchanges=30)
    texts = []
    for _ in range(2):
        session = await sessions.create(ann)
        await sessions.append(ann, session.id, made.drafts)
        done = await sessions.compaction.shrink(ann, session.id)
        texts.append(plain_text(await sessions.entry(ann, session.id, done.summary or "")))
    assert texts[0] == texts[1]


async def test_a_preview_tells_what_would_go_and_changes_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, texts = await long_session(sessions, ann)
    lease = await sessions.leases.acquire(ann, session.id, "a running turn")
    before = await reader.get(ann, session.id)
    seen = await reader.compaction.preview(ann, session.id)
    assert [plain_text(entry) for entry in (*seen.retired, *seen.kept)] == texts
    assert (len(seen.kept), seen.reason, seen.estimated) == (4, None, True)
    assert (await reader.get(ann, session.id), await reader.checkpoints(ann, session.id)) == (before, [])
    await sessions.leases.release(ann, session.id, lease.fence)
    done = await sessions.compaction.shrink(ann, session.id)
    assert done.messages_after == len(seen.kept) + 1
    assert done.tokens_before == seen.tokens_retired + seen.tokens_kept
    assert done.tokens_after == seen.tokens_summary + seen.tokens_kept
    assert (await told(reader, ann, session.id))[0] == seen.summary


async def test_a_preview_says_why_nothing_would_change(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    empty = await sessions.create(ann)
    assert (await reader.compaction.preview(ann, empty.id)).reason == EMPTY
    short, _ = await started(sessions, ann, "one")
    seen = await reader.compaction.preview(ann, short.id)
    assert (seen.reason, seen.retired, len(seen.kept), seen.summary) == (WHOLE, (), 1, "")
