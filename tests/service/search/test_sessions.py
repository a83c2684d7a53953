"""Search: words, phrases, operators; one hit for each session; never what is not there any more."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from hitherto.errors import InvalidCursor, InvalidQuery
from hitherto.model import Draft, Filter, Principal, Text, Thought, ToolCall, ToolResult
from hitherto.ports import SearchKey, Store
from hitherto.service import Sessions
from hitherto.values.cursors import seal_cursor
from hitherto.values.days import DAY_MS
from hitherto.values.words import MAX_CHARS, parse_words
from tests.support.conversations import finds, hits, listed, say, started, talk
from tests.support.homes import Clock

HOSTILE = (
    "",
    " ",
    '"',
    '"""',
    '"unclosed',
    "*",
    "a*b*",
    "()",
    "(a OR b) NOT c NEAR(d e)",
    "-word",
    "^start",
    "col:val",
    "text:secret",
    "own:ann",
    "' OR 1=1 --",
    "%_%",
    "\\",
    "a & b | !c <-> d:*",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff x",
    "title:",
    'title:"',
    "tag:\0",
    "before:never",
    "after:99999-99-99",
    "before:9999-12-31T23:59:59.999999+00:00",
    "after:0001-01-01T00:00:00+14:00",
    "cwd:relative",
    "cwd:/\0",
    "cwd:/" + "x" * 900,
    "role:robot",
    "role:user",
    "agent:",
    "漢字",
    "e\u0301",
    "\u202e",
    "😀",
    "ﬁ",
    "x" * 5_000,
    "x " * 2_000,
    "1" * 70,
)
REFUSED = ("col:", "text:", "own:", "before:never", "after:99999", "cwd:relative", "role:robot")


async def test_all_words_must_stand_in_one_message(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    both, _ = await started(sessions, ann, "The quick brown fox")
    await started(sessions, ann, "The quick cat", "and a brown dog")
    assert await finds(reader, ann, "brown quick") == [both.id]
    assert await finds(reader, ann, "BROWN, Quick!") == [both.id]
    assert await finds(reader, ann, "brow") == []
    assert await finds(reader, ann, "quick brown elephant") == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"quick brown"', True),
        ('"brown quick"', False),
        ('"quick fox"', False),
        ("“quick brown”", True),
        ("bro*", True),
        ("rown*", False),
        ('"quick bro"*', True),
        ("parse", True),
        ("parsefile", True),
        ("parseFile", True),
        ("file_name", True),
        ("naïve", True),
        ("NAIVE", True),
        ("漢", True),
        ("字仮", True),
        ("仮字", False),
        ("src/main.py", True),
        ("main.rs", False),
    ],
)
async def test_phrases_beginnings_and_parts_of_words_are_found(
    sessions: Sessions, reader: Sessions, ann: Principal, query: str, found: bool
) -> None:
    text = "The quick brown fox calls parseFile(file_name) in src/main.py, naïve 漢字仮名"
    session, _ = await started(sessions, ann, text, title="Other")
    assert await finds(reader, ann, query) == ([session.id] if found else [])


