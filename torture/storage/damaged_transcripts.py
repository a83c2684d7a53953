"""Transcripts and databases of other agents, damaged in every way: what is whole in them is read, and they are left alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import hitherto
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL, Filter, Session, Text
from hitherto.service import Sessions
from tests.claude import transcripts
from tests.sources.damage import KINDS, WRITTEN, Kind
from tests.sources.row_damage import DATABASES, FILES, ROWS, damage_row, emptied
from torture.trial.commands import home_of
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

PATIENCE = 3_600
LARGE = ("huge_line", "huge")
MAY_GO_UNTOLD = ("empty", "unknown_kind", "wrong_types")
"""Damage of a row that leaves something which an agent might have written."""


Told = Literal["yes", "no", "if lost", "either"]


class Expected(NamedTuple):
    """A session that lies somewhere: where, what it still says at least and at most, and whether damage is told of it."""

    name: str
    place: str
    least: Sequence[str]
    most: Sequence[str]
    told: Told


class Corpus:
    """Files in folders of their own, and what is to be read from them."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._dice = setting, setting.dice("damage")
        self._folder = setting.folder / "agents"
        self.sources: list[str] = []
        self.expected: list[Expected] = []
        self.unreadable = 0
        """How many databases are no databases any more."""

    def fill(self, rounds: int, kinds: int) -> None:
        """So many rounds of so many kinds of damage, for every format."""
        for place, name in enumerate(WRITTEN):
            self._lines(
                name, place * 1_000, [kind for _ in range(rounds) for kind in self._some(KINDS, kinds)]
            )
        for name in DATABASES:
            for number, change in enumerate(
                change for _ in range(rounds) for change in self._some((*ROWS, *FILES), kinds)
            ):
                self._database(name, number, change)

    def _some(self, kinds: Sequence[Any], count: int) -> list[Any]:
        known = [kind for kind in kinds if not self._setting.short or _name(kind) not in LARGE]
        return self._dice.sample(known, min(count, len(known)))

    def _talk(self, first: int = 0) -> tuple[list[str], int]:
        """What is said, and which of it is hit: neither the first nor the last."""
        texts = [f"message {number:03}" for number in range(first, first + self._dice.randrange(4, 30))]
        return texts, self._dice.randrange(1, len(texts) - 1)

    def _lines(self, name: str, first: int, kinds: Sequence[Kind]) -> None:
        written, home = WRITTEN[name], self._folder / name
        self.sources.append(f"{name.partition('-')[0]}={home}")
        for number, kind in enumerate(kinds, first + 1):
            texts, hit = self._talk()
            path = written.save(home, number, kind.harm(written.lines(number, texts), texts[hit].encode()))
            left = kind.left(written, texts, hit)
            self._expect(f"{name} {kind.name}", str(path), left, left, "yes" if kind.told else "no")
        texts, _ = self._talk()
        path = written.save(home, first, b"".join(written.lines(first, texts)))
        self._expect(f"{name} whole", str(path), texts, texts, "no")

    def _database(self, name: str, number: int, change: Any) -> None:
        home = self._folder / f"{name}-database-{number}"
        self.sources.append(f"{name}={home}")
        (texts, hit), (others, _) = self._talk(), self._talk(500)
        # Ids of sessions are unique among all databases of an agent.
        one, two = (transcripts.session_id(100_000 + 2 * number + each) for each in (0, 1))
        made = DATABASES[name].write(home, {one: texts, two: others})
        if change in FILES:
            made.close()
            made.path.write_bytes(change(made.path.read_bytes()))
            # An empty file is a database in which nothing is yet.
            self.unreadable += change is not emptied
        else:
            damage_row(made, DATABASES[name], texts[hit], change)
            made.close()
            least = [text for text in texts if text != texts[hit]]
            told: Told = "either" if _name(change) in MAY_GO_UNTOLD else "if lost"
            self._expect(f"{name} database {_name(change)}", f"{name}:{one}", least, texts, told)
            self._expect(f"{name} database beside", f"{name}:{two}", others, others, "no")

    def _expect(self, name: str, place: str, least: Sequence[str], most: Sequence[str], told: Told) -> None:
        self.expected.append(Expected(name, place, least, most, told))

    def hashes(self) -> dict[str, str]:
        """All files and what is in them."""
        found = (path for path in self._folder.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def _name(kind: Any) -> str:
    return kind.name if isinstance(kind, Kind) else kind.__name__


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """One sync over all of it, by the command."""
    corpus = Corpus(setting)
    corpus.fill(setting.of(short=1, full=8), setting.of(short=3, full=len(KINDS)))
    before = corpus.hashes()
    report = _synced(setting, ",".join(corpus.sources), environment)
    changed = sum(before[name] != found for name, found in corpus.hashes().items())
    wrong = asyncio.run(_wrong(store_in(setting.folder), corpus.expected))
    if len(report["failed"]) != corpus.unreadable:
        wrong.append(f"{corpus.unreadable} databases cannot be read, told of {report['failed']}")
    for line in wrong[:20]:
        setting.say(line)
    figure = (
        f"{len(before):,} files of {len(WRITTEN) + len(DATABASES)} formats, {len(KINDS)} kinds of damage: of "
        f"{len(corpus.expected):,} sessions {len(wrong)} not read as they should be; {report['damaged_records']:,} damaged "
        f"records and {len(report['failed'])} unreadable files told; {changed} files changed"
    )
    met = not wrong and not changed and set(before) == set(corpus.hashes())
    return Outcome(met=met, figure=figure, counts={"inputs": len(before), "lost": len(wrong)})


def _synced(setting: Setting, sources: str, environment: Environment) -> Any:
    told = {**home_of(setting.folder / "home", environment), "HITHERTO_SOURCES": sources}
    ran = subprocess.run(
        [sys.executable, "-m", "hitherto", "sync", "--json", "--store", store_in(setting.folder)],
        env={**os.environ, **told},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    if not ran.stdout:
        raise RuntimeError(f"the sync ended with {ran.returncode}: {ran.stderr.decode()[-2000:]}")
    return json.loads(ran.stdout)


async def _wrong(url: str, expected: Sequence[Expected]) -> list[str]:
    """What was not read as it should be."""
    async with hitherto.open(url) as sessions:
        places = await _places(sessions)
        found = [(each, await _read(sessions, places.get(each.place, each.place))) for each in expected]
    return [line for each, read in found for line in _judged(each, *read)]


async def _places(sessions: Sessions) -> dict[str, str]:
    """The sessions by the files that they were read from."""
    places: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page = await sessions.find(LOCAL, Filter(archived="include"), cursor=cursor, limit=500)
        places |= {session.meta.get("path", session.id): session.id for session in page.sessions}
        if (cursor := page.cursor) is None:
            return places


async def _read(sessions: Sessions, session_id: str) -> tuple[list[str], int]:
    """What a session says, each text without what damage has put behind it, and how much damage was told."""
    try:
        session: Session = await sessions.get(LOCAL, session_id)
    except SessionNotFound:
        return [], 0
    page = await sessions.history(LOCAL, session_id, view="conversation", limit=10_000)
    texts = [part.text for entry in page.entries for part in entry.parts if isinstance(part, Text)]
    said = [text[: len("message 000")] for text in texts if text.startswith("message ")]
    return said, session.meta.get("damaged_records", 0)


def _judged(each: Expected, said: list[str], damaged: int) -> Iterator[str]:
    missing, strange = set(each.least) - set(said), [text for text in said if text not in each.most]
    if missing or strange or len(set(said)) != len(said):
        yield f"{each.name}: lacks {sorted(missing)}, has too much {strange}, says {len(said)} of {len(each.most)}"
    lost = len(said) < len(each.most)
    wanted = {"yes": True, "no": False, "if lost": lost, "either": bool(damaged)}[each.told]
    if bool(damaged) != wanted:
        yield f"{each.name}: told {damaged} damaged records"
