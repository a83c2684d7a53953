from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hitherto.values.words import (
    MAX_CHARS,
    PHRASE_TOKENS,
    TOKEN_CHARS,
    Term,
    fts_match,
    marks,
    matches,
    parse_words,
    searchable,
    snippet,
    tokens,
    ts_query,
    ts_vector,
)
from tests.support.postgres_server import PostgresServer

Finds = Callable[[Sequence[str], Sequence[Term]], bool]

ANY_TEXT = st.text(alphabet=st.characters())
VOCABULARY = [
    "the", "parser", "parseFile", "HTTPServer", "GitHub", "github", "foo_bar.baz", "foo", "bar", "Straße", "STRASSE",
    "café", "cafe\u0301", "Привет", "漢字", "漢", "字仮名", "ｶﾞ", "한글", "\u1112\u1161\u11ab", "สวัสดี", "हिन्दी", "ﬁn",
    "2026-01-31", "x²", "a'b", 'say "so"', "back\\slash", "near(a)", "AND", "OR", "NOT", "*", ":", "\0", "\ud800", "\u202e", "✓", "x" * 70,
    "text:", "own", "&", "|", "!", "<->", "\N{SOFT HYPHEN}", "👩‍💻", "❤️", "\u0345", "Σίσυφος", "İstanbul", "ꭰ",
]  # fmt: skip
WRITING = st.lists(
    st.one_of(st.sampled_from(VOCABULARY), st.text(alphabet=st.characters(), max_size=6)), max_size=12
).flatmap(lambda words: st.sampled_from([" ", "", "-", "\n"]).map(lambda gap: gap.join(words)))
QUERIES = st.lists(
    st.one_of(
        st.sampled_from(VOCABULARY),
        st.sampled_from(VOCABULARY).map(lambda word: word[: len(word) // 2 + 1] + "*"),
        st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=3).map(
            lambda words: f'"{" ".join(words)}"'
        ),
        st.text(alphabet=st.characters(), max_size=6),
    ),
    max_size=3,
).map(" ".join)


def words_of(text: str) -> list[str]:
    return tokens(searchable(text))


def finds(query: str, text: str) -> bool:
    return matches(parse_words(query), words_of(text))


@pytest.fixture(scope="module")
def fts5() -> Iterator[Finds]:
    db = apsw.Connection(":memory:")
    db.execute(
        "create virtual table doc using fts5(own, text, content='', contentless_delete=1, tokenize='ascii')"
    )

    def finds_in_fts5(doc_tokens: Sequence[str], terms: Sequence[Term]) -> bool:
        db.execute("insert into doc(rowid, own, text) values (1, 'o1', ?)", (" ".join(doc_tokens),))
        try:
            match = " AND ".join(filter(None, ('own:"o1"', fts_match(terms))))
            return bool(db.execute("select count(*) from doc where doc match ?", (match,)).get)
        finally:
            db.execute("delete from doc where rowid = 1")

    yield finds_in_fts5
    db.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Finds]:
    with PostgresServer() as server, psycopg.connect(server.uri(), autocommit=True) as connection:

        def finds_in_postgres(doc_tokens: Sequence[str], terms: Sequence[Term]) -> bool:
            if not terms:
                return True
            row = connection.execute(
                "select %s::tsvector @@ %s::tsquery", (ts_vector(doc_tokens), ts_query(terms))
            ).fetchone()
            assert row is not None
            return bool(row[0])

        yield finds_in_postgres


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", "hello world"),
        ("snake_case.py path/to-file", "snake case py path to file"),
        ("parseFile", "parsefile parse file"),
        ("HTTPServer", "httpserver http server"),
        ("parseFile2", "parsefile2 parse file2"),
        ("base64Encode", "base64encode base64 encode"),
        ("URLs IDs", "urls ids"),
        ("UTF8 SHA256 2FA 3F2A9B", "utf8 sha256 2fa 3f2a9b"),
        ("the parseFile of parseFile", "the parsefile of parsefile parse file"),
        ("Straße ﬁne CAFÉ cafe\u0301", "strasse fine cafe cafe"),
        ("Привет ΣΊΣΥΦΟΣ Σίσυφος", "привет σισυφοσ σισυφοσ"),
        ("漢字かな", "漢 字 か な"),
        ("한글 \u1112\u1161\u11ab", "한 글 한"),
        ("ガ か\u3099 ｶﾞ", "ガ が ガ"),
        ("Ｆｕｌｌ", "full"),
        ("nul\0in side\x07bell", "nul in side bell"),
        ("“curly” — dash… don’t", "curly dash don t"),
        ("lone\ud800surrogate \ue000private", "lone surrogate private"),
        ("co\N{SOFT HYPHEN}operate me\u200blove", "cooperate me love"),
        ("❤️ 👩‍💻 ✓", ""),
        ("हिन्दी", "हिनदी"),
        ("", ""),
    ],
)
def test_a_text_becomes_these_tokens(text: str, expected: str) -> None:
    assert " ".join(words_of(text)) == expected


