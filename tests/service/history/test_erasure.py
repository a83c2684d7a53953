"""What is erased is gone from the summaries that were made of it, too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from hitherto.engine import Choices
from hitherto.errors import SessionDeleted, StoreUnavailable
from hitherto.model import Entry, Filter, Principal, Text, plain_text
from hitherto.ports import RawCopy, Store
from hitherto.service import Imported, Policy, Sessions
from hitherto.service.compaction.imported import Summarised
from hitherto.service.records import is_erased
from hitherto.summariser import CompactionPolicy, Summary
from hitherto.updates import Titled
from tests.support.conversations import exported, finds, say, started, talk, told
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted, Watcher, prompt

FILLER = "and so on and so forth " * 30
VAULT = "The vault opens with the word Xylophagous."


async def shrunk(sessions: Sessions, who: Principal, *texts: str) -> tuple[str, list[str]]:
    """A session in which these were said, then much else, and which was made smaller."""
    session, ids = await started(sessions, who, *texts, *[FILLER] * 8, "The end")
    assert (await sessions.compaction.shrink(who, session.id)).compacted
    return session.id, ids


async def leaks(sessions: Sessions, who: Principal, session_id: str) -> bool:
    """Whether the word is left anywhere: in an export, in what is remembered, or for a search."""
    lines = b"\n".join(await exported(sessions, who, session_id))
    facts = [fact.text for fact in await sessions.memory.facts(who)]
    return (
        b"Xylophagous" in lines
        or "Xylophagous" in str(facts)
        or bool(await finds(sessions, who, "Xylophagous"))
    )


async def test_a_summary_of_what_was_erased_goes_and_the_context_is_what_it_stood_for(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session_id, ids = await shrunk(sessions, ann, "My name is Ada.", VAULT)
    clock.advance()
    await talk(sessions, ann, session_id, "Afterwards")
    assert await leaks(reader, ann, session_id)
    before = await reader.get(ann, session_id)
    await sessions.erase(ann, session_id, ids[1])
    assert not await leaks(reader, ann, session_id)
    everything = ["My name is Ada.", "", *[FILLER] * 8, "The end", "Afterwards"]
    assert await told(reader, ann, session_id) == everything
    assert await told(reader, ann, session_id, "conversation") == everything
    found = await reader.get(ann, session_id)
    assert (found.message_count, found.last_compaction) == (len(everything), None)
    assert (found.revision, found.updated_at) == (before.revision + 1, before.updated_at)
    done = await sessions.compaction.shrink(ann, session_id)
    assert done.compacted
    summary = (await told(reader, ann, session_id))[0]
    assert ("My name is Ada." in summary, "Xylophagous" in summary) == (True, False)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_summaries_of_summaries_go_too(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session_id, ids = await shrunk(sessions, ann, VAULT)
    for number in range(3):
        await talk(sessions, ann, session_id, *[FILLER] * 8, f"End {number}")
        assert (await sessions.compaction.shrink(ann, session_id)).compacted
    fork = await sessions.fork(ann, session_id)
    await talk(sessions, ann, fork.id, "In the fork")
    assert await leaks(reader, ann, fork.id)
    await sessions.erase(ann, session_id, ids[0])
    for each, last in ((session_id, "End 2"), (fork.id, "In the fork")):
        assert not await leaks(reader, ann, each)
        context = await told(reader, ann, each)
        assert (context[0], context[-1]) == ("", last)
        assert context == await told(reader, ann, each, "conversation")
        assert not any(text.startswith("[Compacted") for text in context)
        for checkpoint in await sessions.checkpoints(ann, each):
            branch = await sessions.branch(ann, each, checkpoint.id)
            assert not await leaks(reader, ann, branch.id)
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_summary_that_never_saw_what_was_erased_stays(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, _ = await shrunk(sessions, ann, "My name is Ada.")
    (after,) = await talk(sessions, ann, session_id, VAULT)
    before = await told(reader, ann, session_id)
    await sessions.erase(ann, session_id, after)
    assert await told(reader, ann, session_id) == [*before[:-1], ""]
    assert not await leaks(reader, ann, session_id)
    assert (await reader.get(ann, session_id)).last_compaction is not None


async def test_only_the_summaries_that_saw_it_go(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, _ = await shrunk(sessions, ann, "My name is Ada.")
    (first, *_) = await told(reader, ann, session_id)
    (entry, *_) = await talk(sessions, ann, session_id, VAULT, *[FILLER] * 8, "The last end")
    assert (await sessions.compaction.shrink(ann, session_id)).compacted
    assert await leaks(reader, ann, session_id)
    await sessions.erase(ann, session_id, entry)
    assert not await leaks(reader, ann, session_id)
    assert await told(reader, ann, session_id) == [
        first, "The end", "", *[FILLER] * 8, "The last end",
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["anybody", "a model"])
async def test_a_summary_by_whomever_goes(
    sessions: Sessions, reader: Sessions, ann: Principal, by: str
) -> None:
    session, ids = await started(sessions, ann, VAULT, "and", "the end")
    model = "a:model" if by == "a model" else None
    await sessions.compact(ann, session.id, say("Xylophagous opens it.", "system", model=model), keep=1)
    await sessions.erase(ann, session.id, ids[0])
    assert not await leaks(reader, ann, session.id)
    assert await told(reader, ann, session.id) == ["", "and", "the end"]


class Quoting:
    """A summariser that quotes what is kept beside its summary, though it should not."""

    async def summarise(
        self,
        retired: Sequence[Entry],  # noqa: ARG002
        kept: Sequence[Entry],
        policy: CompactionPolicy,  # noqa: ARG002
    ) -> Summary:
        return Summary(text="They end with: " + plain_text(kept[-1]), model="a:model")


@pytest.mark.parametrize("by", ["anybody", "a model"])
async def test_a_summary_goes_with_a_message_that_was_kept_beside_it_because_it_may_quote_it(
    sessions: Sessions, reader: Sessions, ann: Principal, by: str
) -> None:
    session, ids = await started(sessions, ann, *[FILLER] * 8, VAULT)
    if by == "anybody":
        await sessions.compact(ann, session.id, say(f"{WORD} is kept.", "system"), keep=1)
    else:
        assert (await sessions.compaction.shrink(ann, session.id, summariser=Quoting())).compacted
    fork = await sessions.fork(ann, session.id)
    await sessions.compact(ann, session.id, say(f"And again: {WORD}.", "system"), keep=0)
    await sessions.erase(ann, session.id, ids[-1])
    assert not await tells(reader, ann)
    for each in (session, fork):
        assert await told(reader, ann, each.id) == [*[FILLER] * 8, ""]
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_a_session_is_restored_to_what_it_was_without_what_was_erased(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session_id, ids = await shrunk(sessions, ann, "My name is Ada.", VAULT)
    (checkpoint,) = await sessions.checkpoints(ann, session_id)
    await sessions.erase(ann, session_id, ids[1])
    await sessions.restore(ann, session_id, checkpoint.id)
    assert await told(reader, ann, session_id) == ["My name is Ada.", "", *[FILLER] * 8, "The end"]
    assert not await leaks(reader, ann, session_id)


WORD = "Xylophagous"


async def titled_in_any_way(sessions: Sessions, who: Principal) -> bool:
    """Whether a list or a search still tells the word as a title."""
    rows = (await sessions.find(who, Filter(archived="include"))).sessions
    told_by = [(session.title, session.earlier_titles) for session in rows]
    return WORD in str(told_by) or bool(await finds(sessions, who, f"title:{WORD}"))


def synced(clock: Clock, title: str, *texts: str) -> tuple[Imported, list[Entry]]:
    """A session of another agent, which gave it this title."""
    given = Imported(
        id="claude:1", source="claude", created_at=clock() - 9, updated_at=clock() - 5, title=title
    )
    return given, [
        Entry(id=f"e{number}", at=clock() - 9, role="user", parts=(Text(text=text),))
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("title", [VAULT, f"About {WORD}"], ids=["the prompt's", "a model's"])
async def test_a_title_that_a_source_gave_goes_with_the_message_that_it_may_be_from(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, title: str
) -> None:
    await sessions.transfer.sync(ann, *synced(clock, title, VAULT, "Something else"))
    assert await titled_in_any_way(reader, ann)
    await sessions.erase(ann, "claude:1", "e0")
    assert not await titled_in_any_way(reader, ann)
    found = await reader.get(ann, "claude:1")
    assert (found.title, found.title_by) == ("Something else", "auto")


async def test_a_title_that_is_a_prompt_that_is_still_there_stays(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    await sessions.transfer.sync(ann, *synced(clock, "Something else", "Something else", VAULT))
    await sessions.erase(ann, "claude:1", "e1")
    found = await reader.get(ann, "claude:1")
    assert (found.title, found.title_by) == ("Something else", "source")


async def test_a_title_that_a_model_gave_goes_with_what_it_may_tell_of(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, watcher = await sessions.create(ann), Watcher()
    engine = Scripted(title=f"How {WORD} opens")
    async with sessions.opened(ann, session.id, engine) as opened:
        outcome = await opened.prompt(prompt(VAULT), emit=watcher)
        await watcher.until(Titled)
    assert await titled_in_any_way(reader, ann)
    await sessions.erase(ann, session.id, outcome.prompt)
    assert not await titled_in_any_way(reader, ann)
    assert (await reader.get(ann, session.id)).title is None


async def test_a_title_that_a_model_finds_while_its_prompt_is_erased_is_not_kept(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    class Slow(Scripted):
        async def title(self, history: tuple[Entry, ...], choices: Choices) -> str | None:  # noqa: ARG002
            await sessions.erase(ann, session.id, history[0].id)
            return f"How {WORD} opens"

    session = await sessions.create(ann)
    async with sessions.opened(ann, session.id, Slow()) as opened:
        await opened.prompt(prompt(VAULT))
    assert is_erased((await reader.history(ann, session.id)).entries[0])
    assert not await titled_in_any_way(reader, ann)


@pytest.mark.parametrize("title", [VAULT, f"About {WORD}"], ids=["the prompt's", "a model's"])
async def test_a_fork_has_no_title_from_what_it_does_not_reach(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, title: str
) -> None:
    await sessions.transfer.sync(ann, *synced(clock, title, "Hello there", VAULT))
    forks = [
        await sessions.fork(ann, "claude:1", at="e0", before=True),
        await sessions.fork(ann, "claude:1", at="e0"),
        await sessions.fork(ann, "claude:1", at="e1"),
        await sessions.fork(ann, "claude:1"),
    ]
    assert [fork.title for fork in forks] == [None, "Hello there", title, title]
    await sessions.erase(ann, "claude:1", "e1")
    assert not await titled_in_any_way(reader, ann)


async def test_a_branch_has_no_title_from_what_it_does_not_reach(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, say("Hello there", "system"))
    await sessions.reset(ann, session.id)
    (last,) = await talk(sessions, ann, session.id, VAULT)
    (checkpoint,) = await sessions.checkpoints(ann, session.id)
    assert (await sessions.branch(ann, session.id, checkpoint.id)).title is None
    await sessions.erase(ann, session.id, last)
    assert not await titled_in_any_way(reader, ann)


async def test_a_person_s_own_title_stays_where_it_is(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "Hello there", VAULT, title="My own")
    fork = await sessions.fork(ann, session.id, at=ids[0], before=True)
    await sessions.erase(ann, session.id, ids[1])
    for each in (session, fork):
        found = await reader.get(ann, each.id)
        assert (found.title, found.title_by) == ("My own", "user")


async def test_a_fork_that_copied_a_title_when_forks_did_loses_it_and_an_innocent_equal_one_stays(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "Hello there", VAULT)
    fork = await sessions.fork(ann, session.id, at=ids[0], before=True)
    same, _ = await started(sessions, ann, VAULT)
    for each in (session, fork):
        await sessions.turns.retitle(ann, each.id, VAULT)
    await sessions.erase(ann, session.id, ids[1])
    titles = [(await reader.get(ann, each.id)).title for each in (session, fork, same)]
    assert titles == ["Hello there", None, VAULT]


async def tells(sessions: Sessions, who: Principal) -> bool:
    """Whether anything that the owner has tells the word: histories, checkpoints, raw copies, titles, facts, the search."""
    ids = [row.id for row in (await sessions.find(who, Filter(archived="include"))).sessions]
    raw = [copy.data for session_id in ids for copy in await sessions.transfer.raw(who, session_id)]
    return (
        any([await leaks(sessions, who, session_id) for session_id in ids])
        or WORD.encode() in b"".join(raw)
        or await titled_in_any_way(sessions, who)
    )


COPY = RawCopy("000", VAULT.encode())


@pytest.mark.parametrize("revived", [False, True])
async def test_what_was_erased_is_left_out_when_its_file_is_read_again(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock, *, revived: bool
) -> None:
    given, entries = synced(clock, VAULT, VAULT, "Something else", "ok", "ok")
    await sessions.transfer.sync(ann, given, entries, raw=[COPY])
    await sessions.erase(ann, "claude:1", "e0")
    await sessions.erase(ann, "claude:1", "e2")
    if revived:
        await sessions.delete(ann, "claude:1")
    for _ in range(2):
        done = await sessions.transfer.sync(ann, given, entries, raw=[COPY], revive=True)
        assert await told(reader, ann, "claude:1") == ["", "Something else", "", "ok"]
        assert not await tells(reader, ann)
    assert not done.appended
    later = replace(entries[0], id="e9", parts=(Text(text="And more"),))
    await sessions.transfer.sync(ann, given, [later], extends=True, raw=[RawCopy("009", b"More")])
    assert await told(reader, ann, "claude:1") == ["", "Something else", "", "ok", "And more"]
    assert (await reader.get(ann, "claude:1")).title == "Something else"
    assert not await tells(reader, ann)


async def test_a_long_file_that_is_read_again_leaves_out_what_was_erased(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, entries = synced(clock, "Hello", VAULT, *["and so on"] * 1_100)
    await sessions.transfer.sync(ann, given, entries)
    await sessions.erase(ann, "claude:1", "e0")
    await sessions.delete(ann, "claude:1")
    await sessions.transfer.sync(ann, given, entries, revive=True)
    assert not await tells(reader, ann)
    assert (await reader.get(ann, "claude:1")).message_count == 1_101


async def test_an_equal_message_of_another_session_stays(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, entries = synced(clock, "Hello", "ok", "fine")
    for name in ("claude:1", "claude:2"):
        await sessions.transfer.sync(ann, replace(given, id=name), entries)
    await sessions.erase(ann, "claude:1", "e0")
    for name in ("claude:1", "claude:2"):
        await sessions.transfer.sync(ann, replace(given, id=name), entries)
    assert await told(reader, ann, "claude:1") == ["", "fine"]
    assert await told(reader, ann, "claude:2") == ["ok", "fine"]


async def test_a_record_without_an_id_is_known_by_what_it_says(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, entries = synced(clock, "Hello", "one", VAULT, "three")
    numbered = [replace(each, id=f"line-{place}") for place, each in enumerate(entries)]
    await sessions.transfer.sync(ann, given, numbered)
    await sessions.erase(ann, "claude:1", "line-1")
    shifted = [replace(each, id=f"line-{place}") for place, each in enumerate(entries[1:])]
    for _ in range(2):
        await sessions.transfer.sync(ann, given, shifted)
        assert await told(reader, ann, "claude:1") == ["", "three"]
        assert not await tells(reader, ann)


async def test_every_form_of_a_record_is_erased(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, (entry,) = synced(clock, "Hello", VAULT)
    await sessions.transfer.sync(ann, given, [entry])
    grown = replace(entry, parts=(Text(text=f"{VAULT} And so on."),))
    await sessions.transfer.sync(ann, given, [grown])
    (shown,) = (await reader.history(ann, "claude:1")).entries
    await sessions.erase(ann, "claude:1", shown.id)
    await sessions.transfer.sync(ann, given, [replace(entry, parts=(Text(text=f"{VAULT} Amen."),))])
    await sessions.transfer.sync(ann, given, [entry])
    assert await told(reader, ann, "claude:1") == [""]
    assert not await tells(reader, ann)


async def test_a_summary_that_an_agent_made_of_what_was_erased_is_not_taken(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, entries = synced(clock, "Hello", VAULT, "and", f"[Summary: {WORD} opens it]", "on")
    await sessions.transfer.sync(ann, given, entries[:2])
    await sessions.erase(ann, "claude:1", "e0")
    for _ in range(2):
        await sessions.transfer.sync(ann, given, entries, compactions=[Summarised(summary="e2")])
        assert not await tells(reader, ann)
        assert await told(reader, ann, "claude:1") == ["", "and", "", "on"]


async def test_what_was_erased_in_a_fork_of_a_deleted_session_stays_away_when_that_is_revived(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    given, entries = synced(clock, "Hello", VAULT, "fine")
    await sessions.transfer.sync(ann, given, entries)
    fork = await sessions.fork(ann, "claude:1")
    await sessions.delete(ann, "claude:1")
    await sessions.erase(ann, fork.id, "e0")
    await sessions.transfer.sync(ann, given, entries, revive=True)
    assert await told(reader, ann, "claude:1") == ["", "fine"]
    assert not await tells(reader, ann)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("trusted", [False, True])
async def test_what_was_erased_or_deleted_does_not_come_back_from_an_export(
    sessions: Sessions, reader: Sessions, ann: Principal, *, fresh: bool, trusted: bool
) -> None:
    session_id, ids = await shrunk(sessions, ann, VAULT, "My name is Ada.")
    fork = await sessions.fork(ann, session_id)
    await talk(sessions, ann, fork.id, "And more")
    files = [await exported(sessions, ann, each) for each in (session_id, fork.id)]
    assert any(WORD.encode() in line for line in files[0])
    await sessions.erase(ann, session_id, ids[0])
    await sessions.delete(ann, fork.id)
    await sessions.delete(ann, session_id)
    for lines in files:
        with pytest.raises(SessionDeleted, match="--include-deleted"):
            await sessions.import_(ann, lines, new_id=fresh, trusted=trusted)
        made = await sessions.import_(ann, lines, new_id=fresh, trusted=trusted, include_deleted=True)
        assert (await reader.get(ann, made.id)).message_count > 2
        assert not await tells(reader, ann)
    assert (await reader.admin.check(repair=False)).problems == ()


@pytest.mark.parametrize("says_it_too", [False, True])
async def test_a_title_made_from_what_was_erased_comes_back_only_with_a_prompt_that_gives_it(
    sessions: Sessions, reader: Sessions, ann: Principal, *, says_it_too: bool
) -> None:
    erased = (await started(sessions, ann, VAULT))[0].id
    others = (await started(sessions, ann, "Hello"))[0].id
    if says_it_too:
        await sessions.append(ann, others, say(VAULT))
    title = (await reader.get(ann, erased)).title
    assert title is not None
    await sessions.rename(ann, others, title)
    head, *rest = await exported(sessions, ann, others)
    lines = [head.replace(b'"title_by":"user"', b'"title_by":"auto"'), *rest]
    assert lines[0] != head

    (message,) = (await reader.history(ann, erased)).entries
    await sessions.erase(ann, erased, message.id)
    made = await sessions.import_(ann, lines, new_id=True)
    assert (await reader.get(ann, made.id)).title == (title if says_it_too else None)


class UncleanStore:
    """A store that cannot clean up, as with a disk that fails just then."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def clean(self, *, thoroughly: bool = False) -> None:
        raise StoreUnavailable(f"the disk failed (thoroughly: {thoroughly})")

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


async def test_what_is_erased_deleted_or_pruned_is_done_also_if_cleaning_up_behind_it_fails(
    store: Store, ann: Principal, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = Sessions(UncleanStore(store), now=clock)  # type: ignore[arg-type]
    session, ids = await started(sessions, ann, VAULT, "Afterwards")

    await sessions.erase(ann, session.id, ids[0])
    assert await told(sessions, ann, session.id) == ["", "Afterwards"]
    await sessions.delete(ann, session.id)
    await started(sessions, ann, VAULT)
    (pruned,) = await sessions.admin.prune(ann, Policy(keep_newest=0, delete=True), dry_run=False)
    assert pruned.reason == "count"
    assert (await sessions.find(ann)).sessions == ()

    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert "the disk failed" in caplog.text
    assert "Xylophagous" not in caplog.text
