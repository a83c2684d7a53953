"""The language of queries: what a text means, and which text is refused."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.errors import InvalidQuery
from hitherto.model import Condition, Filter
from hitherto.values.query.language import FIELDS, Query, filtered, parse_query
from hitherto.values.query.moments import Period
from hitherto.values.words import (
    PHRASE_TOKENS,
    QUERY_BEGINNINGS,
    QUERY_PHRASES_TOKENS,
    QUERY_TERMS,
    TOKEN_CHARS,
    Term,
    parse_words,
    tokens,
)

NOW = int(datetime(2026, 11, 17, 11, tzinfo=UTC).timestamp() * 1000)


def word(*parts: str, prefix: bool = False) -> Term:
    return Term(parts, prefix)


def start(text: str) -> Term:
    return Term((text,), prefix=True)


def words(*texts: str) -> Query:
    return Query(terms=tuple(map(word, texts)))


def is_(field: str, *values: str) -> Condition:
    return Condition(field=field, values=values)


def is_not(field: str, *values: str) -> Condition:
    return Condition(field=field, values=values, out=True)


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two words", words("two", "words")),
        ('"two words" more', Query(terms=(word("two", "words"), word("more")))),
        ("“two words”", Query(terms=(word("two", "words"),))),
        ('"never closed', Query(terms=(word("never", "closed"),))),
        ("beginn*", Query(terms=(start("beginn"),))),
        ("src/* foo.*", words("src", "foo")),
        ("foo-bar parseFile 漢字", Query(terms=(word("foo", "bar"), word("parsefile"), word("漢", "字")))),
        ('!!! ? * " ""', Query()),
        ('one -two -"three four" -fi*', Query((word("one"),), (word("two"), word("three", "four"), start("fi")))),
        ("ls -l -5 --all two-three", Query(terms=(*words("ls", "l", "5", "all").terms, word("two", "three")))),
        ('title:Word title:"two words"', Query(session=(is_("title", "Word"), is_("title", '"two words"')))),
        ("tag:a TAG:B-c", Query(session=(is_("tag", "a"), is_("tag", "B-c")))),
        ("tag:a,b -tag:c", Query(session=(is_("tag", "a", "b"), is_not("tag", "c")))),
        ('cwd:"/home/me/my work" agent:claude', Query(session=(is_("cwd", "/home/me/my work"), is_("agent", "claude")))),
        ("project:a,b project:c x", Query((word("x"),), session=(is_("project", "a", "b", "c"),))),
        ("role:User,tool -role:tool", Query(message=(is_("role", "user", "tool"), is_not("role", "tool")))),
        ("is:Failed is:archived,pinned", Query(session=(is_("is", "failed"), is_("is", "archived", "pinned")))),
        ("has:edit model:opus from:ada", Query(message=(is_("has", "edit"), is_("model", "opus"), is_("from", "ada")))),
        ("file:src/a.py file:b", Query(files=(is_("file", "src/a.py"), is_("file", "b")))),
        ("before:2026 after:2025-02", Query(before=ms(2026, 1, 1), after=ms(2025, 2, 1))),
        ("after:2025 after:2026-01-31", Query(after=ms(2026, 1, 31))),
        ("on:2026-11-15", Query(after=ms(2026, 11, 15), before=ms(2026, 11, 16))),
        ("on:2024-02", Query(after=ms(2024, 2, 1), before=ms(2024, 3, 1))),
        ("on:2024", Query(after=ms(2024, 1, 1), before=ms(2025, 1, 1))),
        ("after:2026-01-31T10:30:00+02:00", Query(after=ms(2026, 1, 31, 8, 30))),
        ("after:2026-01-31T10:30", Query(after=ms(2026, 1, 31, 10, 30))),
        ("after:yesterday before:Today", Query(after=ms(2026, 11, 16), before=ms(2026, 11, 17))),
        ('on:last-week on:"last week"', Query(after=ms(2026, 11, 9), before=ms(2026, 11, 16))),
        ("after:12h", Query(after=ms(2026, 11, 16, 23))),
        ("https://x.org/a", Query(terms=(word("https", "x", "org", "a"),))),
        ("std::string C:\\work c:/x", Query(terms=(word("std", "string"), word("c", "work"), word("c", "x")))),
        ("TypeError:x utf8:y a_b:c", Query(terms=(word("typeerror", "x"), word("utf8", "y"), word("a", "b", "c")))),
        ("localhost:8080 12:30 error: no", Query(terms=(word("localhost", "8080"), word("12", "30"), *words("error", "no").terms))),
        ('"foo:bar" tag: tag:, title:', Query(terms=(word("foo", "bar"), word("tag"), word("title")))),
        ("tag:\ud800 tag:a\0b", Query(terms=(word("tag"), word("tag", "a", "b")))),
    ],
)  # fmt: skip
def test_a_text_means_this_query(text: str, expected: Query) -> None:
    assert parse_query(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "after", "before"),
    [
        ("what broke yesterday", "2026-11-16", "2026-11-17"),
        ("Today uploads", "2026-11-17", "2026-11-18"),
        ("uploads last week", "2026-11-09", "2026-11-16"),
        ("uploads this month", "2026-11-01", "2026-11-18"),
        ("the plan in March", "2026-03-01", "2026-04-01"),
        ("the plan in December", "2025-12-01", "2026-01-01"),
        ("the plan in March 2024", "2024-03-01", "2024-04-01"),
        ("the plan of last year", "2025-01-01", "2026-01-01"),
    ],
)
def test_words_say_when(text: str, after: str, before: str) -> None:
    begin, end = (parse_query(f"after:{day}").after for day in (after, before))
    assert begin is not None
    assert end is not None
    query = parse_query(text, NOW)
    assert query.when == Period(begin, end)
    assert query.terms == parse_query(query.plain).terms
    assert not {"yesterday", "today", "week", "month", "year", "march"} & {
        term.tokens[0] for term in query.terms
    }


@pytest.mark.parametrize(
    "text",
    ['"last week"', "yesterdays", "tag:yesterday", "-yesterday", "last weekend", "march", "to-day/today"],
)
def test_other_words_say_nothing_of_a_time(text: str) -> None:
    assert parse_query(text, NOW).when is None


def test_where_no_time_is_asked_for_its_words_are_words() -> None:
    assert parse_query("last week") == words("last", "week")


def test_since_a_month_is_until_now() -> None:
    when = parse_query("since March", NOW).when
    assert when is not None
    assert when.after == ms(2026, 3, 1)
    assert when.before > NOW


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("foo:bar", "no field foo:"),
        ('folder:"my work"', "no field folder:"),
        ("path:/srv", "no field path:"),
        ("-note:x", "no field note:"),
        ("is:broken", "takes one of archived, failed"),
        ("has:edit,wings", "takes one of attachment"),
        ("role:robot", "takes one of user"),
        ("cwd:relative", "the full path"),
        ("before:soon", "a date"),
        ("after:99999-99-99", "a date"),
        ("on:2026-01-01,2026-01-02", "a date"),
        ("-after:2026", "cannot be left out"),
    ],
)
def test_what_no_field_is_or_takes_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        parse_query(text, NOW)
    assert told in refused.value.message
    if "no field" in told:
        assert all(f"{name}:" in refused.value.message for name in FIELDS)


def test_a_query_is_bounded() -> None:
    assert len(parse_query(" ".join(f"a{n}" for n in range(100))).terms) == QUERY_TERMS
    assert parse_query("a" * 999 + " beyond").terms == (word("a" * TOKEN_CHARS),)
    assert parse_query("a b* a b*").terms == (word("a"), start("b"))
    (phrase,) = parse_query('"' + "a b " * 100 + 'c*"').terms
    assert phrase == word(*("a", "b") * (PHRASE_TOKENS // 2))
    phrases = [f'"{f"a{number} " * 5}"' for number in range(20)]
    placed = [len(term.tokens) for term in parse_query(" ".join([*phrases, "last"])).terms]
    assert placed == [5] * (QUERY_PHRASES_TOKENS // 5) + [1]
    many = [f"a{n}*" for n in range(20)]
    without = parse_query(" ".join(f"-a{each}" for each in many)).without
    for terms in (without, parse_query(" ".join(many)).terms, parse_words(" ".join(many))):
        assert len(terms) == QUERY_BEGINNINGS
    assert parse_query(" ".join([*many, "last"])).terms[-1] == word("last")
    assert parse_query("a* b* c* last").terms == (start("a"), word("last"))
    assert len(parse_query(" ".join(f"tag:{n}" for n in range(99))).session) == QUERY_TERMS


@given(st.one_of(st.text(), st.from_regex(r'(-?(title|tag|cwd|role|is|before|after|x|xyz):("|\S)*\s?)+')))
def test_every_text_is_a_query_or_refused(text: str) -> None:
    try:
        query = parse_query(text, NOW)
    except InvalidQuery:
        return
    for term in (*query.terms, *query.without):
        assert term.tokens
        assert all(tokens(token) == [token] for token in term.tokens)


@given(st.dates().map(str))
def test_every_day_can_be_a_bound(day: str) -> None:
    query = parse_query(f"before:{day} after:{day}T00:00+23:59")
    assert query.before is not None
    assert query.after == query.before - (23 * 60 + 59) * 60_000


def test_a_date_is_the_same_wherever_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        before = parse_query("before:2026-01-31").before
    time.tzset()
    assert before == ms(2026, 1, 31)


def test_a_filter_takes_what_it_has_a_field_for() -> None:
    text = "project:a tag:t title:x -is:archived is:pinned is:failed source:hitherto branch:main -tag:u"
    wanted = filtered(Filter(archived="include"), parse_query(text))
    assert wanted == Filter(
        project="a",
        tags=("t",),
        text="x",
        archived="exclude",
        pinned=True,
        status="failed",
        native=True,
        where=(is_("branch", "main"), is_not("tag", "u")),
    )
    # What is there already stays, and both must hold.
    assert filtered(wanted, parse_query("project:b")).where[-1] == is_("project", "b")
