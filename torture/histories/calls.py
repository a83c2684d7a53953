"""Calls that clients make at the same time, as plain values, so that they can be written down and made again on a model.

Nothing in a call or its answer is left to chance: the clock stands still, and whatever a call makes has its id from the call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitherto.model import Principal, Session
from hitherto.service import Sessions
from tests.support.conversations import say
from tests.support.outcomes import outcome

FIRST = ("a", "b")
"""The sessions that every history begins with, and how many messages each has."""
MESSAGES = 4
LEASE_MS = 60_000


class Call(NamedTuple):
    """What is asked: of which session, and with what. `name` is its own: what it makes is called so."""

    name: str
    kind: str
    session: str
    given: str = ""
    fence: int | None = None


class Event(NamedTuple):
    """A call with the moments between which it happened (of a clock that all clients have), and what it came to."""

    call: Call
    began: int
    ended: int
    answer: str


class Named:
    """New ids: each is that of the call that is being made, however often it is tried."""

    def __init__(self) -> None:
        self.name = ""

    def __call__(self) -> str:
        return f"of-{self.name}"


Make = Callable[[Sessions, Principal, Call], Awaitable[Any]]

KINDS: dict[str, Make] = {
    "create": lambda s, who, call: s.create(who, session_id=call.session),
    "append": lambda s, who, call: s.append(
        who, call.session, say(call.name, id=call.name), fence=call.fence
    ),
    "fork": lambda s, who, call: s.fork(who, call.session, at=call.given or None, new_id=f"fork-{call.name}"),
    "rewind": lambda s, who, call: s.rewind(who, call.session, call.given, fence=call.fence),
    "compact": lambda s, who, call: s.compact(
        who, call.session, say(f"sum {call.name}", "system", id=call.name), keep=1, fence=call.fence
    ),
    "restore": lambda s, who, call: s.restore(who, call.session, call.given, since=True, fence=call.fence),
    "erase": lambda s, who, call: s.erase(who, call.session, call.given),
    "delete": lambda s, who, call: s.delete(who, call.session),
    "acquire": lambda s, who, call: s.leases.acquire(who, call.session, call.given, ttl_ms=LEASE_MS),
    "release": lambda s, who, call: s.leases.release(who, call.session, call.fence or 0),
    "get": lambda s, who, call: s.get(who, call.session),
    "history": lambda s, who, call: s.history(who, call.session, view="conversation"),
    "context": lambda s, who, call: s.history(who, call.session),
    "checkpoints": lambda s, who, call: s.checkpoints(who, call.session),
}
"""Everything that can be asked."""


async def begin(sessions: Sessions, who: Principal) -> None:
    """What there is before the first call."""
    for session in FIRST:
        await sessions.create(who, session_id=session)
        await sessions.append(who, session, [say(name, id=name) for name in first_messages(session)])


def first_messages(session: str) -> list[str]:
    """The messages that a session begins with."""
    return [f"{session}{number}" for number in range(1, MESSAGES + 1)]


async def make(sessions: Sessions, ids: Named, who: Principal, call: Call) -> Any:
    """Make a call; its answer as plain values. When a session was last read is not part of it: that is noted beside."""
    ids.name = call.name
    found = await outcome(KINDS[call.kind](sessions, who, call))
    return replace(found, read_at=None) if isinstance(found, Session) else found


def spelled(answer: Any) -> str:
    """An answer as it is written down."""
    return repr(answer)
