"""What clients said and what they were told of it, held against the store that is left after the kills."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import hitherto
from hitherto.limits import HISTORY_PAGE
from hitherto.model import LOCAL, Entry, plain_text
from hitherto.service import Sessions

Json = dict[str, Any]


class Message(NamedTuple):
    """Something to say in a session; its first word is its mark, which no other has."""

    mark: str
    session_id: str
    text: str


class AcknowledgementLog:
    """What was said to the servers of one store. What has no answer is said again before anything else."""

    def __init__(self, messages: Iterator[Message], *, keyed: bool = True) -> None:
        self._messages, self._keyed = messages, keyed
        self._waiting: deque[Message] = deque()
        self.said: dict[str, Message] = {}
        self.acknowledged: dict[str, str] = {}
        """By which door each was acknowledged."""
        self.unknown: dict[str, int] = {}
        """When each was left without an answer for the last time, in milliseconds."""
        self.refused: list[str] = []

    def next(self, *, fresh: bool = True) -> Message | None:
        """What to say now; nothing, if it must not be `fresh` and all else was said."""
        if self._waiting:
            return self._waiting.popleft()
        if not fresh:
            return None
        message = next(self._messages)
        self.said[message.mark] = message
        return message

    def unanswered(self, message: Message, now: int) -> None:
        """Nobody knows what became of it."""
        self.unknown[message.mark] = now
        self._waiting.append(message)

    def params(self, message: Message) -> Json:
        """How a message is said."""
        params: Json = {
            "session_id": message.session_id,
            "messages": [{"role": "user", "content": message.text}],
        }
        return {**params, "idempotency_key": message.mark} if self._keyed else params


@dataclass(frozen=True, slots=True)
class KillTally:
    """How stores stand to what was said. Counts of messages, but for `kills`, which are counted by door."""

    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    """By door."""
    lost: int = 0
    """Acknowledged, and not there word for word."""
    twice: int = 0
    unsaid: int = 0
    """There, though nobody has said them."""
    unknown: int = 0
    """Left without an answer by a kill, and said again where the door has keys for that."""
    kept: int = 0
    """Those of them that had been stored all the same before they were said again."""
    examinations: int = 0
    """How often a store was examined by the program's own check."""
    problems: tuple[str, ...] = ()
    """What examinations and the programs' logs told, and requests that were refused."""

    def __add__(self, other: KillTally) -> KillTally:
        return KillTally(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def whole(self) -> bool:
        """Whether all stores are as they were promised."""
        return not any((self.lost, self.twice, self.unsaid, self.problems))

    def told(self) -> str:
        """In words."""
        return f"{self.acknowledged.total():,} acknowledged, {self.lost:,} lost, {self.faults()}"

    def faults(self) -> str:
        """What is wrong beside what is lost."""
        wrong = (
            (self.twice, "stored twice"),
            (self.unsaid, "that nobody said"),
            (len(self.problems), f"problems, the first: {self.problems[0] if self.problems else ''}"),
        )
        return ", ".join(f"{count:,} {words}" for count, words in wrong if count) or "nothing else wrong"


async def compare_with_store(url: str, session_ids: Sequence[str], book: AcknowledgementLog) -> KillTally:
    """Read everything that these sessions hold."""
    async with hitherto.open(url) as sessions:
        entries = [entry for each in session_ids async for entry in entries_of(sessions, each)]
    found: Counter[str] = Counter()
    kept = 0
    whole: set[str] = set()
    for entry in entries:
        text = plain_text(entry)
        mark = text.partition(" ")[0]
        found[mark] += 1
        said = book.said.get(mark)
        if said is not None and said.text == text:
            whole.add(mark)
        kept += found[mark] == 1 and mark in book.unknown and entry.at <= book.unknown[mark]
    return KillTally(
        acknowledged=Counter(book.acknowledged.values()),
        lost=len(book.acknowledged.keys() - whole),
        twice=sum(count - 1 for count in found.values()),
        unsaid=len(found.keys() - whole),
        unknown=len(book.unknown),
        kept=kept,
        problems=tuple(book.refused),
    )


async def entries_of(sessions: Sessions, session_id: str) -> AsyncIterator[Entry]:
    """Everything that was said in a session, from its beginning."""
    after: str | None = None
    while True:
        page = await sessions.history(LOCAL, session_id, view="conversation", after=after, limit=HISTORY_PAGE)
        for entry in page.entries:
            yield entry
        if (after := page.next) is None:
            return
