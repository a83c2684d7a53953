"""Which edit wrote a line: lines of a file or of a commit, beside edits that may have written them. Pure.

Only lines that an edit added count for it. A line that tells little counts only beside others of the same edit, and what is
not plain stays unknown: a wrong answer is worse than none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.edits.edit import Hunk
from hitherto.edits.lines import WORDS, plain, weight, words_of
from hitherto.edits.patches import FileDiff
from hitherto.model import Value

VALUES = (0.0, 0.25, 1.0, 2.0)
"""What a line is worth as evidence, by its weight."""
FEW_SESSIONS = 3
"""A line that more sessions wrote is worth less."""
ENOUGH = 2.0
"""So much evidence in a row is enough in the same file of the same repository."""
SAME_FILE = 3
ELSEWHERE = {SAME_FILE: ENOUGH, 2: 5.0, 1: 5.0}
"""How much is enough, by how close the file of the edit is."""
REWRAPPED_WORDS = 8
"""So many words in a row show that lines were only broken anew."""
REPEATED = 20
"""Of words that are found more often, so many places are looked at."""
LEAST_ALONE = 0.5
"""A session for which less speaks must have written so much of all."""
BRIDGED = 2
"""So many lines without any letter or digit may stand between two of a run."""


class SourceLine(Value, frozen=True):
    """A line whose origin is wanted. It was there at `until` (ms), and not at `since`, if that is known. `is_copy`: the same line
    is elsewhere in the file too, so that it tells little; `is_moved`: it was elsewhere before, so that only an edit since then can
    have written it. `former_path` is what the file was called when the line was last changed."""

    path: str
    number: int
    text: str
    until: int | None = None
    since: int | None = None
    is_copy: bool = False
    is_moved: bool = False
    former_path: str | None = None


class Repository(Value, frozen=True):
    """A repository by what can be known again of it elsewhere: the names of its remotes or its folder, and its first commit."""

    names: tuple[str, ...] = ()
    root: str | None = None


class LineOrigin(Value, frozen=True):
    """The session and the message that wrote a line, how sure that is (0 to 1), the prompt that led to it, and the model."""

    session: str
    message: str
    at: int
    confidence: float
    prompt: str | None = None
    model: str | None = None


class Suspect(NamedTuple):
    """An edit that may have written lines. `closeness` is 3 for the same file of the same repository, 2 for another file of it,
    1 for a file of the same path elsewhere. `exact`: it is known what was there before."""

    session: str
    message: str
    at: int
    hunks: tuple[Hunk, ...]
    exact: bool
    path: str
    closeness: dict[str, int]
    model: str | None = None


class Claim(NamedTuple):
    """A suspect's claim to a line: how much speaks for it."""

    suspect: int
    evidence: float
    confidence: float
    rank: tuple[float, ...]


def net_added(hunks: Iterable[Hunk]) -> list[str]:
    """The lines that an edit added, without those that it only moved or formatted."""
    hunks = tuple(hunks)
    gone = Counter(plain(line) for hunk in hunks for line in hunk.removed)
    kept: list[str] = []
    for line in (line for hunk in hunks for line in hunk.added):
        key = plain(line)
        if gone[key] > 0 and key:
            gone[key] -= 1
        else:
            kept.append(line)
    return kept


def origins(
    lines: Sequence[SourceLine], suspects: Sequence[Suspect], sessions_with: dict[str, int]
) -> list[LineOrigin | None]:
    """The origin of each line; None if it is not known. `sessions_with` says how many sessions wrote a line, by its plain form."""
    looked = [_Looked(line, sessions_with) for line in lines]
    claims: list[Claim | None] = [None] * len(lines)
    all_added = [net_added(suspect.hunks) for suspect in suspects]
    by_plain: defaultdict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(looked):
        if each.plain:
            by_plain[each.plain].append(place)
    for number, suspect in enumerate(suspects):
        for run in _runs(looked, suspect, by_plain, all_added[number]):
            _claim(looked, claims, number, suspect, run)
    rewrapped = _Rewrapped(looked, [place for place, claim in enumerate(claims) if claim is None])
    for number, suspect in enumerate(suspects):
        known = set(map(plain, all_added[number]))
        for run in rewrapped.runs(words_of(all_added[number]), REWRAPPED_WORDS):
            other = any(looked[place].plain not in known for place in run)
            if other and all(_is_possible(looked[place], suspect) for place in run):
                _claim(looked, claims, number, suspect, run, rewrapped=True)
    _spread(looked, claims, all_added)
    _bridge(looked, claims)
    return [None if claim is None else _origin(suspects[claim.suspect], claim) for claim in claims]


