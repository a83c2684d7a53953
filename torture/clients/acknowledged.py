"""Keeps what was said to a server and what it answered, and holds a store to it: the store is never its own witness."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

import hitherto
from bench.workloads.messages import prose
from bench.workloads.server_load import Server
from bench.workloads.websocket import Wire, request
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL, plain_text
from hitherto.service import Sessions
from torture.kills.outcome import entries_of

LONGEST = 4_000
"""What is longer goes on with the same words."""
Json = dict[str, Any]


class Refusal(NamedTuple):
    """A message that was answered with an error, and the stable code of that."""

    mark: str
    code: str


@dataclass(slots=True)
class Pages:
    """What one client said in one session. A message is known by its first word, its mark, which no other has."""

    session_id: str
    acknowledged: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    def copy(self) -> Pages:
        """What stands there now."""
        return Pages(self.session_id, self.acknowledged[:], self.refused[:])


def mark_for(name: str, words: str) -> str:
    """The first word of a message that goes on with these: it tells whether they are still the same."""
    return f"{name}k{crc32(words.encode()):08x}"


def mark_of(text: str) -> str:
    """The mark of a message that was found; of one whose words are not those that were said, none that anybody has."""
    mark, _, words = text.partition(" ")
    return mark if mark == mark_for(mark.rpartition("k")[0], words) else f"{mark} with other words"


class Client:
    """Somebody who appends to one session through a socket, one message after the other."""

    def __init__(self, wire: Wire, session_id: str, name: str, dice: random.Random) -> None:
        self._wire, self._dice, self.name = wire, dice, name
        self._said = 0
        self.pages = Pages(session_id)

    async def say(self, most: int = LONGEST) -> str | None:
        """Append a message; the code of the error, or None if it was acknowledged."""
        self._said += 1
        size = self._dice.randint(5, most)
        words = prose(self._dice, min(size, LONGEST)) + " and on" * (max(0, size - LONGEST) // 7)
        mark = mark_for(f"{self.name}n{self._said}", words)
        given = {
            "session_id": self.pages.session_id,
            "messages": [{"role": "user", "content": f"{mark} {words}"}],
        }
        answer = await self.ask("session.append", given)
        code = code_of(answer)
        if code is None:
            self.pages.acknowledged.append(mark)
        else:
            self.pages.refused.append(Refusal(mark, code))
        return code

    async def ask(self, method: str, params: Json) -> Json:
        """The whole answer to a request."""
        self._wire.send(request(method, params))
        answer: Json = msgspec.json.decode(await self._wire.receive())
        return answer


UNFORESEEN = ("error", "")
"""The codes of an error that nobody has foreseen: a fault of the program's own."""


def code_of(answer: Json) -> str | None:
    """The stable code of an error; None if it is none, and nothing if it has no code."""
    if "error" not in answer:
        return None
    return str((answer["error"].get("data") or {}).get("code", ""))


@asynccontextmanager
async def clients(server: Server, count: int, dice: random.Random) -> AsyncIterator[list[Client]]:
    """So many of them, each with a socket and a session of its own."""
    wires: list[Wire] = []
    made: list[Client] = []
    try:
        for number in range(count):
            wire = await server.wire()
            wires.append(wire)
            session_id = (await wire.call("session.create", {}))["session_id"]
            made.append(Client(wire, session_id, f"c{number}x{dice.randrange(10**6)}", dice))
        yield made
    finally:
        for wire in wires:
            wire.close()


class Judged(NamedTuple):
    """How a store stands to what was said: counts of messages, and what its own examination tells."""

    acknowledged: int = 0
    lost: int = 0
    """Acknowledged, and not there word for word."""
    twice: int = 0
    denied: int = 0
    """Refused, and there all the same."""
    moved: int = 0
    """Sessions whose acknowledged messages are not in the order in which they were acknowledged."""
    unfound: int = 0
    """Sessions whose last acknowledged message is not found by a search."""
    problems: tuple[str, ...] = ()

    def __add__(self, other: Any) -> Judged:
        return Judged(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def whole(self) -> bool:
        """Whether the store is as it was promised."""
        return not any((self.lost, self.twice, self.denied, self.moved, self.unfound, self.problems))

    def told(self) -> str:
        """In words, for the scorecard."""
        return f"{self.acknowledged:,} acknowledged: {self.lost:,} lost; {self.faults()}"

    def faults(self) -> str:
        """What is wrong beside what is lost."""
        wrong = (
            (self.twice, "messages stored twice"),
            (self.denied, "stored though refused"),
            (self.moved, "sessions out of order"),
            (self.unfound, "not found by search"),
            (len(self.problems), "problems of the store"),
        )
        return ", ".join(f"{count:,} {words}" for count, words in wrong if count) or "nothing else wrong"


async def judged(url: str, pages: Iterable[Pages]) -> Judged:
    """Open the store and hold it to the pages."""
    async with hitherto.open(url) as sessions:
        found = [await _held(sessions, each) for each in pages]
        health = await sessions.admin.check(repair=False)
    return sum(found, Judged(problems=health.problems))


async def _held(sessions: Sessions, pages: Pages) -> Judged:
    there = await marks_in(sessions, pages.session_id) if pages.acknowledged else []
    counted, wanted = Counter(there), set(pages.acknowledged)
    kept = [mark for mark in there if mark in wanted]
    last = pages.acknowledged[-1:]
    return Judged(
        acknowledged=len(pages.acknowledged),
        lost=len(wanted - counted.keys()),
        twice=sum(count - 1 for count in counted.values()),
        denied=sum(refusal.mark in counted for refusal in pages.refused),
        moved=kept != [mark for mark in pages.acknowledged if mark in counted],
        unfound=sum([not (await sessions.search(LOCAL, mark)).hits for mark in last if mark in counted]),
    )


async def marks_in(sessions: Sessions, session_id: str) -> Sequence[str]:
    """The mark of every message of a session, in order; none if the session itself is gone."""
    try:
        return [mark_of(plain_text(entry)) async for entry in entries_of(sessions, session_id)]
    except SessionNotFound:
        return []
