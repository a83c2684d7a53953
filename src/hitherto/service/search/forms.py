"""The forms of a word: `retries` is looked for as `retry`, `retried` and `retrying` too. Pure.

An index of stems would be larger, and dearer to feed. Instead each word of a question is given the endings that its
language has, and those that the stemmer takes for the same word are looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

MOST = 16
"""So many forms of a word are looked for."""

ENDINGS: dict[str, tuple[str, ...]] = {
    "english": ("", "s", "es", "ed", "ing", "e", "er", "ers", "y", "ies", "ied", "d", "ings", "ion", "ions", "ment", "ments", "ly", "al"),
    "german": ("", "e", "en", "er", "es", "em", "n", "s", "t", "te", "ten", "tet", "st", "ung", "ungen", "lich", "ig"),
    "french": ("", "e", "s", "es", "er", "ez", "ent", "ait", "aient", "ais", "ons", "ee", "ees", "eur", "euse", "ion", "ions", "ement"),
    "spanish": ("", "o", "a", "os", "as", "e", "es", "ar", "er", "ir", "ando", "iendo", "ado", "ada", "ados", "an", "en", "aba", "cion", "ciones", "amente"),
    "italian": ("", "o", "a", "i", "e", "are", "ere", "ire", "ando", "endo", "ato", "ata", "ati", "ate", "ano", "ava", "zione", "zioni", "amente"),
    "portuguese": ("", "o", "a", "os", "as", "e", "es", "ar", "er", "ir", "ando", "endo", "ado", "ada", "ados", "am", "em", "ava", "cao", "coes", "amente"),
    "dutch": ("", "e", "en", "er", "s", "t", "te", "ten", "de", "den", "ing", "ingen", "je", "jes"),
}  # fmt: skip
"""The endings that make forms, of languages that are written with spaces; accents are folded, as in the index."""

TELLING: dict[str, frozenset[str]] = {
    "german": frozenset(["der", "die", "das", "und", "ist", "nicht", "ich", "wir", "wie", "wo", "warum", "welche", "haben", "wurde", "mit", "von", "auf", "fur", "eine"]),
    "french": frozenset(["le", "la", "les", "des", "est", "pas", "je", "nous", "comment", "ou", "pourquoi", "quelle", "avons", "etait", "avec", "sur", "une", "dans", "que"]),
    "spanish": frozenset(["el", "los", "las", "que", "es", "no", "yo", "como", "donde", "porque", "cual", "hemos", "fue", "con", "una", "para", "del"]),
    "italian": frozenset(["il", "lo", "gli", "che", "non", "io", "noi", "come", "dove", "perche", "quale", "abbiamo", "era", "con", "una", "per", "del"]),
    "portuguese": frozenset(["os", "as", "que", "nao", "eu", "nos", "como", "onde", "porque", "qual", "temos", "foi", "com", "uma", "para", "do", "da"]),
    "dutch": frozenset(["de", "het", "een", "en", "is", "niet", "ik", "wij", "hoe", "waar", "waarom", "welke", "hebben", "was", "met", "van", "op", "voor"]),
}  # fmt: skip
"""Words by which a language is known. English is always tried: most of what is said to agents is."""

IRREGULAR = """
be am is are was were been being; have has had having; do does did done doing; go goes went gone going; say says said;
get gets got gotten getting; make makes made making; know knows knew known; think thinks thought; take takes took taken
taking; see sees saw seen; come comes came coming; find finds found; give gives gave given giving; tell tells told;
become becomes became; leave leaves left leaving; feel feels felt; bring brings brought; begin begins began begun
beginning; keep keeps kept; hold holds held; write writes wrote written writing; stand stands stood; hear hears heard; let
lets; mean means meant; set sets setting; meet meets met meeting; run runs ran running; pay pays paid; sit sits sat sitting;
speak speaks spoke spoken; lie lies lay lain lying; lead leads led; read reads reading; grow grows grew grown; lose loses
lost losing; fall falls fell fallen; send sends sent; build builds built; understand understands understood; draw draws
drew drawn; break breaks broke broken; spend spends spent; cut cuts cutting; rise rises rose risen; drive drives drove
driven driving; buy buys bought; wear wears wore worn; choose chooses chose chosen; eat eats ate eaten; drink drinks drank
drunk; sing sings sang sung; swim swims swam swum; sleep sleeps slept; teach teaches taught; catch catches caught; fight
fights fought; throw throws threw thrown; fly flies flew flown flying; forget forgets forgot forgotten; ride rides rode
ridden; sell sells sold; win wins won winning; wake wakes woke woken; hide hides hid hidden; shake shakes shook shaken;
steal steals stole stolen; bite bites bit bitten; blow blows blew blown; freeze freezes froze frozen; tear tears tore torn;
child children; man men; woman women; person people; foot feet; tooth teeth; mouse mice; life lives; wife wives; knife
knives; leaf leaves; half halves; shelf shelves; wolf wolves; datum data; index indexes indices; criterion criteria;
analysis analyses; crisis crises; good better best; bad worse worst; married marriage marry; died death dead die
"""
_TOGETHER: dict[str, tuple[str, ...]] = {}
for _group in IRREGULAR.split(";"):
    for _word in _group.split():
        _TOGETHER[_word] = (*_TOGETHER.get(_word, ()), *_group.split())


def languages(tokens: Iterable[str]) -> tuple[str, ...]:
    """The languages that a question may be in, English first."""
    seen = set(tokens)
    return ("english", *(name for name, telling in TELLING.items() if len(telling & seen) >= 2))


@lru_cache(maxsize=4_096)
def forms(token: str, languages: tuple[str, ...] = ("english",)) -> tuple[str, ...]:
    """The token, and what else it may be written as, the nearest first."""
    if len(token) < 3 or not token.isalpha() or not token.isascii():
        return (token,)
    found = dict.fromkeys((token, *_TOGETHER.get(token, ())))
    for language in languages:
        found.update(dict.fromkeys(_regular(token, language)))
    return tuple(found)[:MOST]


def _regular(token: str, language: str) -> Iterator[str]:
    stem = _stem(language, token)
    for candidate in _candidates(stem, language):
        if len(candidate) > 2 and _stem(language, candidate) == stem:
            yield candidate


def _candidates(stem: str, language: str) -> Iterator[str]:
    """What the stem may have been cut from: `retri` is `retry` and `retries`, `stop` also `stopped`."""
    if language == "english" and stem.endswith("i"):
        yield from (stem[:-1] + ending for ending in ("y", "ies", "ied", "ying", "ys", "ier", "iers"))
        return
    yield from (stem + ending for ending in ENDINGS[language])
    if language == "english" and len(stem) < 7 and stem[-1] not in "aeiouwxy":
        yield from (stem + stem[-1] + ending for ending in ("ed", "ing", "er", "ers"))


@lru_cache(maxsize=32_768)
def _stem(language: str, token: str) -> str:
    return str(_stemmer(language).stemWord(token))


@cache
def _stemmer(language: str) -> Any:
    import snowballstemmer  # here: most of what uses the service asks no question

    return snowballstemmer.stemmer(language)