class _Looked:
    """A line with what is needed of it again and again."""

    def __init__(self, line: SourceLine, sessions_with: dict[str, int]) -> None:
        self.line = line
        self.plain = plain(line.text, notebook=line.path.endswith(".ipynb"))
        self.weight = weight(line.text)
        many = max(sessions_with.get(self.plain, 1), FEW_SESSIONS)
        self.value = VALUES[self.weight] * FEW_SESSIONS / many


def _is_possible(each: _Looked, suspect: Suspect) -> bool:
    """Whether the edit can have written the line at all."""
    in_time = each.line.until is None or suspect.at < each.line.until
    closeness = _closeness(each.line, suspect)
    if each.line.since is None or suspect.at < each.line.since:
        # It may have been copied from what the edit wrote, and was committed before.
        copied = each.line.since is not None and (each.line.is_copy or closeness != SAME_FILE)
        in_time = in_time and not each.line.is_moved and not copied
    return in_time and closeness > 0


def _runs(
    looked: Sequence[_Looked], suspect: Suspect, by_plain: dict[str, list[int]], added: Sequence[str]
) -> Iterator[list[int]]:
    """Neighbouring lines that the edit has all added; lines without a letter may stand between them."""
    notebook = suspect.path.endswith(".ipynb")
    written = Counter(plain(line, notebook=notebook) for line in added)
    places = {
        each: [place for place in by_plain.get(each, ()) if _is_possible(looked[place], suspect)]
        for each in written
    }
    found = list(_joined(looked, (place for own in places.values() for place in own)))
    if not any(len(own) > written[each] for each, own in places.items()):
        yield from found
        return
    worth = {place: sum(looked[each].value for each in run) for run in found for place in run}
    kept = (
        place for each, own in places.items() for place in _best_copies(looked, own, written[each], worth)
    )
    yield from _joined(looked, kept)


def _joined(looked: Sequence[_Looked], places: Iterable[int]) -> Iterator[list[int]]:
    """These lines, those together that are neighbours."""
    run: list[int] = []
    for place in sorted(places):
        if run and not _are_neighbours(looked, run[-1], place):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _best_copies(
    looked: Sequence[_Looked], places: list[int], times: int, worth: dict[int, float]
) -> Sequence[int]:
    """Of more copies of a line than an edit wrote, those with the most of its lines around them; of equal ones the first."""
    if len(places) <= times or looked[places[0]].weight < 2:
        return places
    order = sorted(places, key=lambda place: (-worth[place], looked[place].line.until or 0, place))
    return order[:times]


def _closeness(line: SourceLine, suspect: Suspect) -> int:
    """How close the file of an edit is to that of a line, under any of its names."""
    names = (line.path, line.former_path or line.path)
    return max(suspect.closeness.get(name, 0) for name in names)


def _are_neighbours(looked: Sequence[_Looked], first: int, second: int) -> bool:
    """Whether nothing but a few empty lines stands between two lines."""
    one, other = looked[first].line, looked[second].line
    if one.path != other.path or other.number - one.number > 1 + BRIDGED:
        return False
    return other.number == one.number + 1 or (
        all(not looked[place].plain for place in range(first + 1, second))
        and other.number - one.number == second - first
    )