def test_a_long_token_is_cut_alike_in_text_and_query() -> None:
    blob = "aB3" * 50
    assert words_of(blob) == [blob.lower()[:TOKEN_CHARS]]
    assert finds(blob, f"see {blob} there")
    assert words_of("é" * 100) == ["e" * TOKEN_CHARS]


def test_only_the_first_characters_of_a_huge_text_are_searched() -> None:
    text = "a " * (MAX_CHARS // 2)
    assert words_of(text + "beyond") == ["a"] * (MAX_CHARS // 2)
    assert words_of("漢字" * MAX_CHARS) == ["漢", "字"] * (MAX_CHARS // 2)
    assert len(searchable("\ufdfa" * MAX_CHARS)) <= 3 * MAX_CHARS


@given(st.one_of(ANY_TEXT, WRITING))
def test_the_tokens_of_a_searchable_text_are_its_own(text: str) -> None:
    assert words_of(searchable(text)) == words_of(text)


@given(st.one_of(ANY_TEXT, WRITING))
def test_a_searchable_text_can_be_stored_anywhere(text: str) -> None:
    result = searchable(text)
    assert "\0" not in result
    assert set(filter(str.isascii, result)) <= set("abcdefghijklmnopqrstuvwxyz0123456789 ")
    assert result.encode().decode() == result
    assert all(len(token) <= TOKEN_CHARS for token in tokens(result))


@given(ANY_TEXT)
def test_composed_and_decomposed_spellings_are_the_same_words(text: str) -> None:
    assert words_of(unicodedata.normalize("NFD", text)) == words_of(unicodedata.normalize("NFC", text))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=WRITING, query=QUERIES)
@example(text="the GitHub page", query='"the github page"')
@example(text="漢字仮名", query="漢字")
@example(text="a b a c", query='"a c" "b a"')
@example(text="", query="x")
def test_every_store_finds_the_same(fts5: Finds, postgres: Finds, text: str, query: str) -> None:
    terms = parse_words(query)
    expected = matches(terms, words_of(text))
    assert fts5(words_of(text), terms) == expected
    assert postgres(words_of(text), terms) == expected


def test_the_longest_query_is_answered_by_every_store(fts5: Finds, postgres: Finds) -> None:
    phrase = ("漢字" * 1_000)[:998]
    terms = parse_words(f'"{phrase}')
    assert len(terms[0].tokens) == PHRASE_TOKENS
    for text, expected in ((phrase[:PHRASE_TOKENS], True), (phrase[: PHRASE_TOKENS - 1], False)):
        assert matches(terms, words_of(text)) is expected
        assert fts5(words_of(text), terms) is expected
    assert postgres(words_of("漢字"), parse_words(" ".join(f"w{n}" for n in range(99)))) is False


def test_postgres_finds_each_word_of_a_huge_text_and_invents_no_phrase(postgres: Finds) -> None:
    doc = [f"w{n}" for n in range(20_000)] + ["often"] * 300
    assert postgres(doc, [Term(("w19999",)), Term(("often",)), Term(("w1", "w2"))])
    assert not postgres(doc, [Term(("w16381", "w19999"))])


def test_quotes_and_backslashes_stay_within_a_lexeme(postgres: Finds) -> None:
    odd = "a'b\\c"
    assert postgres([odd], [Term((odd,))])
    assert not postgres(["a'bc"], [Term((odd,))])
    assert not postgres([odd], [Term(("a'bc",))])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("github", "on GitHub now"),
        ("GitHub", "on github now"),
        ('"on github now"', "on GitHub now"),
        ("file", "call parseFile here"),
        ('"parse file"', "call parseFile here"),
        ("parseFi*", "call parseFile here"),
        ("foo-bar", "foo_bar"),
        ("strasse", "Straße"),
        ("字仮", "漢字仮名"),
        ('"two wo*"', "two words"),
        ('"two wo"*', "two words"),
        ("", "anything"),
        ("!!!", "anything"),
    ],
)
def test_a_query_finds_this_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("foo-bar", "bar foo"),
        ('"two words"', "two big words"),
        ("pars", "parser"),
        ("one two", "one"),
        ("字漢", "漢字"),
    ],
)
def test_a_query_does_not_find_this_text(query: str, text: str) -> None:
    assert not finds(query, text)


