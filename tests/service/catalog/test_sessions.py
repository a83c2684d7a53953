"""Making, naming, tagging, moving and deleting sessions."""

from __future__ import annotations

import pytest

from hitherto.errors import (
    AlreadyExists,
    AmbiguousId,
    IdempotencyConflict,
    InvalidInput,
    RevisionConflict,
    SessionNotFound,
)
from hitherto.limits import EARLIER_TITLES
from hitherto.model import Filter, Identity, Principal, Session
from hitherto.service import Sessions
from tests.support.conversations import listed, said, say, started, talk, told
from tests.support.homes import Clock
from tests.support.scripted_engine import Scripted, ask_once


async def test_a_new_session_is_read_back_with_everything_it_was_made_with(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    identity = Identity(role="owner", identity_id="u-1", source_channel="irc")
    made = await sessions.create(
        ann,
        cwd="/srv//project/./src/..",
        title=" A  title\nin two lines ",
        tags=["b", "a", "b"],
        additional_directories=["/lib/", "/etc"],
        key="agent:coder:main",
        agent_id="coder",
        channel="irc",
        identity=identity,
        meta={"depth": [1, {"deep": None}], "text": "\ud800\0"},
        session_id="mine",
    )
    assert made == Session(
        id="mine",
        revision=1,
        created_at=clock.now,
        updated_at=clock.now,
        cwd="/srv/project",
        additional_directories=("/lib", "/etc"),
        title="A title in two lines",
        title_by="user",
        tags=("a", "b"),
        key="agent:coder:main",
        agent_id="coder",
        channel="irc",
        identity=identity,
        meta={"depth": [1, {"deep": None}], "text": "\ud800\0"},
    )
    assert await reader.get(ann, "mine") == made
    assert await reader.get_by_key(ann, "agent:coder:main") == made


async def test_what_is_not_known_of_a_new_session_is_none(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    made = await sessions.create(ann)
    found = await reader.get(ann, made.id)
    assert found == made
    assert (found.cwd, found.title, found.title_by, found.key, found.agent_id) == (None,) * 5
    assert (found.token_count, found.cost, found.last_compaction, found.read_at) == (None,) * 4
    assert (found.message_count, found.error_count, found.bytes) == (0, 0, 0)


async def test_a_blank_title_is_no_title_of_the_user(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    made = await sessions.create(ann, title=" \n ")
    assert (made.title, made.title_by) == (None, None)
    await sessions.append(ann, made.id, say("Mend the roof"))
    found = await reader.get(ann, made.id)
    assert (found.title, found.title_by) == ("Mend the roof", "auto")


async def test_an_id_or_a_key_that_is_taken_is_refused(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    await sessions.create(ann, session_id="one", key="k")
    with pytest.raises(AlreadyExists):
        await other.create(ann, session_id="one")
    with pytest.raises(AlreadyExists):
        await other.create(ann, session_id="two", key="k")
    assert await sessions.count(ann) == 1


async def test_two_owners_may_use_the_same_id_and_key(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    await sessions.create(ann, session_id="one", key="k", title="Ann's")
    await sessions.create(bob, session_id="one", key="k", title="Bob's")
    assert (await reader.get(ann, "one")).title == "Ann's"
    assert (await reader.get_by_key(bob, "k")).title == "Bob's"


async def test_the_same_idempotency_key_makes_one_session(
    sessions: Sessions, other: Sessions, ann: Principal, bob: Principal, clock: Clock
) -> None:
    first = await sessions.create(ann, title="Once", idempotency_key="abc")
    clock.advance()
    assert await other.create(ann, title="Once", idempotency_key="abc") == first
    with pytest.raises(IdempotencyConflict):
        await other.create(ann, title="Twice", idempotency_key="abc")
    foreign = await other.create(bob, title="Twice", idempotency_key="abc")
    assert foreign.title == "Twice"
    assert await listed(sessions, ann) == [first.id]


async def test_a_unique_beginning_of_an_id_is_enough(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    for session_id in ("abc", "abcd", "ab_", "b%"):
        await sessions.create(ann, session_id=session_id)
    await sessions.create(bob, session_id="b%2")
    assert await reader.resolve(ann, "abcd") == "abcd"
    assert await reader.resolve(ann, "abc") == "abc"
    assert await reader.resolve(ann, "ab_") == "ab_"
    assert await reader.resolve(ann, "b") == "b%"
    with pytest.raises(AmbiguousId) as caught:
        await reader.resolve(ann, "ab")
    assert caught.value.some == ["ab_", "abc", "abcd"]
    for nothing in ("", "%", "_", "ab__", "B", "abcde", "\0"):
        with pytest.raises(SessionNotFound):
            await reader.resolve(ann, nothing)


async def test_a_rename_is_kept_with_the_titles_before_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="First")
    for title in ("Second", "Third", "Second"):
        await sessions.rename(ann, session.id, title)
    found = await reader.get(ann, session.id)
    assert (found.title, found.title_by) == ("Second", "user")
    assert found.earlier_titles == ("First", "Third")
    assert found.revision == session.revision + 3


async def test_taking_the_title_away_remembers_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="First")
    await sessions.rename(ann, session.id, None)
    found = await reader.get(ann, session.id)
    assert (found.title, found.title_by, found.earlier_titles) == (None, None, ("First",))


async def test_only_so_many_earlier_titles_are_kept(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Title 0")
    for number in range(1, EARLIER_TITLES + 5):
        await sessions.rename(ann, session.id, f"Title {number}")
    found = await reader.get(ann, session.id)
    assert found.earlier_titles == tuple(f"Title {number}" for number in range(4, EARLIER_TITLES + 4))


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Please fix the login page", "Please fix the login page"),
        ("<environment_context>\n<cwd>/srv</cwd>\n</environment_context>", None),
        ("/clear", None),
        ("<system-reminder>be brief</system-reminder>\nCount the cats", "Count the cats"),
        ("...", None),
    ],
)
async def test_the_first_meaningful_prompt_becomes_the_title(
    sessions: Sessions, reader: Sessions, ann: Principal, prompt: str, title: str | None
) -> None:
    session, _ = await started(sessions, ann, prompt)
    assert (await reader.get(ann, session.id)).title == title
    await talk(sessions, ann, session.id, "A later prompt")
    found = await reader.get(ann, session.id)
    assert (found.title, found.title_by) == (title or "A later prompt", "auto")


async def test_only_a_user_s_words_become_a_title(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, [say("I am a machine", "assistant"), say("Rules", "system")])
    assert (await reader.get(ann, session.id)).title is None


async def test_an_automatic_title_never_replaces_the_user_s(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    named = await sessions.create(ann, title="Mine")
    await talk(sessions, ann, named.id, "Something else entirely")
    renamed, _ = await started(sessions, ann, "An automatic title")
    await sessions.rename(ann, renamed.id, "Mine too")
    await talk(sessions, ann, renamed.id, "Something else entirely")
    assert (await reader.get(ann, named.id)).title == "Mine"
    found = await reader.get(ann, renamed.id)
    assert (found.title, found.title_by) == ("Mine too", "user")
    assert found.earlier_titles == ("An automatic title",)


async def test_tags_are_added_and_removed_each_once(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, tags=["keep", "drop"])
    await sessions.tag(ann, session.id, add=["new", "keep"], remove=["drop", "never there"])
    found = await reader.get(ann, session.id)
    assert found.tags == ("keep", "new")
    assert found.revision == 2
    assert await listed(reader, ann, Filter(tags=("new",))) == [session.id]
    assert await listed(reader, ann, Filter(tags=("drop",))) == []


async def test_every_edit_raises_the_revision_once_and_leaves_the_time_of_activity(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann)
    clock.advance()
    await sessions.rename(ann, session.id, "Named")
    await sessions.tag(ann, session.id, add=["t"])
    await sessions.archive(ann, session.id)
    await sessions.pin(ann, session.id)
    await sessions.catalog.set_status(ann, session.id, "running")
    await sessions.set_meta(ann, session.id, {"a": 1})
    await sessions.move(ann, session.id, "/new/")
    found = await reader.get(ann, session.id)
    assert found.revision == 8
    assert found.updated_at == session.updated_at
    assert (found.title, found.tags, found.archived, found.pinned) == ("Named", ("t",), True, True)
    assert (found.status, found.meta, found.cwd) == ("running", {"a": 1}, "/new")


async def test_an_edit_that_changes_nothing_writes_nothing(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Same", tags=["t"], cwd="/same")
    before = await reader.changes.newest(ann)
    await sessions.rename(ann, session.id, "Same")
    await sessions.tag(ann, session.id, add=["t"], remove=["u"])
    await sessions.archive(ann, session.id, archived=False)
    await sessions.pin(ann, session.id, pinned=False)
    await sessions.catalog.set_status(ann, session.id, "idle")
    await sessions.set_meta(ann, session.id, {"gone": None})
    await sessions.move(ann, session.id, "/same/")
    assert await reader.get(ann, session.id) == session
    assert await reader.changes.newest(ann) == before


async def test_archive_and_pin_can_be_taken_back(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann)
    await sessions.archive(ann, session.id)
    await sessions.pin(ann, session.id)
    await sessions.archive(ann, session.id, archived=False)
    await sessions.pin(ann, session.id, pinned=False)
    found = await reader.get(ann, session.id)
    assert (found.archived, found.pinned) == (False, False)


async def test_metadata_is_merged_key_by_key(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann, meta={"keep": 1, "drop": 2, "change": {"a": 1}})
    await sessions.set_meta(ann, session.id, {"drop": None, "change": {"b": 2}, "add": "ü"})
    assert (await reader.get(ann, session.id)).meta == {"keep": 1, "change": {"b": 2}, "add": "ü"}


async def test_changing_an_answer_or_an_argument_afterwards_changes_nothing_kept(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    given: dict[str, object] = {"list": [1]}
    session = await sessions.create(ann, meta=given)
    given["late"] = True
    session.meta["later"] = True
    (await reader.get(ann, session.id)).meta["latest"] = True
    assert (await reader.get(ann, session.id)).meta == {"list": [1]}


async def test_an_expected_revision_guards_an_edit(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Old")
    await sessions.rename(ann, session.id, "New", expected_revision=1)
    with pytest.raises(RevisionConflict) as caught:
        await other.rename(ann, session.id, "Newer", expected_revision=1)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    with pytest.raises(RevisionConflict):
        await other.tag(ann, session.id, add=["t"], expected_revision=1)
    found = await other.get(ann, session.id)
    assert (found.title, found.tags, found.revision) == ("New", (), 2)


async def test_a_moved_folder_takes_its_sessions_along(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    inside = [(await sessions.create(ann, cwd="/old")).id for _ in range(3)]
    await sessions.archive(ann, inside[0])
    below = await sessions.create(ann, cwd="/old/below")
    foreign = await sessions.create(bob, cwd="/old")
    assert await sessions.catalog.move_folder(ann, "/old/", "/new") == 3
    found = await listed(reader, ann, Filter(cwd="/new", archived="include"))
    assert sorted(found) == sorted(inside)
    assert (await reader.get(ann, below.id)).cwd == "/old/below"
    assert (await reader.get(bob, foreign.id)).cwd == "/old"
    assert await sessions.catalog.move_folder(ann, "/new", "/new/") == 0


async def test_a_deleted_session_is_gone_at_once(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "One", "Two", "Three", key="k", tags=["t"])
    kept, _ = await started(sessions, ann, "Kept")
    assert await sessions.delete(ann, session.id) == 3
    with pytest.raises(SessionNotFound):
        await reader.get(ann, session.id)
    with pytest.raises(SessionNotFound):
        await reader.get_by_key(ann, "k")
    with pytest.raises(SessionNotFound):
        await reader.history(ann, session.id)
    with pytest.raises(SessionNotFound):
        await sessions.delete(ann, session.id)
    assert await listed(reader, ann, Filter(archived="include")) == [kept.id]
    assert await reader.count(ann) == 1
    assert (await reader.admin.check(repair=False)).problems == ()


async def test_after_a_deletion_the_id_and_the_key_are_free_again(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await started(sessions, ann, "Secret", session_id="one", key="k", title="Old", tags=["t"])
    await sessions.transfer.keep_raw(ann, "one", "file", b"bytes")
    await sessions.changes.put_live(ann, "one", b"partial")
    await sessions.delete(ann, "one")
    await sessions.create(ann, session_id="one", key="k")
    found = await reader.get_by_key(ann, "k")
    assert (found.id, found.revision, found.title, found.tags, found.message_count) == ("one", 1, None, (), 0)
    assert await told(reader, ann, "one") == []
    assert await reader.transfer.raw(ann, "one") == []
    assert await reader.changes.live(ann, "one") is None
    assert [(change.session, change.kind) for change in await reader.changes.since(ann)] == [
        ("one", "create")
    ]


async def test_renames_through_two_connections_each_count_once(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Start")
    for number in range(10):
        await (sessions if number % 2 else other).rename(ann, session.id, f"Title {number}")
        await (other if number % 2 else sessions).tag(ann, session.id, add=[f"tag{number}"])
    assert (await sessions.get(ann, session.id)).revision == 21
    assert await sessions.get(ann, session.id) == await other.get(ann, session.id)


async def test_an_unknown_status_is_refused(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    with pytest.raises(InvalidInput):
        await sessions.catalog.set_status(ann, session.id, "sleeping")  # type: ignore[arg-type]
    assert (await sessions.get(ann, session.id)).revision == 1


async def test_the_history_of_a_deleted_session_s_namesake_is_its_own(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await started(sessions, ann, "Before", session_id="one")
    await sessions.delete(ann, "one")
    await started(sessions, ann, "After", session_id="one")
    assert said(await reader.history(ann, "one")) == ["After"]


@pytest.mark.parametrize("how", ["append", "prompt"])
async def test_an_archived_session_comes_back_when_somebody_goes_on_in_it(
    sessions: Sessions, reader: Sessions, ann: Principal, how: str
) -> None:
    session, _ = await started(sessions, ann, "one")
    await sessions.archive(ann, session.id)
    assert await listed(reader, ann) == []
    if how == "append":
        await sessions.append(ann, session.id, say("two"))
    else:
        await ask_once(sessions, ann, session.id, Scripted(), "two")
    assert await listed(reader, ann) == [session.id]
    assert not (await reader.get(ann, session.id)).archived