class _Rewrapped:
    """Lines that no edit has as they are, by their words: they may have been broken anew."""

    def __init__(self, looked: Sequence[_Looked], places: Iterable[int]) -> None:
        self._told: list[tuple[str, int]] = []
        last: int | None = None
        for place in places:
            if last is not None and not _follows(looked[last].line, looked[place].line):
                self._told.append(("", -1))  # no word is empty, so no run crosses it
            self._told += [(word, place) for word in words_of([looked[place].line.text])]
            last = place
        self._sizes = Counter(place for _, place in self._told)
        self._starts: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        words = [word for word, _ in self._told]
        for at in range(len(words) - WORDS + 1):
            self._starts[tuple(words[at : at + WORDS])].append(at)

    def runs(self, words: Sequence[str], least: int) -> Iterator[list[int]]:
        """Lines all of whose words are among these, one after the other, at least so many."""
        done = 0
        for at in range(len(words) - WORDS + 1):
            if at < done:
                continue
            starts = self._starts.get(tuple(words[at : at + WORDS]), ())
            sizes = [(self._length(start, words, at), start) for start in starts[:REPEATED]]
            size, start = max(sizes, default=(0, 0))
            if size >= least and (run := self._covered(start, size)):
                yield run
                done = at + size

    def _length(self, start: int, words: Sequence[str], at: int) -> int:
        """How many words are the same from here on."""
        size = 0
        while start + size < len(self._told) and at + size < len(words):
            if self._told[start + size][0] != words[at + size]:
                break
            size += 1
        return size

    def _covered(self, start: int, size: int) -> list[int]:
        """The lines all of whose words are among these."""
        inside = Counter(place for _, place in self._told[start : start + size])
        return [place for place in sorted(inside) if inside[place] == self._sizes[place]]


def _follows(one: SourceLine, other: SourceLine) -> bool:
    return one.path == other.path and other.number == one.number + 1


