"""Finding the way within one session: words, the next message of a kind, and what has left the context."""

from __future__ import annotations

import msgspec
import pytest

from hitherto.errors import InvalidInput
from hitherto.model import Draft, Entry, Principal, ToolCall, ToolResult
from hitherto.ports import Store
from hitherto.service import Imported, Sessions
from hitherto.service.records import load_lists, require_session
from hitherto.service.search.within import KINDS, Kind
from hitherto.values.words import parse_words
from tests.support.conversations import said, say, started, talk

FAILED = Draft(role="tool", parts=(ToolResult(id="x", is_error=True),))


async def texts(sessions: Sessions, who: Principal, session_id: str, query: str) -> list[str]:
    """What was said in the messages that were found."""
    found = await sessions.within(who, session_id, query)
    return said([await sessions.entry(who, session_id, each) for each in found.entries])


async def test_words_are_found_in_the_order_in_which_they_were_said(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(
        sessions, ann, "One needle", "nothing", "needle two", "Needles", title="needle"
    )
    await started(sessions, ann, "a needle elsewhere")
    await sessions.append(ann, session.id, say("the needle, he said", "assistant"))
    assert await texts(reader, ann, session.id, "needle") == [
        "One needle",
        "needle two",
        "the needle, he said",
    ]
    assert await texts(reader, ann, session.id, "needle*") == [
        "One needle",
        "needle two",
        "Needles",
        "the needle, he said",
    ]
    assert await texts(reader, ann, session.id, "needle role:assistant") == ["the needle, he said"]
    assert await texts(reader, ann, session.id, '"needle two"') == ["needle two"]
    for nothing in ("", " ", "!!", "elsewhere", '"two needle"'):
        assert await texts(reader, ann, session.id, nothing) == []


async def test_beyond_the_limit_the_newest_are_found(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *(f"needle {number}" for number in range(5)))
    found = await reader.within(ann, session.id, "needle", limit=3)
    assert (found.entries, found.more) == (tuple(ids[2:]), True)
    found = await reader.within(ann, session.id, "needle", limit=5)
    assert (found.entries, found.more) == (tuple(ids), False)


async def test_what_is_found_is_what_the_conversation_has(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    """A fork has what was said before it; a compaction takes nothing away; what was erased or rewound is gone."""
    source, ids = await started(sessions, ann, "needle 0", "needle 1", "needle 2")
    fork = await sessions.fork(ann, source.id, at=ids[1])
    await talk(sessions, ann, fork.id, "needle of the fork")
    assert await texts(reader, ann, fork.id, "needle") == ["needle 0", "needle 1", "needle of the fork"]
    await sessions.compact(ann, fork.id, say("a summary of needles", "system"), keep=1)
    await talk(sessions, ann, fork.id, "a last needle")
    assert await texts(reader, ann, fork.id, "needle") == [
        "needle 0", "needle 1", "needle of the fork", "a last needle"
    ]  # fmt: skip
    assert await texts(reader, ann, fork.id, "summary") == ["a summary of needles"]
    await sessions.erase(ann, source.id, ids[0])
    assert await texts(reader, ann, source.id, "needle") == ["needle 1", "needle 2"]
    assert await reader.conversation.beside(ann, source.id, None, "user") == ids[1]
    await sessions.rewind(ann, source.id, ids[1])
    assert await texts(reader, ann, source.id, "needle") == ["needle 1"]


async def test_the_next_message_of_a_kind_is_found_however_far_it_is(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, "prompt", "another")
    edit = ToolCall(id="e", name="Edit", input={"file_path": "a.py", "old": "1", "new": "2"})
    more = [say("more", "assistant") for _ in range(30)]
    more[10] = more[20] = Draft(role="assistant", parts=(edit,))
    drafts = [say("answer", "assistant"), FAILED, *more, FAILED, say("last")]
    ids += (await sessions.append(ann, session.id, drafts)).entries
    await sessions.compact(ann, session.id, say("summary", "system"), keep=0)
    (summary,) = (await reader.within(ann, session.id, "summary")).entries
    ids += (await sessions.append(ann, session.id, say("after"))).entries

    async def beside(at: int, kind: Kind, *, back: bool = False) -> str | None:
        return await reader.conversation.beside(ann, session.id, ids[at], kind, backwards=back)

    assert await beside(0, "user") == ids[1]
    assert await beside(1, "user") == ids[35]
    assert await beside(35, "user", back=True) == ids[1]
    assert await beside(0, "user", back=True) is None
    assert await beside(0, "failure") == ids[3]
    assert await beside(3, "failure") == ids[34]
    assert await beside(-1, "failure", back=True) == ids[34]
    assert await beside(34, "failure", back=True) == ids[3]
    assert await beside(3, "failure", back=True) is None
    assert await beside(34, "failure") is None
    assert await beside(0, "edit") == ids[14]
    assert await beside(14, "edit") == ids[24]
    assert await beside(-1, "edit", back=True) == ids[24]
    assert await beside(14, "edit", back=True) is None
    assert await beside(3, "tool") == ids[34]
    assert await beside(-1, "assistant", back=True) == ids[33]
    assert await beside(0, "summary") == summary
    assert await beside(-1, "summary", back=True) == summary
    assert await beside(-1, "summary") is None
    assert await reader.conversation.beside(ann, session.id, None, "user") == ids[0]
    assert await reader.conversation.beside(ann, session.id, None, "user", backwards=True) == ids[-1]
    with pytest.raises(InvalidInput, match=", ".join(KINDS)):
        await beside(0, "robot")  # type: ignore[arg-type]


async def test_a_failure_that_was_left_out_and_collected_is_not_found_in_what_followed_it(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    """The running sums of a log go on from entries that are gone."""
    imported = Imported(id="other:1", source="other", created_at=1, updated_at=1)
    failed = Entry(id="a", at=1, role="tool", parts=FAILED.parts)
    rest = [Entry(id=name, at=2, role="user", parts=say(name).parts) for name in "bc"]
    await sessions.transfer.sync(ann, imported, [failed, *rest])
    assert await reader.conversation.beside(ann, imported.id, None, "failure") == "a"
    await sessions.transfer.sync(
        ann, imported, [msgspec.structs.replace(failed, parts=say("well").parts), *rest]
    )
    fork = await sessions.fork(ann, imported.id)
    await sessions.delete(ann, imported.id)
    for backwards in (False, True):
        assert await reader.conversation.beside(ann, fork.id, None, "failure", backwards=backwards) is None


async def test_a_stretch_of_another_owner_has_nothing_in_it(
    store: Store, sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    """The service reads only stretches of the owner; here the store alone is asked."""
    session, ids = await started(sessions, ann, "needle")

    async def found(owner: str) -> list[str]:
        async def work(tx):  # type: ignore[no-untyped-def]
            (stretch,) = (await load_lists(tx, await require_session(tx, ann, session.id))).conversation()
            return await tx.within(owner, stretch, parse_words("needle"), None, 5)

        return [spot.id for spot in await store.read(work)]

    assert await found(ann.owner) == ids
    assert await found(bob.owner) == []


async def test_a_page_says_where_it_begins_and_what_has_left_the_context(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *map(str, range(8)))
    page = await reader.history(ann, session.id, view="conversation", after=ids[2], limit=2)
    assert (page.start, page.past) == (3, 0)
    await sessions.compact(ann, session.id, say("first", "system"), keep=2)
    await talk(sessions, ann, session.id, "8", "9")
    page = await reader.history(ann, session.id, view="conversation", last=True, limit=2)
    assert (page.start, page.past, page.total) == (9, 6, 11)
    await sessions.compact(ann, session.id, say("second", "system"), keep=1)
    page = await reader.history(ann, session.id, view="conversation", limit=100)
    assert said(page)[page.past] == "9"
    assert (page.start, page.past) == (0, 10)
    assert (await reader.history(ann, session.id)).past == 0


async def test_a_page_around_a_message_is_cut_at_both_ends(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, ids = await started(sessions, ann, *("x" * 1_000 for _ in range(20)))
    page = await reader.history(ann, session.id, around=ids[10], limit=20, max_bytes=9_000)
    shown = [entry.id for entry in page.entries]
    assert ids[10] in shown
    assert 4 <= len(shown) <= 9
    assert shown == ids[page.start : page.start + len(shown)]
    assert (page.previous, page.next) == (shown[0], shown[-1])
    assert len((await reader.history(ann, session.id, around=ids[0], limit=20, max_bytes=1)).raw) == 1
