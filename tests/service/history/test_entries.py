"""Appending messages and reading them back, in both views, in every direction."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.errors import (
    AlreadyExists,
    EntryNotFound,
    IdempotencyConflict,
    InvalidInput,
    ReadOnly,
    RevisionConflict,
    SessionNotFound,
)
from hitherto.limits import ENTRIES_PER_APPEND
from hitherto.model import (
    Audio,
    Draft,
    Entry,
    HistoryPage,
    Image,
    Plan,
    Principal,
    Resource,
    ResourceLink,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    encode,
)
from hitherto.service import Sessions
from hitherto.values.days import DAY_MS
from tests.support.conversations import everything, exported, said, say, started, talk, told
from tests.support.homes import Clock

EVERY_PART = (
    Text(text="text"),
    Thought(text="thought", signature="s", provider="p"),
    Image(mime_type="image/png", data="AAAA"),
    Audio(mime_type="audio/wav", data="BBBB"),
    Resource(uri="file:///a", text="inside"),
    ResourceLink(uri="file:///b", name="b", size=3),
    ToolCall(id="c1", name="read", input={"path": "/a", "big": 2**70}, locations=({"path": "/a"},)),
    ToolResult(id="c1", content=(Text(text="found"),), is_error=True, output={"x": [1.5, None]}),
    Plan(steps=({"content": "first", "status": "pending"},)),
    Unknown(raw={"type": "hologram", "data": [1, 2]}),
)


async def test_an_entry_comes_back_as_it_was_said(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    draft = Draft(
        role="assistant",
        parts=EVERY_PART,
        id="e-1",
        at=1_749_000_000_123,
        model="some-model",
        usage=Usage(input=10, output=5, cache_read=2, cost=0.25),
        tokens=15,
        meta={"stop": "end"},
    )
    done = await sessions.append(ann, session.id, draft)
    assert (done.entries, done.revision) == (("e-1",), 2)
    expected = Entry(**{name: getattr(draft, name) for name in draft.__struct_fields__})
    page = await reader.history(ann, session.id)
    assert page.entries == (expected,)
    assert page.raw == (encode(expected),)
    assert await reader.entry(ann, session.id, "e-1") == expected


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "x\udfff\0y", "😀\u2028\r\n\x1b[31m", "", " " * 3])
async def test_any_text_is_kept_exactly(
    sessions: Sessions, reader: Sessions, ann: Principal, text: str
) -> None:
    session = await sessions.create(ann)
    (entry_id,) = (await sessions.append(ann, session.id, say(text, meta={"again": text}))).entries
    found = await reader.entry(ann, session.id, entry_id)
    assert found.parts == (Text(text=text),)
    assert found.meta == {"again": text}
    assert await told(reader, ann, session.id, "conversation") == [text]


async def test_counts_sums_and_times_move_with_the_conversation(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    failed = Draft(role="tool", parts=(ToolResult(id="c", is_error=True),), tokens=3)
    first = await sessions.append(ann, session.id, [say("Hello", tokens=7, usage=Usage(cost=0.1)), failed])
    now = clock.advance()
    await sessions.append(ann, session.id, say("Again", "assistant", usage=Usage(cost=0.2)))
    page = await reader.history(ann, session.id)
    found = await reader.get(ann, session.id)
    assert first.revision == 2
    assert (found.revision, found.message_count, found.token_count, found.error_count) == (3, 3, 10, 1)
    assert found.cost == pytest.approx(0.3)
    assert found.bytes == sum(map(len, page.raw))
    assert (found.created_at, found.updated_at) == (session.created_at, now)
    assert (page.total, page.token_count) == (3, 10)


async def test_a_message_keeps_its_own_time_and_activity_follows_the_newest(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say("Long ago", at=5))
    assert (await reader.get(ann, session.id)).updated_at == session.updated_at
    await sessions.append(ann, session.id, say("In the future", at=clock.now + 99))
    assert (await reader.get(ann, session.id)).updated_at == clock.now + 99
    assert [entry.at for entry in (await reader.history(ann, session.id)).entries] == [5, clock.now + 99]


async def test_many_messages_are_appended_all_or_none(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "Before")
    before = await everything(reader, ann)
    twice = [say("One", id="same"), say("Two"), say("Three", id="same")]
    with pytest.raises(AlreadyExists):
        await sessions.append(ann, session.id, twice)
    with pytest.raises(InvalidInput):
        await sessions.append(ann, session.id, [say("One"), Draft(role="robot")])  # type: ignore[arg-type]
    assert await everything(reader, ann) == before
    done = await sessions.append(ann, session.id, [say(f"Message {number}") for number in range(300)])
    assert len(set(done.entries)) == 300
    assert (await told(reader, ann, session.id))[1:] == [f"Message {number}" for number in range(300)]
    assert (await reader.get(ann, session.id)).revision == done.revision == session.revision + 1


async def test_an_entry_id_is_used_once_in_a_log(sessions: Sessions, other: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say("One", id="e"))
    with pytest.raises(AlreadyExists):
        await other.append(ann, session.id, say("Two", id="e"))
    apart = await sessions.create(ann)
    await sessions.append(ann, apart.id, say("Three", id="e"))
    assert await told(other, ann, session.id) == ["One"]
    assert await told(other, ann, apart.id) == ["Three"]


@pytest.mark.parametrize("number", [0, ENTRIES_PER_APPEND + 1])
async def test_an_append_has_at_least_one_message_and_not_too_many(
    sessions: Sessions, ann: Principal, number: int
) -> None:
    session = await sessions.create(ann)
    with pytest.raises(InvalidInput):
        await sessions.append(ann, session.id, [say("x")] * number)
    assert (await sessions.get(ann, session.id)).revision == 1


async def test_the_same_idempotency_key_appends_once(
    sessions: Sessions, other: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    done = await sessions.append(ann, session.id, say("Once"), idempotency_key="k")
    clock.advance()
    assert await other.append(ann, session.id, say("Once"), idempotency_key="k") == done
    assert await told(other, ann, session.id) == ["Once"]
    assert (await other.get(ann, session.id)).revision == done.revision


async def test_an_idempotency_key_with_another_payload_is_a_conflict(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal
) -> None:
    session = await sessions.create(ann)
    apart = await sessions.create(ann)
    await sessions.append(ann, session.id, say("Once"), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await other.append(ann, session.id, say("Other"), idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await other.append(ann, apart.id, say("Once"), idempotency_key="k")
    foreign = await other.create(bob, session_id=session.id)
    await other.append(bob, foreign.id, say("Other"), idempotency_key="k")
    assert await told(sessions, ann, session.id) == ["Once"]
    assert await told(sessions, bob, session.id) == ["Other"]


async def test_a_key_of_a_failed_append_can_be_used_again(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    with pytest.raises(RevisionConflict):
        await sessions.append(ann, session.id, say("No"), idempotency_key="k", expected_revision=9)
    await sessions.append(ann, session.id, say("Yes"), idempotency_key="k")
    assert await told(sessions, ann, session.id) == ["Yes"]


async def test_keys_of_creating_and_appending_are_apart(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann, idempotency_key="k")
    await sessions.append(ann, session.id, say("Said"), idempotency_key="k")
    assert await told(sessions, ann, session.id) == ["Said"]


async def test_an_expected_revision_guards_an_append(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    done = await sessions.append(ann, session.id, say("One"), expected_revision=1)
    await other.rename(ann, session.id, "Changed meanwhile")
    with pytest.raises(RevisionConflict) as caught:
        await sessions.append(ann, session.id, say("Two"), expected_revision=done.revision)
    assert (caught.value.expected, caught.value.actual) == (2, 3)
    await sessions.append(ann, session.id, say("Three"), expected_revision=3)
    assert await told(other, ann, session.id) == ["One", "Three"]


def ends(page: HistoryPage) -> tuple[list[str], str | None, str | None]:
    return said(page), page.previous, page.next


async def test_history_goes_forward_page_by_page(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcde")
    assert ends(await reader.history(ann, session.id, limit=2)) == (["a", "b"], None, ids[1])
    assert ends(await reader.history(ann, session.id, after=ids[1], limit=2)) == (["c", "d"], ids[2], ids[3])
    assert ends(await reader.history(ann, session.id, after=ids[3], limit=2)) == (["e"], ids[4], None)
    assert said(await reader.history(ann, session.id, after=ids[4], limit=2)) == []


async def test_history_goes_backward_page_by_page(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcde")
    assert ends(await reader.history(ann, session.id, last=True, limit=2)) == (["d", "e"], ids[3], None)
    assert ends(await reader.history(ann, session.id, before=ids[3], limit=2)) == (["b", "c"], ids[1], ids[2])
    assert ends(await reader.history(ann, session.id, before=ids[1], limit=2)) == (["a"], None, ids[0])
    assert said(await reader.history(ann, session.id, before=ids[0], limit=2)) == []


async def test_history_shows_what_stands_around_an_entry(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcdefg")
    assert ends(await reader.history(ann, session.id, around=ids[3], limit=3)) == (
        list("cde"),
        ids[2],
        ids[4],
    )
    assert said(await reader.history(ann, session.id, around=ids[3], limit=1)) == ["d"]
    assert "a" in said(await reader.history(ann, session.id, around=ids[0], limit=3))
    assert "g" in said(await reader.history(ann, session.id, around=ids[6], limit=3))


async def test_the_end_of_a_short_history_is_all_of_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, *"ab")
    assert ends(await reader.history(ann, session.id, last=True, limit=50)) == (["a", "b"], None, None)
    empty = await sessions.create(ann)
    assert ends(await reader.history(ann, empty.id, last=True)) == ([], None, None)


async def test_a_page_is_bounded_in_bytes_too_and_has_at_least_one_entry(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    texts = ["a" * 10, "b" * 10, "c" * 5_000, "d" * 5_000, "e" * 10, "f" * 10]
    session, ids = await started(sessions, ann, *texts)
    fork = await sessions.fork(ann, session.id, at=ids[4])
    ids = [*ids[:5], *(await talk(sessions, ann, fork.id, "f" * 10))]

    async def page(**given: Any) -> str:
        found = await reader.history(ann, fork.id, max_bytes=1_000, **given)
        return "".join(text[0] for text in said(found))

    assert await page() == "ab"
    assert [await page(after=ids[at]) for at in range(6)] == ["b", "c", "d", "ef", "f", ""]
    assert await page(last=True) == "ef"
    assert [await page(before=ids[at]) for at in range(6)] == ["", "a", "ab", "c", "d", "e"]
    assert await page(last=True, limit=1) == "f"
    part = await reader.history(ann, fork.id, max_bytes=1_000, after=ids[0])
    assert ends(part) == (["b" * 10], ids[1], ids[1])
    whole = await reader.history(ann, fork.id, max_bytes=100_000)
    assert (len(whole.raw), whole.next) == (6, None)
    assert [await page(around=ids[at]) for at in range(6)] == ["ab", "ab", "abc", "cd", "def", "ef"]


async def test_both_views_page_across_a_compaction(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *"abcde")
    done = await sessions.compact(ann, session.id, say("S", "system"), keep=2)
    (f,) = await talk(sessions, ann, session.id, "f")
    assert await told(reader, ann, session.id) == ["S", "d", "e", "f"]
    assert await told(reader, ann, session.id, "conversation") == [*"abcde", "S", "f"]
    whole = await reader.history(ann, session.id, view="conversation")
    assert whole.marks == (5,)
    part = await reader.history(ann, session.id, view="conversation", after=ids[3], limit=3)
    assert (said(part), part.marks) == (["e", "S", "f"], (1,))
    assert (await reader.history(ann, session.id)).marks == ()
    assert said(await reader.history(ann, session.id, before=f, limit=2)) == ["d", "e"]
    assert said(await reader.history(ann, session.id, after=done.summary, limit=1)) == ["d"]
    with pytest.raises(EntryNotFound):
        await reader.history(ann, session.id, after=ids[0])
    assert said(await reader.history(ann, session.id, view="conversation", after=ids[0], limit=1)) == ["b"]


async def test_only_one_way_of_paging_is_allowed_at_a_time(sessions: Sessions, ann: Principal) -> None:
    session, ids = await started(sessions, ann, *"ab")
    with pytest.raises(InvalidInput):
        await sessions.history(ann, session.id, after=ids[0], before=ids[1])
    with pytest.raises(InvalidInput):
        await sessions.history(ann, session.id, around=ids[0], last=True)
    with pytest.raises(InvalidInput):
        await sessions.history(ann, session.id, view="summary")  # type: ignore[arg-type]


async def test_an_entry_that_is_not_in_the_session_is_not_found(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    _, elsewhere = await started(sessions, ann, "b")
    _, foreign = await started(sessions, bob, "c")
    for entry_id in (*elsewhere, *foreign, "no such entry", "", "\0", "\ud800", "x" * 10_000):
        for call in (
            reader.entry(ann, session.id, entry_id),
            reader.history(ann, session.id, around=entry_id),
            sessions.fork(ann, session.id, at=entry_id),
            sessions.rewind(ann, session.id, entry_id),
            sessions.erase(ann, session.id, entry_id),
        ):
            with pytest.raises(EntryNotFound) as caught:
                await call
            assert caught.value.message == f"no entry {entry_id!r} in this session"


async def test_a_session_read_from_another_agent_is_not_written_but_forked(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "Said elsewhere")
    lines = await exported(sessions, ann, session.id)
    await sessions.delete(ann, session.id)
    lines[0] = lines[0].replace(b'"session":{', b'"session":{"source":"claude",')
    await sessions.import_(ann, lines, include_deleted=True)
    for call in (
        sessions.append(ann, session.id, say("No")),
        sessions.rewind(ann, session.id, ids[0]),
        sessions.reset(ann, session.id),
        sessions.compact(ann, session.id, say("No")),
        sessions.changes.put_live(ann, session.id, b"No"),
    ):
        with pytest.raises(ReadOnly):
            await call
    fork = await sessions.fork(ann, session.id)
    await talk(sessions, ann, fork.id, "Said here")
    assert fork.source is None
    assert await told(reader, ann, fork.id) == ["Said elsewhere", "Said here"]
    assert await told(reader, ann, session.id) == ["Said elsewhere"]


async def test_reading_is_noted_at_most_once_an_hour_and_is_no_change(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    before = await reader.changes.newest(ann)
    first = clock.advance()
    await reader.history(ann, session.id)
    clock.advance(3_599_000)
    await reader.history(ann, session.id)
    assert (await sessions.get(ann, session.id)).read_at == first
    later = clock.advance(1_000)
    await reader.history(ann, session.id)
    found = await sessions.get(ann, session.id)
    assert (found.read_at, found.revision, found.updated_at) == (later, session.revision, session.updated_at)
    assert await reader.changes.newest(ann) == before


async def test_what_somebody_has_seen_is_noted_at_once_if_it_was_new(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session, _ = await started(sessions, ann, "a")
    first = clock.advance()
    await reader.history(ann, session.id, seen=True)
    clock.advance()
    await reader.history(ann, session.id, seen=True)
    assert (await sessions.get(ann, session.id)).read_at == first
    clock.advance()
    await talk(sessions, ann, session.id, "b")
    await reader.history(ann, session.id)
    assert (await sessions.get(ann, session.id)).read_at == first
    later = clock.advance()
    await reader.history(ann, session.id, seen=True)
    assert (await sessions.get(ann, session.id)).read_at == later


async def test_an_erased_entry_leaves_only_its_place(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "Open", "my secret password", "Close")
    await sessions.erase(ann, session.id, ids[1])
    page = await reader.history(ann, session.id)
    assert said(page) == ["Open", "", "Close"]
    old = page.entries[1]
    assert (old.id, old.role, old.parts, old.meta["erased"]) == (ids[1], "user", (), True)
    assert b"secret" not in b"".join(await exported(reader, ann, session.id))
    assert (await reader.get(ann, session.id)).revision == session.revision + 1
    assert (await reader.search(ann, "secret")).hits == ()
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_erasing_reaches_every_fork_and_checkpoint(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "The secret is out", "More")
    fork = await sessions.fork(ann, session.id)
    await sessions.reset(ann, session.id)
    fork_before = await reader.get(ann, fork.id)
    await sessions.erase(ann, session.id, ids[0])
    assert await told(reader, ann, fork.id) == ["", "More"]
    found = await reader.get(ann, fork.id)
    assert found.revision == fork_before.revision + 1
    (checkpoint,) = await reader.checkpoints(ann, session.id)
    await sessions.restore(ann, session.id, checkpoint.id)
    assert await told(reader, ann, session.id) == ["", "More"]
    assert (await reader.search(ann, "secret")).hits == ()


async def test_erasing_takes_titles_and_raw_copies_that_tell_of_the_entry(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "The secret is out")
    fork = await sessions.fork(ann, session.id)
    renamed = await sessions.fork(ann, session.id)
    await sessions.rename(ann, renamed.id, "Harmless")
    await sessions.transfer.keep_raw(ann, session.id, "file", b"The secret is out")
    await sessions.erase(ann, session.id, ids[0])
    assert (await reader.get(ann, session.id)).title is None
    assert (await reader.get(ann, fork.id)).title is None
    found = await reader.get(ann, renamed.id)
    assert (found.title, found.earlier_titles) == ("Harmless", ())
    assert await reader.transfer.raw(ann, session.id) == []
    assert (await reader.search(ann, "secret")).hits == ()


async def test_an_append_to_nothing_leaves_nothing(sessions: Sessions, ann: Principal) -> None:
    with pytest.raises(SessionNotFound):
        await sessions.append(ann, "nowhere", say("x"), idempotency_key="k")
    assert await sessions.changes.newest(ann) == "0"


async def test_a_message_cannot_claim_to_be_erased(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a")
    before = await everything(reader, ann)
    for forged in (
        say("Still here", meta={"erased": True}),
        Draft(role="user", meta={"erased": True, "bytes": 9}),
    ):
        with pytest.raises(InvalidInput):
            await sessions.append(ann, session.id, forged)
        with pytest.raises(InvalidInput):
            await sessions.compact(ann, session.id, forged)
    assert await everything(reader, ann) == before


async def test_erasing_an_entry_twice_is_the_same_as_once(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "secret")
    await sessions.erase(ann, session.id, ids[0])
    before = await everything(reader, ann)
    await sessions.erase(ann, session.id, ids[0])
    assert await everything(reader, ann) == before


async def test_an_erased_entry_still_counts_as_it_did(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    failed = ToolResult(id="c", is_error=True)
    drafts = [
        say("a", tokens=1),
        Draft(role="tool", parts=(failed,), tokens=7, usage=Usage(cost=1)),
        say("b"),
    ]
    ids = (await sessions.append(ann, session.id, drafts)).entries
    before = await reader.get(ann, session.id)
    await sessions.erase(ann, session.id, ids[1])
    fork = await sessions.fork(ann, session.id, at=ids[2])
    for found in (await reader.get(ann, session.id), fork):
        assert (found.message_count, found.token_count, found.error_count) == (3, 8, 1)
        assert (found.bytes, found.cost) == (before.bytes, 1)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_remembered_append_to_a_deleted_session_finds_no_session(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say("once"), idempotency_key="k")
    await sessions.delete(ann, session.id)
    with pytest.raises(SessionNotFound):
        await sessions.append(ann, session.id, say("once"), idempotency_key="k")


async def test_an_id_of_the_shared_history_is_refused_in_a_fork(sessions: Sessions, ann: Principal) -> None:
    source = await sessions.create(ann)
    await sessions.append(ann, source.id, say("first", id="same"))
    fork = await sessions.fork(ann, source.id)
    with pytest.raises(AlreadyExists):
        await sessions.append(ann, fork.id, say("second", id="same"))
    await sessions.append(ann, fork.id, say("second", id="other"))
    assert (await sessions.get(ann, fork.id)).message_count == 2


@pytest.mark.parametrize(
    "draft",
    [
        Draft(role="user", parts=({"type": "nope"},)),  # type: ignore[arg-type]
        Draft(role="user", parts=("text",)),  # type: ignore[arg-type]
        Draft(role="user", model=7),  # type: ignore[arg-type]
        Draft(role="user", meta=[]),  # type: ignore[arg-type]
        Draft(role="user", parts=7),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_message_is_refused_and_breaks_nothing(
    sessions: Sessions, ann: Principal, draft: Draft
) -> None:
    session = await sessions.create(ann)
    with pytest.raises(InvalidInput):
        await sessions.append(ann, session.id, draft)
    await sessions.append(ann, session.id, say("words"))
    assert len((await sessions.search(ann, "words")).hits) == 1


async def test_results_nested_too_deep_are_refused(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    part = ToolResult(id="t")
    for _ in range(400):
        part = ToolResult(id="t", content=(part,))
    with pytest.raises(InvalidInput):
        await sessions.append(ann, session.id, Draft(role="tool", parts=(part,)))


async def test_an_idempotency_key_is_remembered_for_seven_days_and_until_it_is_forgotten(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    first = await sessions.create(ann, title="once", idempotency_key="k")
    clock.now += 6 * DAY_MS
    await sessions.admin.forget_notes()
    assert (await sessions.create(ann, title="once", idempotency_key="k")).id == first.id
    clock.now += 2 * DAY_MS
    assert (await sessions.create(ann, title="once", idempotency_key="k")).id == first.id
    await sessions.admin.forget_notes()
    assert (await sessions.create(ann, title="once", idempotency_key="k")).id != first.id


async def test_a_page_of_history_is_bounded_in_bytes_also_if_nobody_says_so(
    sessions: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    for number in range(3):
        text = f"{number} {'x' * (12 << 20)}"
        await sessions.append(ann, session.id, Draft(role="user", parts=(Text(text=text),)))
    page = await sessions.history(ann, session.id, max_bytes=1 << 40)
    rest = await sessions.history(ann, session.id, after=page.next)
    assert (len(page.raw), len(rest.raw), rest.next) == (2, 1, None)