def _claim(
    looked: Sequence[_Looked],
    claims: list[Claim | None],
    number: int,
    suspect: Suspect,
    run: list[int],
    *,
    rewrapped: bool = False,
) -> None:
    """Note the claim of an edit to neighbouring lines, if enough speaks for it and nothing speaks more for another."""
    evidence = sum({looked[place].plain: looked[place].value for place in run}.values())
    closeness = min(_closeness(looked[place].line, suspect) for place in run)
    if not _is_enough(looked, suspect, run, evidence, closeness):
        return
    sure = _confidence(suspect, evidence, closeness, rewrapped=rewrapped)
    order = suspect.at if suspect.exact else -suspect.at
    rank = (closeness == SAME_FILE, suspect.exact, not rewrapped, min(evidence, 6.0) // 2, order, evidence)
    for place in run:
        held = claims[place]
        if held is None or rank > held.rank:
            claims[place] = Claim(number, evidence, sure, rank)


def _is_enough(
    looked: Sequence[_Looked], suspect: Suspect, run: Sequence[int], evidence: float, closeness: int
) -> bool:
    line = looked[run[0]].line
    needed = ELSEWHERE[closeness] + (0 if suspect.exact else 1)
    if closeness != SAME_FILE and line.since is None:
        needed *= 2  # it may be a copy
    if evidence >= needed:
        return True
    in_time = line.since is None or suspect.at >= line.since
    alone = closeness == SAME_FILE and suspect.exact and in_time
    return alone and evidence >= 1 and not any(looked[place].line.is_copy for place in run)


def _confidence(suspect: Suspect, evidence: float, closeness: int, *, rewrapped: bool) -> float:
    sure = 0.7 if evidence < ENOUGH else 0.85 if evidence < 2 * ENOUGH else 0.95
    sure -= 0.1 * (SAME_FILE - closeness) + 0.15 * (not suspect.exact) + 0.2 * rewrapped
    return round(max(sure, 0.1), 2)


def _spread(
    looked: Sequence[_Looked], claims: list[Claim | None], all_added: Sequence[Sequence[str]]
) -> None:
    """Lines that tell little, beside one of an edit, belong to it too if they stood beside it there."""
    pairs: dict[int, set[tuple[str, str]]] = {}
    for step, places in ((1, range(len(claims))), (-1, range(len(claims) - 1, -1, -1))):
        for place in places:
            claim, beside = claims[place], place + step
            if claim is None or not 0 <= beside < len(claims) or claims[beside] is not None:
                continue
            first, second = sorted((place, beside))
            if looked[beside].weight > 1 or not _follows(looked[first].line, looked[second].line):
                continue
            if claim.suspect not in pairs:
                pairs[claim.suspect] = set(pairwise(map(plain, all_added[claim.suspect])))
            if (looked[first].plain, looked[second].plain) in pairs[claim.suspect]:
                claims[beside] = claim


def _bridge(looked: Sequence[_Looked], claims: list[Claim | None]) -> None:
    """Lines that tell nothing belong to the edit of both of their neighbours, if these are of one."""
    last: int | None = None
    for place, claim in enumerate(claims):
        if claim is None:
            continue
        if last is not None and claims[last].suspect == claim.suspect:  # type: ignore[union-attr]
            between = range(last + 1, place)
            one, other = looked[last].line, looked[place].line
            joined = one.path == other.path and other.number - one.number == place - last
            if joined and len(between) <= BRIDGED and all(looked[each].weight == 0 for each in between):
                for each in between:
                    claims[each] = claim
        last = place


def _origin(suspect: Suspect, claim: Claim) -> LineOrigin:
    return LineOrigin(
        session=suspect.session,
        message=suspect.message,
        at=suspect.at,
        confidence=claim.confidence,
        model=suspect.model,
    )


def lines_of_diff(
    files: Iterable[FileDiff], until: int | None = None, since: int | None = None
) -> list[SourceLine]:
    """The lines that a diff added, as lines whose origin is wanted."""
    files = [file for file in files if file.path is not None]
    removed = [line for file in files for line in file.removed]
    gone = {plain(line) for line in removed}
    lines: list[SourceLine] = []
    for file in files:
        seen = Counter(plain(text) for text in (*file.kept, *(line.text for line in file.added)))
        lines += [
            SourceLine(
                path=file.path or "",
                number=line.number,
                text=line.text,
                until=until,
                since=since,
                is_copy=seen[plain(line.text)] > 1,
                is_moved=plain(line.text) in gone,
            )
            for line in file.added
        ]
    rewrapped = _Rewrapped([_Looked(line, {}) for line in lines], range(len(lines)))
    moved = {place for run in rewrapped.runs(words_of(removed), WORDS) for place in run}
    return [replace(line, is_moved=line.is_moved or place in moved) for place, line in enumerate(lines)]


class Cause(Value, frozen=True):
    """A session that made part of a change: its share of the lines that tell something, how sure that is, and its prompts."""

    session: str
    share: float
    confidence: float
    prompts: tuple[str, ...] = ()


def causes(lines: Sequence[SourceLine], found: Sequence[LineOrigin | None]) -> tuple[Cause, ...]:
    """The sessions that made a change, the one with the largest share first; none that only few lines speak for."""
    telling = [(line, origin) for line, origin in zip(lines, found, strict=True) if weight(line.text) > 1]
    by_session: defaultdict[str, list[tuple[SourceLine, LineOrigin]]] = defaultdict(list)
    for line, origin in telling:
        if origin is not None:
            by_session[origin.session].append((line, origin))
    made: list[Cause] = []
    for session, own in by_session.items():
        evidence = sum({plain(line.text): VALUES[weight(line.text)] for line, _ in own}.values())
        share = len(own) / len(telling)
        if evidence < ENOUGH and share < LEAST_ALONE:
            continue
        sure = sum(origin.confidence for _, origin in own) / len(own)
        prompts = dict.fromkeys(
            origin.prompt for _, origin in sorted(own, key=lambda each: each[1].at) if origin.prompt
        )
        made.append(
            Cause(session=session, share=round(share, 4), confidence=round(sure, 2), prompts=tuple(prompts))
        )
    return tuple(sorted(made, key=lambda cause: (-cause.share, cause.session)))
