"""What a contender must be able to do to be measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from bench.workloads.messages import Message


class Contender(ABC):
    """A store of conversations, used the way its own documentation says and with its own defaults.

    Sessions are named by a text; the first message makes the session.
    """

    @abstractmethod
    async def open(self, place: str) -> None:
        """Make an empty store in the folder, or in the database, `place`."""

    @abstractmethod
    async def append(self, session: str, message: Message) -> None:
        """Return when the message is stored as safely as this contender stores anything."""

    @abstractmethod
    async def history(self, session: str) -> Sequence[object]:
        """The whole conversation, oldest first, as the objects that this contender gives its users."""

    @abstractmethod
    async def last(self, session: str, count: int) -> Sequence[object]:
        """The newest `count` messages."""

    @abstractmethod
    async def close(self) -> None:
        """Give back files and connections."""

    async def fill(self, session: str, messages: Sequence[Message]) -> None:
        """Store many messages by the quickest way there is; never measured."""
        for message in messages:
            await self.append(session, message)

    async def settle(self) -> None:  # noqa: B027  most have nothing to do
        """Return when everything that follows from the appends (indexes, counters) is up to date."""


class KeepsBytes(Contender):
    """A contender that can also hand out messages as they are stored."""

    @abstractmethod
    async def stored(self, session: str) -> Sequence[bytes]:
        """The whole conversation, oldest first, as stored bytes."""


class Lists(Contender):
    """A contender that can list sessions."""

    @abstractmethod
    async def make_sessions(self, count: int) -> None:
        """Make `count` sessions in an empty store; never measured."""

    @abstractmethod
    async def newest(self, count: int) -> Sequence[object]:
        """The `count` sessions with the newest activity, or all of them where it cannot give fewer."""