async def test_a_hit_shows_the_newest_place_and_how_many_more_there_are(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    session = await sessions.create(ann, title="Other")
    await talk(sessions, ann, session.id, "needle one", "nothing", "needle two")
    now = clock.advance()
    done = await sessions.append(ann, session.id, say("the last needle in the hay", "assistant"))
    (hit,) = await hits(reader, ann, "needle")
    assert hit.session == await reader.get(ann, session.id)
    assert (hit.entry, hit.role, hit.at, hit.more) == (done.entries[0], "assistant", now, 2)
    assert hit.snippet == "the last needle in the hay"
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["needle"]


async def test_more_hits_are_counted_up_to_a_cap(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Other")
    await sessions.append(ann, session.id, [say("needle") for _ in range(130)])
    (hit,) = await hits(reader, ann, "needle")
    assert hit.more == 99


async def test_the_newest_hits_come_first_and_pages_hold_each_session_once(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    made = [await sessions.create(ann, title="Other") for _ in range(6)]
    order = [0, 1, 2, 3, 4, 5, 2, 0]
    for number in order:
        await talk(sessions, ann, made[number].id, "a needle")
    expected = [made[number].id for number in (0, 2, 5, 4, 3, 1)]
    for limit in (1, 2, 5, 100):
        found = await hits(reader, ann, "needle", limit=limit)
        assert [hit.session.id for hit in found] == expected


async def test_a_search_cursor_is_good_in_the_other_connection(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    made = [(await started(sessions, ann, "a needle", title="Other"))[0].id for _ in range(4)]
    first = await sessions.search(ann, "needle", limit=2)
    rest = await other.search(ann, "needle", cursor=first.cursor, limit=10)
    assert [hit.session.id for hit in (*first.hits, *rest.hits)] == made[::-1]
    assert rest.cursor is None


@pytest.mark.parametrize("limit", [1, 2, 3, 20])
async def test_forks_that_share_a_message_are_all_found_page_by_page(
    sessions: Sessions, reader: Sessions, ann: Principal, limit: int
) -> None:
    source, _ = await started(sessions, ann, "a shared needle", title="Other")
    forks = [(await sessions.fork(ann, source.id)).id for _ in range(4)]
    found = [hit.session.id for hit in await hits(reader, ann, "needle", limit=limit)]
    assert sorted(found) == sorted([source.id, *forks])


async def test_titles_are_found_and_earlier_ones_too(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Ancient name")
    (hit,) = await hits(reader, ann, "ancient")
    assert (hit.session.id, hit.entry, hit.snippet) == (session.id, None, "Ancient name")
    await sessions.rename(ann, session.id, "Modern name")
    assert await finds(reader, ann, "ancient") == [session.id]
    assert await finds(reader, ann, "modern") == [session.id]
    assert await finds(reader, ann, "name") == [session.id]


@pytest.mark.parametrize(
    ("part", "word"),
    [
        (Thought(text="pondering"), "pondering"),
        (ToolCall(id="c", name="read_file", input={"path": "/etc/hosts"}), "hosts"),
        (ToolCall(id="c", name="read_file"), "read"),
        (ToolResult(id="c", content=(Text(text="localhost line"),)), "localhost"),
    ],
)
async def test_thoughts_and_tools_are_found(
    sessions: Sessions, reader: Sessions, ann: Principal, part: Thought | ToolCall | ToolResult, word: str
) -> None:
    session = await sessions.create(ann)
    await sessions.append(ann, session.id, Draft(role="assistant", parts=(part,)))
    assert await finds(reader, ann, word) == [session.id]


async def test_what_a_tool_answered_is_found_up_to_the_limit_of_a_message(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Other")
    output = "line of a log\n" * 4_300 + "medlar " + "line of a log\n" * 400 + "quince"
    assert output.index("medlar") < MAX_CHARS < output.index("quince")
    result = ToolResult(id="1", content=(Text(text=output),))
    done = await sessions.append(ann, session.id, Draft(role="tool", parts=(result,)))
    (hit,) = await hits(reader, ann, "medlar")
    assert (hit.entry, "medlar" in hit.snippet) == (done.entries[0], True)
    assert await hits(reader, ann, "quince") == []


async def test_each_operator_narrows(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    clock.now = 1_750_000_000_000  # 2025-06-15T15:06:40Z
    one = await sessions.create(
        ann, title="Garden plan", tags=["green", "two words"], cwd="/srv/a", agent_id="x"
    )
    two = await sessions.create(ann, title="Kitchen plan", tags=["blue"], cwd="/srv/b", agent_id="y")
    await sessions.append(ann, one.id, say("water the needle"))
    await sessions.append(ann, two.id, say("boil the needle", "assistant"))
    clock.advance(DAY_MS)
    await sessions.append(ann, two.id, say("the needle again"))
    for query in (
        "needle title:garden",
        "needle title:gard*",
        "needle tag:green",
        'needle tag:"two words"',
        "needle cwd:/srv/a",
        "needle cwd:/srv/./a/",
        "needle agent:x",
        "needle before:2025-06-16 role:user",
        "needle before:2025-06-15T15:06:40.001Z title:plan role:USER",
        "title:garden",
        'title:"garden pl"*',
        "title:garden title:plan",
        "tag:green",
        "cwd:/srv/a",
        "agent:x",
        "water",
        'tag:green tag:"two words" needle',
    ):
        assert await finds(reader, ann, query) == [one.id], query
    for query in ("needle after:2025-06-16", "role:assistant", "after:2025-06-16", "needle role:assistant"):
        assert await finds(reader, ann, query) == [two.id], query
    for query in (
        "needle tag:gre",
        "needle title:attic",
        "needle cwd:/srv",
        "needle agent:X",
        "needle after:2025-06-17",
        "needle before:2025",
        "tag:green tag:blue",
        "role:tool",
        "agent:z",
    ):
        assert await finds(reader, ann, query) == [], query
    for query in ("title:plan", "before:2025-06-16"):
        assert sorted(await finds(reader, ann, query)) == sorted([one.id, two.id]), query


async def test_a_filter_narrows_a_search_together_with_the_query(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    old, _ = await started(sessions, ann, "needle", title="Plan A", tags=["t"])
    middle = clock.advance()
    new, _ = await started(sessions, ann, "needle", title="Plan B", tags=["t", "u"])
    given = Filter(tags=("t",), updated_after=middle)
    assert await finds(reader, ann, "needle", given) == [new.id]
    assert await finds(reader, ann, "title:plan", given) == [new.id]
    assert await finds(reader, ann, "tag:t", given) == [new.id]
    assert await finds(reader, ann, "", given) == [new.id]
    assert await finds(reader, ann, "tag:u", Filter(text="plan a")) == []
    assert await finds(reader, ann, "title:plan", Filter(text="a")) == [old.id]


async def test_archived_sessions_are_searched_unless_the_filter_says_otherwise(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "needle")
    await sessions.archive(ann, session.id)
    assert await finds(reader, ann, "needle") == [session.id]
    assert await finds(reader, ann, "needle", Filter(archived="only")) == [session.id]
    assert await finds(reader, ann, "needle", Filter()) == []


async def test_what_is_deleted_erased_or_rewound_away_is_not_found(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    deleted, _ = await started(sessions, ann, "needle deleted")
    erased, ids = await started(sessions, ann, "needle erased")
    rewound, places = await started(sessions, ann, "Start", "needle rewound")
    reset, _ = await started(sessions, ann, "needle reset", title="Other")
    assert len(await finds(reader, ann, "needle")) == 4
    await sessions.delete(ann, deleted.id)
    await sessions.erase(ann, erased.id, ids[0])
    await sessions.rewind(ann, rewound.id, places[0])
    await sessions.reset(ann, reset.id)
    assert await finds(reader, ann, "needle") == [reset.id]  # an earlier episode is part of the conversation
    assert (await reader.admin.check(repair=False)).problems == ()
    (checkpoint,) = await reader.checkpoints(ann, rewound.id)
    await sessions.restore(ann, rewound.id, checkpoint.id)
    assert set(await finds(reader, ann, "needle")) == {reset.id, rewound.id}


async def test_what_a_compaction_retired_is_still_found(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    session, _ = await started(sessions, ann, "a needle", "hay", title="Other")
    await sessions.compact(ann, session.id, say("A summary", "system"))
    await sessions.compact(ann, session.id, say("Another", "system"))
    assert await finds(reader, ann, "needle") == [session.id]
    assert await finds(reader, ann, "summary") == [session.id]


async def test_everything_acknowledged_is_found_at_once(
    sessions: Sessions, other: Sessions, ann: Principal
) -> None:
    session = await sessions.create(ann, title="Other")
    for number in range(20):
        writer, looking = (sessions, other) if number % 2 else (other, sessions)
        await talk(writer, ann, session.id, f"word{number}")
        assert await finds(looking, ann, f"word{number}") == [session.id]
        assert await finds(writer, ann, f"word{number}") == [session.id]


async def test_any_text_is_a_query_or_refused_as_one(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    await started(sessions, ann, "Some text", tags=["t"], cwd="/a")
    refused = []
    for query in HOSTILE:
        assert (await reader.find(ann, Filter(text=query))).cursor is None
        try:
            assert (await reader.search(ann, query)).cursor is None
        except InvalidQuery:
            refused.append(query)
    assert refused == [query for query in HOSTILE if query.startswith(REFUSED)]


async def test_hostile_texts_are_found_by_their_words(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    texts = ["nul\0nul middle", "lone \ud800 surrogate", "it's a \\ back'slash", "a:*b &|! <-> c", "x" * 300]
    made = [(await started(sessions, ann, text, title="Other"))[0].id for text in texts]
    for query, session_id in zip(
        ["middle", "surrogate", "back'slash", '"a b c"', "x" * 300], made, strict=True
    ):
        assert await finds(reader, ann, query) == [session_id], query


async def test_a_search_without_words_lists_sessions(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    made = []
    for number in range(5):
        made.append((await sessions.create(ann, title=f"Number {number}")).id)
        clock.advance()
    found = await hits(reader, ann, "", limit=2)
    assert [hit.session.id for hit in found] == made[::-1]
    assert [hit.snippet for hit in found] == [f"Number {number}" for number in range(4, -1, -1)]


def some_text(dice: random.Random, words: Sequence[str]) -> str:
    return " ".join(dice.choices(words, k=dice.randint(1, 6)))


async def test_searches_agree_with_a_plain_look_at_every_message(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    dice = random.Random(3)
    words = ["alpha", "beta", "gamma", "alphabet", "delta"]
    kept: dict[str, list[str]] = {}
    for _ in range(12):
        texts = [some_text(dice, words) for _ in range(dice.randint(1, 4))]
        session, _ = await started(sessions, ann, *texts, title="-")
        kept[session.id] = texts
    for _ in range(40):
        wanted = dice.sample(words, dice.randint(1, 3))
        meant = {key for key, texts in kept.items() if any(set(wanted) <= set(t.split()) for t in texts)}
        found = await hits(reader, ann, " ".join(wanted), limit=dice.choice([1, 4, 20]))
        assert {hit.session.id for hit in found} == meant
        assert len(found) == len(meant)
    assert len(await listed(reader, ann)) == 12


async def test_what_was_said_is_shown_before_the_title_made_of_it(sessions: Sessions, ann: Principal) -> None:
    session = await sessions.create(ann)
    appended = await sessions.append(ann, session.id, say("Repair the carburettor"))
    assert (await sessions.get(ann, session.id)).title == "Repair the carburettor"
    (hit,) = (await sessions.search(ann, "carburettor")).hits
    assert (hit.entry, hit.more) == (appended.entries[0], 1)


async def test_a_query_of_signs_alone_finds_nothing(sessions: Sessions, ann: Principal) -> None:
    await sessions.create(ann, title="Anything")
    for text in ('"', "!!!", "()"):
        assert (await sessions.search(ann, text)).hits == ()
    assert len((await sessions.search(ann, "")).hits) == 1


async def test_operators_are_plain_words_in_the_filter_of_a_list(sessions: Sessions, ann: Principal) -> None:
    await sessions.create(ann, title="Bread")
    await sessions.create(ann, title="About title bread")
    page = await sessions.find(ann, Filter(text="title:bread"))
    assert [session.title for session in page.sessions] == ["About title bread"]


@pytest.mark.parametrize("count", [5, 100])
async def test_the_store_finds_the_newest_documents_first_however_many_there_are(
    store: Store, sessions: Sessions, ann: Principal, bob: Principal, count: int
) -> None:
    """The service puts hits in order once more; here the store alone is asked, for a part of them."""
    terms = parse_words("needle")
    for who in (bob, ann):
        session = await sessions.create(who)
        await sessions.append(who, session.id, [say(f"needle {number}") for number in range(count)])

    async def keys(before: SearchKey | None, limit: int) -> list[SearchKey]:
        found = await store.read(lambda tx: tx.matches("ann", terms, "user", before, limit))
        return [match.key for match in found]

    every = await keys(None, count + 1)
    assert len(every) == count
    assert every == sorted(every, reverse=True)
    assert await keys(None, 2) == every[:2]
    assert await keys(every[2], 2) == every[3:5]


async def test_a_beginning_finds_few_words_and_very_many_and_what_is_erased_no_more(
    store: Store, sessions: Sessions, ann: Principal, bob: Principal
) -> None:
    async def found(text: str) -> list[int]:
        terms = parse_words(text)
        return [match.seq for match in await store.read(lambda tx: tx.matches("ann", terms, None, None, 999))]

    for who in (bob, ann):
        session = await sessions.create(who, title="Other")
        said = [say(f"kumquat{number:03} {'odd' if number % 2 else 'even'}") for number in range(200)]
        entries = (await sessions.append(who, session.id, said)).entries
    assert await found("kumquat*") == list(range(200, 0, -1))
    assert await found("kumquat01* odd") == [20, 18, 16, 14, 12]
    assert await found("kumquat01* kumquat*") == list(range(20, 10, -1))
    assert await found("kumquatx*") == []
    await sessions.erase(ann, session.id, entries[12])
    assert await found("kumquat01*") == [20, 19, 18, 17, 16, 15, 14, 12, 11]


async def test_hits_come_by_the_time_they_were_said_however_late_they_were_stored(
    sessions: Sessions, reader: Sessions, ann: Principal
) -> None:
    """Against a plain sort, with moments that several share, and others before 1970."""
    chance = random.Random(18)
    moments = [*range(-2, 60), *(chance.randrange(10**9, 10**12) for _ in range(60)), *[500_000] * 20]
    chance.shuffle(moments)
    newest: dict[str, int] = {}
    for start in range(0, len(moments), 5):
        session = await sessions.create(ann, title="Other")
        said = moments[start : start + 5]
        await sessions.append(ann, session.id, [say("a needle", at=at) for at in said])
        newest[session.id] = max(said)
    for limit in (3, 100):
        found = await hits(reader, ann, "needle", limit=limit)
        assert [max(hit.at or 0, 0) for hit in found] == sorted(
            (max(at, 0) for at in newest.values()), reverse=True
        )
        assert {hit.session.id: hit.at for hit in found} == newest


async def test_a_title_counts_as_said_when_its_session_was_created(
    sessions: Sessions, reader: Sessions, ann: Principal, clock: Clock
) -> None:
    titled = await sessions.create(ann, title="A needle")
    clock.advance()
    other, _ = await started(sessions, ann, "the needle", title="Other")
    clock.advance()
    await talk(sessions, ann, titled.id, "nothing")
    await sessions.rename(ann, titled.id, "Another needle")
    found = await hits(reader, ann, "needle")
    assert [(hit.session.id, hit.at) for hit in found] == [
        (other.id, other.updated_at),
        (titled.id, titled.created_at),
    ]


async def test_a_cursor_of_an_earlier_version_is_answered_as_one(
    store: Store, sessions: Sessions, ann: Principal
) -> None:
    await started(sessions, ann, "a needle")
    question = ["search", "needle", Filter(archived="include")]
    old = seal_cursor(store.secret, ann.owner, question, [7, ["x"]])
    with pytest.raises(InvalidCursor):
        await sessions.search(ann, "needle", cursor=old)
