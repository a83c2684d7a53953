"""Sessions that are read from another agent's files."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from msgspec.structs import replace

from hitherto.errors import ReadOnly, SessionNotFound, TooLarge
from hitherto.limits import ENTRY_BYTES
from hitherto.model import Draft, Entry, Filter, Principal, Text, ToolResult, Usage, encode
from hitherto.ports import RawCopy
from hitherto.service import Imported, Sessions
from hitherto.service.compaction.imported import Summarised
from hitherto.service.transfer.synced import SyncImport
from tests.support.homes import Clock

HOUR = 3_600_000


def entry(name: str, text: str | None = None, at: int = 5) -> Entry:
    return Entry(id=name, at=at, role="user", parts=(Text(text=text or f"text of {name}"),))


def imported(clock: Clock, **changes: object) -> Imported:
    fields = {"id": "claude:1", "source": "claude", "created_at": clock() - HOUR, "updated_at": clock() - 5}
    return Imported(**{**fields, **changes})  # type: ignore[arg-type]  # fields of the struct, by name


async def texts(sessions: Sessions, who: Principal, session_id: str = "claude:1") -> list[str]:
    page = await sessions.history(who, session_id, limit=1000)
    return [part.text for found in page.entries for part in found.parts if isinstance(part, Text)]


async def test_a_session_is_taken_in_with_its_own_times(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal
) -> None:
    given = imported(clock, cwd="/home/ann", title="Fix it", tags=("t",), meta={"branch": "main"})
    taken = await sessions.transfer.sync(ann, given, [entry("a"), entry("b")])
    assert (taken.created, taken.appended, taken.reshaped) == (True, 2, False)
    session = await reader.get(ann, "claude:1")
    assert (session.created_at, session.updated_at) == (given.created_at, given.updated_at)
    assert (session.title, session.title_by, session.tags, session.cwd) == (
        "Fix it",
        "source",
        ("t",),
        "/home/ann",
    )
    assert session.meta["branch"] == "main"
    assert session.message_count == 2
    assert await texts(reader, ann) == ["text of a", "text of b"]
    assert [hit.session.id for hit in (await reader.search(ann, "text")).hits] == ["claude:1"]


@pytest.mark.parametrize(
    ("prompt", "answer", "title"),
    [
        ("<command-name>/init</command-name><command-args></command-args>", "I read the code.", "/init"),
        ("[Image #1]", "The picture shows a queue.\n\nIt is full.", "The picture shows a queue."),
        ("Implement the following plan:", "I need the plan first.", "I need the plan first."),
        ("[Image #1]", "…", None),
    ],
)
async def test_a_session_without_a_telling_prompt_is_called_by_its_command_or_its_first_answer(
    sessions: Sessions,
    reader: Sessions,
    clock: Clock,
    ann: Principal,
    prompt: str,
    answer: str,
    title: str | None,
) -> None:
    said = replace(entry("b", answer), role="assistant")
    await sessions.transfer.sync(ann, imported(clock), [entry("a", prompt), said])
    assert (await reader.get(ann, "claude:1")).title == title
    # A prompt that tells more comes later: its source then names the session by it.
    more = [entry("a", prompt), said, entry("c", "Sort the queue")]
    await sessions.transfer.sync(ann, imported(clock, title="Sort the queue"), more)
    assert (await reader.get(ann, "claude:1")).title == "Sort the queue"


async def test_bytes_that_entries_were_read_from_are_kept_as_they_are_unless_they_are_too_many(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal
) -> None:
    payloads = [b" " + encode(entry(name)) for name in "ab"]
    await sessions.transfer.sync_packed(ann, imported(clock), payloads)
    page = await reader.history(ann, "claude:1")
    assert [bytes(each) for each in page.raw] == payloads
    assert page.entries == (entry("a"), entry("b"))
    other = imported(clock, id="claude:2")
    with pytest.raises(TooLarge):
        await sessions.transfer.sync_packed(ann, other, [bytes(ENTRY_BYTES + 1)])


async def test_taking_in_the_same_again_changes_nothing(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    given = imported(clock, title="Fix it", tags=("t",))
    await sessions.transfer.sync(ann, given, [entry("a"), entry("b")])
    before = await sessions.get(ann, "claude:1")
    taken = await sessions.transfer.sync(ann, given, [entry("a"), entry("b")])
    assert (taken.created, taken.appended, taken.reshaped) == (False, 0, False)
    assert await sessions.get(ann, "claude:1") == before


async def test_a_new_session_has_the_counts_of_its_entries_and_what_it_was_read_from(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal
) -> None:
    said = replace(entry("a"), tokens=7, usage=Usage(cost=0.25))
    failed = replace(entry("b"), role="tool", parts=(ToolResult(id="c", is_error=True),))
    await sessions.transfer.sync(ann, imported(clock), [said, failed], raw=[RawCopy("0", b"bytes")])
    session = await reader.get(ann, "claude:1")
    assert (session.message_count, session.token_count, session.error_count) == (2, 7, 1)
    assert (session.cost, session.bytes) == (0.25, len(encode(said)) + len(encode(failed)))
    assert await reader.transfer.raw(ann, "claude:1") == [RawCopy("0", b"bytes")]
    assert (await sessions.admin.check(repair=True)).problems == ()


async def test_an_entry_that_comes_twice_is_kept_once_and_shown_twice(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    taken = await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("b"), entry("a")])
    assert taken.appended == 2
    assert await texts(sessions, ann) == ["text of a", "text of b", "text of a"]
    assert (await sessions.get(ann, "claude:1")).message_count == 3


async def test_entries_later_than_the_source_says_do_not_move_its_time(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    given = imported(clock)
    await sessions.transfer.sync(ann, given, [entry("a", at=clock() + HOUR)])
    assert (await sessions.get(ann, "claude:1")).updated_at == given.updated_at


async def test_what_comes_behind_is_appended(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    await sessions.transfer.sync(ann, imported(clock), [entry("b"), entry("c")], extends=True)
    assert await texts(sessions, ann) == ["text of a", "text of b", "text of c"]
    assert (await sessions.get(ann, "claude:1")).message_count == 3
    assert await sessions.checkpoints(ann, "claude:1") == []


async def test_a_changed_record_takes_the_place_of_its_earlier_form(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("b"), entry("c")])
    taken = await sessions.transfer.sync(
        ann, imported(clock), [entry("a"), entry("b", "corrected"), entry("c")]
    )
    assert taken.appended == 1
    assert await texts(sessions, ann) == ["text of a", "corrected", "text of c"]
    again = await sessions.transfer.sync(
        ann, imported(clock), [entry("a"), entry("b", "corrected"), entry("c")]
    )
    assert again.appended == 0


async def test_another_branch_and_a_shrunk_source_leave_a_checkpoint(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("b"), entry("c")])
    taken = await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("d")])
    assert taken.reshaped
    assert await texts(sessions, ann) == ["text of a", "text of d"]
    (checkpoint,) = await sessions.checkpoints(ann, "claude:1")
    branch = await sessions.branch(ann, "claude:1", checkpoint.id)
    assert await texts(sessions, ann, branch.id) == ["text of a", "text of b", "text of c"]


async def test_a_long_session_is_taken_in_batch_by_batch(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    many = [entry(f"e{number}") for number in range(2_345)]
    assert (await sessions.transfer.sync(ann, imported(clock), many)).appended == 2_345
    page = await sessions.history(ann, "claude:1", limit=10_000)
    assert [found.id for found in page.entries] == [given.id for given in many]
    assert (await sessions.admin.check(repair=True)).problems == ()


async def test_a_session_deleted_here_is_not_taken_in_again(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    await sessions.delete(ann, "claude:1")
    assert (await sessions.transfer.sync(ann, imported(clock), [entry("a")])).refused
    with pytest.raises(SessionNotFound):
        await sessions.get(ann, "claude:1")


async def test_what_its_owner_says_here_wins(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    await sessions.transfer.sync(ann, imported(clock, title="Theirs", tags=("one", "two")), [entry("a")])
    await sessions.rename(ann, "claude:1", "Mine")
    await sessions.tag(ann, "claude:1", add=["own"], remove=["one"])
    await sessions.transfer.sync(
        ann, imported(clock, title="Theirs 2", tags=("one", "two", "three")), [entry("a")]
    )
    session = await sessions.get(ann, "claude:1")
    assert (session.title, session.tags) == ("Mine", ("own", "three", "two"))


async def test_it_cannot_be_written_but_forked(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("b")])
    with pytest.raises(ReadOnly):
        await sessions.append(ann, "claude:1", Draft(role="user"))
    fork = await sessions.fork(ann, "claude:1")
    await sessions.append(ann, fork.id, Draft(role="user", parts=(Text(text="more"),)))
    assert await texts(sessions, ann, fork.id) == ["text of a", "text of b", "more"]
    assert fork.source is None


async def test_a_vanished_source_is_marked_until_it_is_back(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    assert await sessions.transfer.mark_source(ann, "claude:1", gone=True)
    assert not await sessions.transfer.mark_source(ann, "claude:1", gone=True)
    assert (await sessions.get(ann, "claude:1")).meta["source_gone"] is True
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    assert "source_gone" not in (await sessions.get(ann, "claude:1")).meta


async def test_imported_sessions_are_listed_by_source(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.create(ann)
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    page = await sessions.find(ann, Filter(source="claude"))
    assert [session.id for session in page.sessions] == ["claude:1"]


async def test_an_amended_answer_stands_where_it_stood(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a"), entry("b", "begun"), entry("c")])
    for text in ("begun and", "begun and ended"):
        await sessions.transfer.sync(ann, imported(clock), [], extends=True, amended=entry("b", text))
    assert await texts(sessions, ann) == ["text of a", "begun and ended", "text of c"]
    await sessions.transfer.sync(
        ann, imported(clock), [entry("d")], extends=True, amended=entry("b", "begun and ended")
    )
    assert await texts(sessions, ann) == ["text of a", "begun and ended", "text of c", "text of d"]
    assert await sessions.checkpoints(ann, "claude:1") == []
    whole = [entry("a"), entry("b", "begun and ended"), entry("c"), entry("d")]
    assert (await sessions.transfer.sync(ann, imported(clock), whole)).appended == 0
    assert await texts(sessions, ann) == ["text of a", "begun and ended", "text of c", "text of d"]


def named(*names: str) -> list[Entry]:
    return [entry(name) for name in names]


async def views(sessions: Sessions, who: Principal, session_id: str = "claude:1") -> tuple[str, str]:
    """The ids of the context and of the conversation."""
    context = await sessions.history(who, session_id, limit=10_000)
    whole = await sessions.history(who, session_id, view="conversation", limit=10_000)
    return " ".join(each.id for each in context.entries), " ".join(each.id for each in whole.entries)


SUMMED = Summarised(summary="S", kept=("nobody", "b"), until="B")


async def test_what_the_agent_summed_up_leaves_the_context_and_stays_in_the_conversation(
    sessions: Sessions, reader: Sessions, clock: Clock, ann: Principal
) -> None:
    given = named("a", "b", "c", "B", "S", "d")
    await sessions.transfer.sync(ann, imported(clock), given, compactions=[SUMMED])
    assert await views(reader, ann) == ("S b c d", "a b c B S d")
    session = await reader.get(ann, "claude:1")
    assert (session.message_count, session.last_compaction) == (4, 5)
    (checkpoint,) = await sessions.checkpoints(ann, "claude:1")
    assert (checkpoint.reason, checkpoint.message_count, checkpoint.at) == ("compaction", 4, 5)
    assert (await sessions.admin.check(repair=True)).problems == ()
    taken = await sessions.transfer.sync(ann, imported(clock), given, compactions=[SUMMED])
    assert (taken.appended, taken.reshaped) == (0, False)
    assert await reader.get(ann, "claude:1") == session


async def test_summed_up_piece_by_piece_or_at_once_it_is_the_same(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    second = Summarised(summary="T", kept=("S", "c"), until="C")
    for names, compactions in (("ab", []), ("cBSd", [SUMMED]), ("CTe", [second])):
        given = named(*names)
        await sessions.transfer.sync(
            ann, imported(clock), given, extends=names != "ab", compactions=compactions
        )
    assert await views(sessions, ann) == ("T c d e", "a b c B S d C T e")
    before = await sessions.get(ann, "claude:1")
    whole = named(*"abcBSdCTe")
    assert not (
        await sessions.transfer.sync(ann, imported(clock), whole, compactions=[SUMMED, second])
    ).reshaped
    assert await sessions.get(ann, "claude:1") == before
    assert len(await sessions.checkpoints(ann, "claude:1")) == 2


async def test_a_fork_of_what_was_summed_up_has_both_views_and_outlives_it(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), named(*"abcBSd"), compactions=[SUMMED])
    fork = await sessions.turns.continuation(ann, "claude:1")
    early = await sessions.fork(ann, "claude:1", at="b")
    await sessions.delete(ann, "claude:1")
    while await sessions.admin.collect():
        pass
    assert await views(sessions, ann, fork.id) == ("S b c d", "a b c B S d")
    assert await views(sessions, ann, early.id) == ("a b", "a b")


async def test_a_branch_that_leaves_a_summary_behind_leaves_a_checkpoint_with_all_of_it(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), named(*"abcBSd"), compactions=[SUMMED])
    taken = await sessions.transfer.sync(ann, imported(clock), named("a", "e"))
    assert taken.reshaped
    assert await views(sessions, ann) == ("a e", "a e")
    assert (await sessions.get(ann, "claude:1")).last_compaction is None
    left = (await sessions.checkpoints(ann, "claude:1"))[-1]
    branch = await sessions.branch(ann, "claude:1", left.id)
    assert await views(sessions, ann, branch.id) == ("S b c d", "a b c B S d")


async def test_an_answer_that_goes_on_after_it_was_summed_up_is_amended_in_both_views(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), named(*"abcBS"), compactions=[SUMMED])
    for name in ("a", "c"):
        await sessions.transfer.sync(ann, imported(clock), [], extends=True, amended=entry(name, "more"))
    assert await views(sessions, ann) == ("S b c~2", "a~2 b c~2 B S")
    assert (await sessions.admin.check(repair=True)).problems == ()


async def test_a_summary_with_nothing_before_it_is_an_entry_like_others(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), named("S", "d"), compactions=[SUMMED])
    assert await views(sessions, ann) == ("S d", "S d")
    assert await sessions.checkpoints(ann, "claude:1") == []


async def test_a_long_session_is_summed_up_too(sessions: Sessions, clock: Clock, ann: Principal) -> None:
    many = named(*(f"e{number}" for number in range(1_500)), "S", "d")
    await sessions.transfer.sync(ann, imported(clock), many, compactions=[Summarised(summary="S")])
    context, conversation = await views(sessions, ann)
    assert context == "S d"
    assert len(conversation.split()) == 1_502


async def test_a_session_deleted_here_comes_back_for_whoever_asks_for_it(
    sessions: Sessions, clock: Clock, ann: Principal
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    await sessions.delete(ann, "claude:1")
    assert (await sessions.transfer.sync(ann, imported(clock), [entry("a")], revive=True)).created
    assert await texts(sessions, ann) == ["text of a"]
    await sessions.transfer.sync(ann, imported(clock), [entry("b")], extends=True)
    assert await texts(sessions, ann) == ["text of a", "text of b"]
    assert (await sessions.admin.check(repair=True)).problems == ()


async def test_nothing_is_collected_of_a_session_that_is_being_taken_in(
    sessions: Sessions, other: Sessions, clock: Clock, ann: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sessions.transfer.sync(ann, imported(clock), [entry("a")])
    fork = await sessions.fork(ann, "claude:1")
    batches = 0
    add = SyncImport._add_held

    async def while_others_delete(self: SyncImport, *rest: Any) -> dict[str, int]:
        nonlocal batches
        batches += 1
        return await add(self, *rest)

    monkeypatch.setattr(SyncImport, "_add_held", while_others_delete)
    many = [entry("a"), *(entry(f"e{number}") for number in range(2_500))]
    write = sessions.core.store.write

    async def write_then_delete(work: Any) -> Any:
        result = await write(work)
        if batches == 2 and fork.id is not None:
            with contextlib.suppress(SessionNotFound):
                await other.delete(ann, fork.id)
        return result

    monkeypatch.setattr(sessions.core.store, "write", write_then_delete)
    await sessions.transfer.sync(ann, imported(clock), many)
    monkeypatch.setattr(sessions.core.store, "write", write)
    assert batches == 3
    assert (await sessions.history(ann, "claude:1", limit=10_000)).total == len(many)
    assert (await sessions.admin.check(repair=True)).problems == ()
