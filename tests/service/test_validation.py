"""Wrong input: a typed error with a stable code, and nothing written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from hitherto.errors import (
    AlreadyExists,
    HithertoError,
    InvalidCursor,
    InvalidInput,
    InvalidLimit,
    TooLarge,
)
from hitherto.limits import (
    CHANGES_PAGE,
    CWD_CHARS,
    DIRECTORIES,
    ENTRY_BYTES,
    FACT_CHARS,
    FACTS_PER_CALL,
    HISTORY_PAGE,
    LIST_PAGE,
    LIVE_BYTES,
    META_BYTES,
    NAME_CHARS,
    RAW_BYTES,
    SEARCH_PAGE,
    TAG_CHARS,
    TAGS,
    TITLE_CHARS,
)
from hitherto.model import Draft, Fact, Filter, Identity, Principal, Text, Usage
from hitherto.service import Sessions
from hitherto.stores import connector
from hitherto.values.days import DAY_MS
from tests.service.test_isolation import BY_ID
from tests.support.conversations import everything, exported, say, started, talk, told
from tests.support.homes import Clock, Home

Call = Callable[[Sessions, Principal], Awaitable[Any]]

IDS = [
    "nowhere",
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "x" * 100_000,
    "../../etc/passwd",
    "%",
    "'; drop table",
    "mine ",
]
NO_IDS: list[Any] = [None, 7, b"mine", True]
FOLDERS = ["", "relative", "./here", "~", "~/x", "C:\\x", " /x", "\0", "/a\0b", "/" + "x" * CWD_CHARS]
LARGE = 2**70


@pytest.mark.parametrize("session_id", [*IDS, *NO_IDS], ids=lambda value: ascii(value)[:20])
async def test_an_id_that_is_no_session_s_is_not_found_by_any_method(
    sessions: Sessions, ann: Principal, session_id: Any
) -> None:
    await started(sessions, ann, "Here", session_id="mine", key="mine")
    before = await everything(sessions, ann)
    for name, call in BY_ID.items():
        if name in ("memory.facts", "memory.add", "memory.note", "channels.begin") and session_id is None:
            continue  # no session is meant
        with pytest.raises(HithertoError) as caught:
            await call(sessions, ann, session_id)
        assert caught.value.code == "session_not_found", name
    assert await everything(sessions, ann) == before


@pytest.mark.parametrize("cwd", FOLDERS, ids=lambda value: ascii(value)[:20])
async def test_a_folder_must_be_an_absolute_path(sessions: Sessions, ann: Principal, cwd: str) -> None:
    session, _ = await started(sessions, ann, "Here")
    before = await everything(sessions, ann)
    for call in (
        sessions.create(ann, cwd=cwd),
        sessions.create(ann, additional_directories=[cwd]),
        sessions.move(ann, session.id, cwd),
        sessions.catalog.move_folder(ann, cwd, "/new"),
        sessions.catalog.move_folder(ann, "/old", cwd),
        sessions.fork(ann, session.id, cwd=cwd),
        sessions.find(ann, Filter(cwd=cwd)),
        sessions.count(ann, Filter(cwd=cwd)),
    ):
        with pytest.raises(InvalidInput) as caught:
            await call
        assert caught.value.code == ("too_large" if len(cwd) > CWD_CHARS else "invalid_cwd")
    assert await everything(sessions, ann) == before


WRONG: dict[str, tuple[Call, str]] = {
    "an owner without a name": (lambda s, _: s.create(Principal(owner="")), "invalid_input"),
    "an owner with NUL": (lambda s, _: s.find(Principal(owner="a\0")), "invalid_input"),
    "an owner with a surrogate": (lambda s, _: s.statistics.stats(Principal(owner="\ud800")), "invalid_input"),
    "an endless owner": (lambda s, _: s.changes.since(Principal(owner="x" * 10_000)), "invalid_input"),
    "an empty id": (lambda s, who: s.create(who, session_id=""), "invalid_input"),
    "an id with NUL": (lambda s, who: s.create(who, session_id="a\0"), "invalid_input"),
    "a message of another day to come": (lambda s, who: s.append(who, "mine", Draft(role="user", at=s.core.now() + 86_400_001)), "invalid_input"),
    "a message at a time in microseconds": (lambda s, who: s.append(who, "mine", Draft(role="user", at=s.core.now() * 1_000)), "invalid_input"),
    "an id with a surrogate": (lambda s, who: s.create(who, session_id="\udfff"), "invalid_input"),
    "an endless id": (lambda s, who: s.create(who, session_id="x" * (NAME_CHARS + 1)), "too_large"),
    "an empty key": (lambda s, who: s.create(who, key=""), "invalid_input"),
    "a key with NUL": (lambda s, who: s.create(who, key="\0"), "invalid_input"),
    "an agent with NUL": (lambda s, who: s.create(who, agent_id="\0"), "invalid_input"),
    "a project with NUL": (lambda s, who: s.create(who, project="\0"), "invalid_input"),
    "an endless branch": (lambda s, who: s.create(who, branch="x" * (NAME_CHARS + 1)), "too_large"),
    "an empty project": (lambda s, who: s.projects.assign(who, "mine", ""), "invalid_input"),
    "a filter with NUL in its project": (lambda s, who: s.find(who, Filter(project="\0")), "invalid_input"),
    "a day that is none": (lambda s, who: s.find(who, Filter(day="2025-02-30")), "invalid_input"),
    "a day that is no text": (lambda s, who: s.count(who, Filter(day=7)), "invalid_input"),  # type: ignore[arg-type]
    "an overview backwards": (
        lambda s, who: s.statistics.overview(who, since_day="2025-06-02", until_day="2025-06-01"),
        "invalid_input",
    ),
    "an overview without end": (
        lambda s, who: s.statistics.overview(who, since_day="0001-01-01", until_day="9999-12-31"),
        "invalid_input",
    ),
    "a channel with a surrogate": (lambda s, who: s.create(who, channel="\ud800"), "invalid_input"),
    "an identity with NUL": (lambda s, who: s.create(who, identity=Identity(role="\0")), "invalid_input"),
    "an endless title": (lambda s, who: s.create(who, title="x" * (TITLE_CHARS + 1)), "too_large"),
    "another endless title": (lambda s, who: s.rename(who, "mine", "x" * (TITLE_CHARS + 1)), "too_large"),
    "a title of a fork": (lambda s, who: s.fork(who, "mine", title="x" * (TITLE_CHARS + 1)), "too_large"),
    "a title that is no text": (lambda s, who: s.rename(who, "mine", 7), "invalid_input"),  # type: ignore[arg-type]
    "an empty tag": (lambda s, who: s.create(who, tags=[""]), "invalid_input"),
    "a blank tag": (lambda s, who: s.tag(who, "mine", add=[" "]), "invalid_input"),
    "a tag with spaces around": (lambda s, who: s.tag(who, "mine", add=[" t"]), "invalid_input"),
    "a tag with NUL": (lambda s, who: s.tag(who, "mine", add=["\0"]), "invalid_input"),
    "an endless tag": (lambda s, who: s.tag(who, "mine", add=["x" * (TAG_CHARS + 1)]), "too_large"),
    "too many tags": (lambda s, who: s.tag(who, "mine", add=[f"t{n}" for n in range(TAGS + 1)]), "too_large"),
    "tags in one text": (lambda s, who: s.create(who, tags="tags"), "invalid_input"),
    "added tags in one text": (lambda s, who: s.tag(who, "mine", add="tags"), "invalid_input"),
    "too many folders": (
        lambda s, who: s.create(who, additional_directories=["/a"] * (DIRECTORIES + 1)), "too_large"
    ),
    "metadata beyond the limit": (lambda s, who: s.create(who, meta={"x": "x" * META_BYTES}), "too_large"),
    "merged metadata beyond it": (lambda s, who: s.set_meta(who, "mine", {"x": "x" * META_BYTES}), "too_large"),
    "metadata that is no JSON": (lambda s, who: s.create(who, meta={"x": object()}), "invalid_input"),
    "merged metadata that is none": (lambda s, who: s.set_meta(who, "mine", {"x": {1, (2,)}.__iter__()}), "invalid_input"),
    "an empty idempotency key": (lambda s, who: s.create(who, idempotency_key=""), "invalid_input"),
    "one with NUL": (lambda s, who: s.append(who, "mine", say("x"), idempotency_key="\0"), "invalid_input"),
    "no message": (lambda s, who: s.append(who, "mine", []), "invalid_input"),
    "a message that is none": (lambda s, who: s.append(who, "mine", ["x"]), "invalid_input"),  # type: ignore[list-item]
    "a message with an odd id": (lambda s, who: s.append(who, "mine", say("x", id="\0")), "invalid_input"),
    "a message with an empty id": (lambda s, who: s.append(who, "mine", say("x", id="")), "invalid_input"),
    "a message of no JSON": (lambda s, who: s.append(who, "mine", say("x", meta={"x": object()})), "invalid_input"),
    "the same with a key": (
        lambda s, who: s.append(who, "mine", say("x", meta={"x": object()}), idempotency_key="k"), "invalid_input"
    ),
    "a message from beyond time": (lambda s, who: s.append(who, "mine", say("x", at=LARGE)), "invalid_input"),
    "negative tokens": (lambda s, who: s.append(who, "mine", say("x", tokens=-1)), "invalid_input"),
    "endless tokens": (lambda s, who: s.append(who, "mine", say("x", tokens=LARGE)), "invalid_input"),
    "endless cost": (lambda s, who: s.append(who, "mine", say("x", usage=Usage(cost=float("inf")))), "invalid_input"),
    "no cost": (lambda s, who: s.append(who, "mine", say("x", usage=Usage(cost=float("nan")))), "invalid_input"),
    "negative cost": (lambda s, who: s.append(who, "mine", say("x", usage=Usage(cost=-1.0))), "invalid_input"),
    "a holder without a name": (lambda s, who: s.leases.acquire(who, "mine", ""), "invalid_input"),
    "a holder with NUL": (lambda s, who: s.leases.acquire(who, "mine", "\0"), "invalid_input"),
    "no holder": (lambda s, who: s.leases.acquire(who, "mine", None), "invalid_input"),  # type: ignore[arg-type]
    "a status of its own": (lambda s, who: s.find(who, Filter(status="odd")), "invalid_input"),  # type: ignore[arg-type]
    "archived in between": (lambda s, who: s.find(who, Filter(archived="odd")), "invalid_input"),  # type: ignore[arg-type]
    "an agent with NUL to find": (lambda s, who: s.find(who, Filter(agent_id="\0")), "invalid_input"),
    "a channel with a surrogate to find": (lambda s, who: s.count(who, Filter(channel="\ud800")), "invalid_input"),
    "a source with NUL to find": (lambda s, who: s.find(who, Filter(source="\0")), "invalid_input"),
    "a tag with NUL to find": (lambda s, who: s.find(who, Filter(tags=("\0",))), "invalid_input"),
    "a tag with a surrogate to search": (lambda s, who: s.search(who, "x", given=Filter(tags=("\ud800",))), "invalid_input"),
    "a bound beyond time": (lambda s, who: s.find(who, Filter(updated_after=LARGE)), "invalid_input"),
    "a negative one": (lambda s, who: s.count(who, Filter(created_before=-LARGE)), "invalid_input"),
    "a position beyond all": (lambda s, who: s.changes.since(who, after=str(LARGE) + "0"), "invalid_input"),
    "a position with too many lanes": (lambda s, who: s.changes.since(who, after=".".join("1" * 65)), "invalid_input"),
    "a position that is none": (lambda s, who: s.changes.since(who, after="1.x"), "invalid_input"),
    "a number for a position": (lambda s, who: s.changes.since(who, after=cast("str", 1)), "invalid_input"),
    "no position to wait for": (lambda s, who: s.changes.wait(who, after="", seconds=0.0), "invalid_input"),
    "a fact without an id": (lambda s, who: s.memory.add(who, [Fact(id="", at=1, text="t")]), "invalid_input"),
    "a fact with an odd id": (lambda s, who: s.memory.add(who, [Fact(id="\0", at=1, text="t")]), "invalid_input"),
    "a fact from beyond time": (lambda s, who: s.memory.add(who, [Fact(id="f", at=LARGE, text="t")]), "invalid_input"),
    "a raw copy without a name": (lambda s, who: s.transfer.keep_raw(who, "mine", "", b""), "invalid_input"),
    "a raw copy with an odd name": (lambda s, who: s.transfer.keep_raw(who, "mine", "\0", b""), "invalid_input"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_wrong_input_is_refused_with_its_code(sessions: Sessions, ann: Principal, name: str) -> None:
    await started(sessions, ann, "Here", session_id="mine")
    before = await everything(sessions, ann)
    call, code = WRONG[name]
    with pytest.raises(HithertoError) as caught:
        await call(sessions, ann)
    assert caught.value.code == code
    assert await everything(sessions, ann) == before
    await talk(sessions, ann, "mine", "Still usable")


LIMITS: dict[str, tuple[Callable[[Sessions, Principal, Any], Awaitable[Any]], int]] = {
    "find": (lambda s, who, limit: s.find(who, limit=limit), LIST_PAGE),
    "history": (lambda s, who, limit: s.history(who, "mine", limit=limit), HISTORY_PAGE),
    "search": (lambda s, who, limit: s.search(who, "here", limit=limit), SEARCH_PAGE),
    "search without words": (lambda s, who, limit: s.search(who, "", limit=limit), SEARCH_PAGE),
    "changes": (lambda s, who, limit: s.changes.since(who, limit=limit), CHANGES_PAGE),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_a_limit_is_between_one_and_the_published_maximum(
    sessions: Sessions, ann: Principal, name: str
) -> None:
    await started(sessions, ann, "Here", session_id="mine")
    call, most = LIMITS[name]
    await sessions.history(ann, "mine")
    before = await everything(sessions, ann)
    for limit in (0, -1, -LARGE, most + 1, LARGE, True, 1.5, "5", None):
        with pytest.raises(InvalidLimit) as caught:
            await call(sessions, ann, limit)
        assert caught.value.code == "invalid_limit"
    await call(sessions, ann, 1)
    await call(sessions, ann, most)
    assert await everything(sessions, ann) == before


def test_the_published_limits_are_these() -> None:
    assert (LIST_PAGE, HISTORY_PAGE, ENTRY_BYTES) == (500, 10_000, 16 * 1024 * 1024)


async def test_an_entry_over_the_limit_is_refused_and_one_at_the_limit_is_kept(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "Here")
    empty = Draft(role="user", parts=(Text(text=""),), id="e", at=1)
    await sessions.append(ann, session.id, empty)
    around = len((await sessions.history(ann, session.id, last=True, limit=1)).raw[0])
    before = await everything(sessions, ann)
    room = ENTRY_BYTES - around
    for large in (say("x" * (room + 1), id="f", at=1), say("é" * (room // 2 + 1), id="f", at=1)):
        with pytest.raises(TooLarge) as caught:
            await sessions.append(ann, session.id, [say("Small"), large])
        assert caught.value.code == "too_large"
        with pytest.raises(TooLarge):
            await sessions.compact(ann, session.id, large)
    assert await everything(sessions, ann) == before
    await sessions.append(ann, session.id, say("x" * room, id="f", at=1))
    (kept,) = (await other.history(ann, session.id, last=True, limit=1)).raw
    assert len(kept) == ENTRY_BYTES


async def cursors(sessions: Sessions, who: Principal) -> tuple[str, str]:
    """A cursor of a list and one of a search."""
    for number in range(3):
        await started(sessions, who, "needle", session_id=f"s{number}", title="T")
    page, found = await sessions.find(who, limit=1), await sessions.search(who, "needle", limit=1)
    assert page.cursor is not None
    assert found.cursor is not None
    return page.cursor, found.cursor


async def refused(call: Awaitable[object]) -> None:
    with pytest.raises(InvalidCursor) as caught:
        await call
    assert caught.value.code == "invalid_cursor"


def spoiled(cursor: str) -> list[str]:
    """The cursor with each single character changed, cut off at every length, and otherwise not as it was."""
    changed = [
        cursor[:at] + other + cursor[at + 1 :]
        for at, old in enumerate(cursor)
        for other in "AB._-=\0é"
        if other != old
    ]
    cut = [cursor[:at] for at in range(len(cursor))]
    return [
        *changed,
        *cut,
        cursor + "A",
        cursor + "=",
        cursor + "\n",
        f" {cursor}",
        cursor * 2,
        "x" * 100_000,
        ".",
    ]


async def test_a_cursor_with_any_character_changed_is_refused(sessions: Sessions, ann: Principal) -> None:
    page, found = await cursors(sessions, ann)
    for bad in spoiled(page):
        await refused(sessions.find(ann, cursor=bad))
    for bad in spoiled(found):
        await refused(sessions.search(ann, "needle", cursor=bad))
    for odd in (7, b"x", ["x"], "\ud800"):
        await refused(sessions.find(ann, cursor=odd))  # type: ignore[arg-type]


async def test_a_cursor_is_good_for_its_owner_its_question_and_its_method_only(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    page, found = await cursors(sessions, ann)
    await cursors(sessions, bob)
    await refused(reader.find(bob, cursor=page))
    await refused(reader.search(bob, "needle", cursor=found))
    for given in (
        Filter(archived="include"),
        Filter(tags=("t",)),
        Filter(cwd="/"),
        Filter(text="T"),
        Filter(pinned=False),
    ):
        await refused(reader.find(ann, given, cursor=page))
        await refused(
            reader.search(ann, "needle", given=given, cursor=found)
        ) if given.archived == "exclude" else None
    await refused(reader.search(ann, "needles", cursor=found))
    await refused(reader.search(ann, "needle", cursor=page))
    await refused(reader.find(ann, cursor=found))
    await refused(reader.search(ann, "", cursor=found))
    assert len((await reader.find(ann, Filter(), cursor=page, limit=500)).sessions) == 2
    assert len((await reader.search(ann, "needle", cursor=found, limit=100)).hits) == 2


async def test_a_cursor_of_another_store_is_refused(
    homes: Callable[[], Home], ann: Principal, clock: Clock
) -> None:
    one, two = homes(), homes()
    async with connector(one.url)(one.url, clock) as first, connector(two.url)(two.url, clock) as second:
        page, found = await cursors(Sessions(first, now=clock), ann)
        await cursors(Sessions(second, now=clock), ann)
        await refused(Sessions(second, now=clock).find(ann, cursor=page))
        await refused(Sessions(second, now=clock).search(ann, "needle", cursor=found))


async def test_a_cursor_does_not_grow_old(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    page, found = await cursors(sessions, ann)
    clock.advance(10 * 365 * DAY_MS)
    assert len((await reader.find(ann, cursor=page)).sessions) == 2
    assert len((await reader.search(ann, "needle", cursor=found)).hits) == 2


async def test_titles_and_tags_are_kept_clean(sessions: Sessions, reader: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann, title="a\0b\x1b[31m\u202ec\ud800d\ne")
    assert (await reader.get(ann, session.id)).title == "a bc d e"
    tagged = await sessions.tag(ann, session.id, add=["émoji 😀", "'quoted'", "a,b", "%_"])
    assert (await reader.get(ann, session.id)).tags == tagged.tags
    assert tagged.tags == tuple(sorted(["émoji 😀", "'quoted'", "a,b", "%_"]))


async def test_an_error_in_the_middle_of_a_call_takes_all_of_it_back(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a", "b")
    lines = await exported(sessions, ann, session.id)
    before = await everything(reader, ann)
    beyond = [
        lines[0].replace(b'"spans":[[1,2', b'"spans":[[1,9').replace(b"00000001", b"0000000f"),
        *lines[1:],
    ]
    assert beyond[0] != lines[0]
    with pytest.raises(InvalidInput, match="spans"):
        await sessions.import_(ann, beyond)
    with pytest.raises(AlreadyExists):
        await sessions.append(ann, session.id, [say("c", id="new"), say("d", id="new")])
    with pytest.raises(InvalidInput):
        await sessions.fork(ann, session.id, cwd="relative")
    assert await everything(reader, ann) == before
    assert await told(reader, ann, session.id) == ["a", "b"]


async def test_what_is_kept_beside_a_session_has_its_limits(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    before = await sessions.changes.newest(ann)
    fact = Fact(id="f", at=1, text="x")
    calls = (
        sessions.changes.put_live(ann, session.id, bytes(LIVE_BYTES + 1)),
        sessions.transfer.keep_raw(ann, session.id, "name", bytes(RAW_BYTES + 1)),
        sessions.memory.add(ann, [replace(fact, text="x" * (FACT_CHARS + 1))]),
        sessions.memory.add(ann, [fact] * (FACTS_PER_CALL + 1)),
    )
    for call in calls:
        with pytest.raises(TooLarge):
            await call
    assert await sessions.changes.newest(ann) == before
    assert (await sessions.changes.live(ann, session.id), await sessions.transfer.raw(ann, session.id)) == (
        None,
        [],
    )
    assert await sessions.memory.facts(ann) == []