def test_no_terms_are_no_condition() -> None:
    assert (fts_match(()), ts_query(()), matches((), [])) == ("", "", True)


def test_terms_are_written_for_each_engine() -> None:
    terms = parse_words('"a b" c*')
    assert fts_match(terms) == 'text:("a b" AND "c"*)'
    assert ts_query(terms) == "('a' <-> 'b') & ('c':*)"
    assert ts_vector(["word", "next", "word"]) == "'word':1,3 'next':2"


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("call parseFile here", "file", ["File"]),
        ("call parseFile here", "parsefile", ["parseFile"]),
        ("um café — Café!", "cafe", ["café", "Café"]),
        ("漢字仮名", "字仮", ["字仮"]),
        ("cafe\u0301s cafe\u0301", "cafe", ["cafe\u0301"]),
        ("\u1112\u1161\u11ab \u1100\u1173\u11af", "한", ["\u1112\u1161\u11ab"]),
        ("one two three two", '"one two" "two three"', ["one two three"]),
        ("foo_bar foo bar", "foo-bar", ["foo_bar", "foo bar"]),
        ("nothing", "else", []),
    ],
)
def test_what_matches_is_marked(text: str, query: str, marked: list[str]) -> None:
    terms = parse_words(query)
    excerpt = snippet(text, terms)
    assert [excerpt[start:end] for start, end in marks(excerpt, terms)] == marked


@pytest.mark.parametrize(
    "filler", ["some words of text\n\t", "ein paar Wörter – Text\n\t", "文字の列、", "x" * 300 + " "]
)
@pytest.mark.parametrize("size", [0, 100, 1_000, 1_015, 30_000])
def test_a_snippet_shows_the_first_hit(filler: str, size: int) -> None:
    padding = (filler * size)[:size]
    text = f"{padding} the needle here {padding} needle"
    excerpt = snippet(text, parse_words("needle"))
    assert "the needle" in excerpt
    assert len(excerpt) <= 160
    assert excerpt.startswith("…") is (size > 0)
    assert excerpt.endswith("…") is (size > 0)


def test_a_snippet_without_a_hit_is_the_beginning() -> None:
    assert snippet("  first\n line", parse_words("absent")) == "first line"
    assert snippet("word " * 100, ()).startswith("word word")
    assert snippet("word " * 100, ()).endswith("word…")


def test_a_snippet_shows_that_there_is_more_beyond_a_wide_gap() -> None:
    gap = " " * 5_000
    assert snippet(f"first{gap}needle{gap}last", parse_words("needle")) == "…needle…"


@given(text=st.one_of(ANY_TEXT, WRITING), query=QUERIES, width=st.integers(3, 60))
def test_a_snippet_is_bounded_and_on_one_clean_line(text: str, query: str, width: int) -> None:
    terms = parse_words(query)
    excerpt = snippet(text, terms, width)
    assert len(excerpt) <= width
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in excerpt)
    last = 0
    for start, end in marks(excerpt, terms):
        assert last <= start < end <= len(excerpt)
        last = end


@given(words=st.lists(st.sampled_from([word for word in VOCABULARY if word.isascii()])), data=st.data())
def test_every_word_that_is_found_is_marked(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    for token in words_of(text):
        beginning = token[: data.draw(st.integers(1, len(token)))]
        assert marks(text, [Term((token,))])
        assert marks(text, [Term((beginning,), prefix=True)])
