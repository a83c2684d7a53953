"""Best match: any of the words, in any form; rare ones, neighbours and titles count; the same on every store."""

from __future__ import annotations

import pytest

from hitherto.errors import InvalidCursor, InvalidInput
from hitherto.model import Draft, Principal, Text, ToolResult
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.service.search.forms import forms
from hitherto.service.search.question import asked
from hitherto.values.query.language import parse_query
from hitherto.values.words import parse_words
from tests.support.conversations import say, started, talk
from tests.support.homes import Clock

DAY = 86_400_000


async def best(sessions: Sessions, who: Principal, text: str, limit: int = 20) -> list[str]:
    return [hit.session.id for hit in (await sessions.search(who, text, order="best", limit=limit)).hits]


async def test_a_question_finds_what_has_most_of_its_words_in_any_form(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    right, ids = await started(
        sessions, ann, "Hello there", "The upload retries three times before it gives up", "Fine", title="A"
    )
    near, _ = await started(sessions, ann, "We retried the migration", title="B")
    await started(sessions, ann, "Lunch is at noon", title="C")
    page = await reader.search(ann, "How often did we retry uploading?", order="best")
    assert [hit.session.id for hit in page.hits] == [right.id, near.id]
    assert page.hits[0].entry == ids[1]
    marked = [page.hits[0].snippet[start:end] for start, end in page.hits[0].marks]
    assert marked == ["upload", "retries"]
    assert page.cursor is None


async def test_rare_words_count_for_more_than_common_ones(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    for _ in range(12):
        await started(sessions, ann, "the server was slow and the server was sick", title="Other")
    rare, _ = await started(sessions, ann, "a kumquat fell on it", title="Other")
    assert (await best(reader, ann, "kumquat server"))[0] == rare.id


async def test_a_session_that_says_a_word_again_and_again_leaves_room_for_others(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    quiet = [(await started(sessions, ann, "a kumquat", title="Other"))[0].id for _ in range(3)]
    loud = await sessions.create(ann, title="Other")
    await sessions.append(ann, loud.id, [say("a kumquat") for _ in range(200)])
    assert set(await best(reader, ann, "kumquat")) == {*quiet, loud.id}


async def test_neighbours_in_the_conversation_raise_a_message(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    alone, _ = await started(
        sessions, ann, "the harbour is closed", "yes", "well", "no", "fine", title="Other"
    )
    beside, ids = await started(
        sessions, ann, "what about the kumquat?", "it was left at the harbour", title="Other"
    )
    page = await reader.search(ann, "where did the kumquat go, harbour?", order="best")
    assert [hit.session.id for hit in page.hits] == [beside.id, alone.id]
    assert page.hits[0].entry in ids


async def test_people_s_words_and_titles_weigh_more_than_what_tools_print(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    printed = await sessions.create(ann, title="Other")
    output = ToolResult(id="1", content=(Text(text="kumquat"),))
    await sessions.append(ann, printed.id, Draft(role="tool", parts=(output,)))
    spoken, _ = await started(sessions, ann, "kumquat", title="Other")
    await talk(sessions, ann, printed.id, "later")
    titled, _ = await started(sessions, ann, "nothing", title="Kumquat")
    found = await best(reader, ann, "kumquat")
    assert found.index(spoken.id) < found.index(printed.id)
    assert titled.id in found


async def test_identifiers_are_found_whole_and_in_parts(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    parts, _ = await started(sessions, ann, "we parse the config elsewhere", title="Other")
    whole, _ = await started(sessions, ann, "call parseConfig(file)", title="Other")
    assert await best(reader, ann, "parseConfig") == [whole.id, parts.id]
    assert (await best(reader, ann, "parse_config"))[0] in (whole.id, parts.id)


async def test_of_equal_hits_the_newest_comes_first_and_pages_hold_each_session_once(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    made = []
    for at in (3_000, 1_000, 5_000, 2_000, 4_000):
        session = await sessions.create(ann, title="Other")
        await sessions.append(ann, session.id, say("kumquat", at=at))
        made.append((at, session.id))
    expected = [name for _, name in sorted(made, reverse=True)]
    assert await best(reader, ann, "kumquats") == expected
    found: list[str] = []
    cursor = None
    for _ in range(5):
        page = await reader.search(ann, "kumquats", order="best", limit=2, cursor=cursor)
        found += [hit.session.id for hit in page.hits]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == expected
    first = await reader.search(ann, "kumquats", order="best", limit=2)
    with pytest.raises(InvalidCursor):
        await reader.search(ann, "kumquats", limit=2, cursor=first.cursor)


async def test_a_time_in_the_question_prefers_what_was_said_then(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    now = clock()
    old, _ = await started(sessions, ann, title="Other")
    await sessions.append(
        ann, old.id, [say("kumquat kumquat", at=now - 40 * DAY), say("kumquat", at=now - 40 * DAY)]
    )
    yesterday, _ = await started(sessions, ann, title="Other")
    await sessions.append(
        ann, yesterday.id, say("a kumquat among many other words that say little", at=now - DAY)
    )
    assert await best(reader, ann, "kumquat") == [old.id, yesterday.id]
    assert await best(reader, ann, "kumquat yesterday") == [yesterday.id, old.id]
    assert await best(reader, ann, "kumquat before:2001") == []


async def test_filters_and_other_owners_hold_in_the_order_of_best(
    sessions: Sessions, reader: Sessions, ann: Principal, bob: Principal
) -> None:
    tagged, _ = await started(sessions, ann, "kumquat", title="Other", tags=["work"])
    await started(sessions, ann, "kumquat", title="Other")
    await started(sessions, bob, "kumquat", title="Other", tags=["work"])
    assert await best(reader, ann, "kumquats tag:work") == [tagged.id]


async def test_there_are_two_orders(sessions: Sessions, ann: Principal) -> None:
    with pytest.raises(InvalidInput, match="newest, best"):
        await sessions.search(ann, "kumquat", order="worst")  # type: ignore[arg-type]


async def test_the_store_finds_documents_with_any_of_the_words(
    store: Store, sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    for who in (ann, bob):
        await started(
            sessions, who, "quince pie", "medlar jam", "quince and medlar", "neither", title="Other"
        )
    terms = parse_words('quince "medlar jam" absent')
    found = await store.read(lambda tx: tx.matches("ann", terms, None, None, 9, every=False))
    assert [match.place.seq for match in found if match.place] == [3, 2, 1]
    none = await store.read(lambda tx: tx.matches("ann", parse_words("absent"), None, None, 9, every=False))
    assert none == []


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("retries", {"retry", "retried", "retrying"}),
        ("families", {"family"}),
        ("stopped", {"stop", "stops", "stopping"}),
        ("went", {"go", "gone", "going"}),
        ("uploading", {"upload", "uploads", "uploaded"}),
        ("children", {"child"}),
    ],
)
def test_a_word_has_these_forms(word: str, others: set[str]) -> None:
    assert others <= set(forms(word))


def test_forms_of_other_languages_are_looked_for_in_their_questions() -> None:
    (group,) = asked(parse_query("wo ist die Brücke")).groups[-1:]
    assert {"brucke", "brucken"} <= {term.tokens[0] for term in group.terms}
