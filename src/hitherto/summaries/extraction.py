"""What was said that is worth keeping: facts, decisions, preferences, tasks and open questions. Pure, without a model.

Each sentence that a person or an assistant wrote is weighed by its turns of phrase, by what is specific in it and by
how rare its words are in this conversation. Output of tools is never taken for something that was said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hitherto.model import Entry, plain_text
from hitherto.summaries.cues import ASKING, CUES, DOUBT, FAIR, HEDGE, OFFER, UNANSWERED, WEAK
from hitherto.summaries.identifiers import EXACT, Specific, specifics
from hitherto.summaries.sentences import STOPWORDS, sentences, subject_of

WORTH = 0.5
"""From this confidence on a sentence is a fact."""
SPECIFIC_BONUS = 0.2
"""What it counts for that a person says something specific, in whatever words."""
ENOUGH_TO_COMPARE = 30
"""With fewer sentences than this, how rare a word is means nothing."""
RARE = 2

_WORD = re.compile(r"[^\W\d_]{2,}")


class Statement(NamedTuple):
    """A sentence worth keeping; `at` is the position of its entry in what was looked at."""

    text: str
    kind: str
    confidence: float
    entry: str
    at: int
    specifics: tuple[Specific, ...] = ()
    subject: str | None = None


class _Said(NamedTuple):
    """A sentence with who said it where."""

    text: str
    role: str
    entry: str
    at: int
    answer: str


def statements(entries: Sequence[Entry]) -> list[Statement]:
    """What is worth keeping of these entries, in order, each only once: of what was said again, the last."""
    said = list(_said(entries))
    seen = Counter(word for each in said for word in set(_words(each.text)))
    common = STOPWORDS | {word for each in said for word in _WORD.findall(each.text) if word.islower()}
    rare = len(said) >= ENOUGH_TO_COMPARE
    found = (_weighed(each, common, seen if rare else Counter()) for each in said)
    return _newest(each for each in found if each is not None)


def _said(entries: Sequence[Entry]) -> Iterator[_Said]:
    """The sentences of people and assistants; summaries are left out."""
    for at, entry in enumerate(entries):
        if entry.role in ("user", "assistant") and not entry.meta.get("compaction"):
            answer = _answer(entries, at)
            for sentence in sentences(plain_text(entry)):
                yield _Said(sentence, entry.role, entry.id, at, answer)


def _answer(entries: Sequence[Entry], at: int) -> str:
    """What the other side said next; '' if nothing yet."""
    other = "assistant" if entries[at].role == "user" else "user"
    after = (plain_text(entry) for entry in entries[at + 1 : at + 50] if entry.role == other)
    return next(filter(None, after), "")


def _weighed(said: _Said, common: frozenset[str], seen: Counter[str]) -> Statement | None:
    found = tuple(specifics(said.text, common))
    plain = said.text.lower()
    kind, weight = _cue(plain, found)
    if _is_question(plain):
        return _asked(said, kind, found)
    if _is_doubtful(plain, said.role) or (weight <= WEAK and not found):
        return None if kind != "question" else _statement(said, "question", 0.6, found)
    confidence = (
        max(weight, SPECIFIC_BONUS if said.role == "user" else 0.0)
        + _specific_weight(found)
        + _novelty(said.text, seen)
    )
    confidence += 0.1 if said.role == "user" else -0.05
    confidence -= 0.3 if HEDGE.search(plain) and kind not in ("question", "preference") else 0.0
    if confidence < WORTH:
        return None
    return _statement(said, kind, confidence, found)


def _statement(said: _Said, kind: str, confidence: float, found: tuple[Specific, ...]) -> Statement:
    if kind == "fact":
        kind = next((specific.kind for specific in found), kind)
    rounded = round(min(confidence, 0.99), 2)
    return Statement(said.text, kind, rounded, said.entry, said.at, found, subject_of(said.text))


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(" \"')").endswith(("?", "？")) or ASKING.match(sentence) is not None


def _is_doubtful(sentence: str, role: str) -> bool:
    offered = role == "assistant" and OFFER.search(sentence) is not None
    return offered or DOUBT.search(sentence) is not None


def _asked(said: _Said, kind: str, found: tuple[Specific, ...]) -> Statement | None:
    """A question is kept if it says of itself that it is open, or if nobody has answered it."""
    if kind == "question" or not said.answer or UNANSWERED.search(said.answer[:500].lower()):
        return _statement(said, "question", 0.6 if said.role == "user" else 0.55, found)
    return None


def _cue(sentence: str, found: Sequence[Specific]) -> tuple[str, float]:
    """What kind of fact the sentence would be, and how sure that is."""
    named = any(specific.kind == "name" for specific in found)
    best = ("fact", 0.0)
    for kind, weight, pattern in CUES:
        # Who owns or leads something is worth knowing; that something is owned is not.
        sure = weight if named or (kind, weight) != ("identity", FAIR) else 0.0
        if sure > best[1] and pattern.search(sentence):
            best = (kind, sure)
    return best


def _specific_weight(found: Sequence[Specific]) -> float:
    if any(specific.kind in EXACT for specific in found):
        return 0.25
    return 0.2 if found else 0.0


def _novelty(sentence: str, seen: Counter[str]) -> float:
    """From -0.15 for words that are said all the time to 0.15 for words that are said nowhere else."""
    if not seen:
        return 0.0
    content = set(_words(sentence))
    if not content:
        return 0.0
    rare = sum(seen[word] <= RARE for word in content)
    return 0.3 * rare / len(content) - 0.15


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in STOPWORDS]


def _newest(found: Iterable[Statement]) -> list[Statement]:
    """Each statement once, and of those about one subject the newest."""
    latest: dict[str, Statement] = {}
    for statement in found:
        key = statement.subject or " ".join(_WORD.findall(statement.text.lower())) or statement.text
        key += "" if statement.subject else "".join(specific.text for specific in statement.specifics)
        latest.pop(key, None)
        latest[key] = statement
    return sorted(latest.values(), key=lambda statement: statement.at)
