"""Ephemeral sessions: kept by one process, over a store in its memory, and gone with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn

from hitherto.errors import InvalidInput, InvalidKey, StoreFull
from hitherto.keys import is_ephemeral
from hitherto.model import Appended, Draft, Principal, Session
from hitherto.ports import Record, Writer
from hitherto.service import Policy, Sessions
from hitherto.service.compaction.plan import Shrinking

BOUND = Policy(keep_newest=1_000, keep_bytes=256 * 1024 * 1024, spare_read_ms=0, delete=True)
"""What an owner may have of them: beyond it, those that were quiet longest make room."""
SESSION_BYTES = 64 * 1024 * 1024
"""In one that is larger no more is said."""
LOOKED_AT_BYTES = 16 * 1024 * 1024
"""So much may be said between one look at the bound and the next."""


class Ephemeral(Sessions):
    """Sessions of which nothing is ever stored, searched, forked or remembered. Their id is their key."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._said: Counter[str] = Counter()
        """How much was said by whom since somebody looked."""

    def _check_home(self, session: Session) -> None:
        if not is_ephemeral(session.key) or session.id != session.key:
            raise InvalidKey(f"{session.key or session.id!r} is not the key of an ephemeral session")

    def _check_room(self, record: Record) -> None:
        if record.totals.bytes > SESSION_BYTES:
            raise StoreFull(f"an ephemeral session holds at most {SESSION_BYTES} bytes: begin another")

    def at(self, name: str) -> Sessions:  # noqa: ARG002 - there is nowhere else to go from here
        return self

    async def create(
        self, who: Principal, *, key: str | None = None, session_id: str | None = None, **given: Any
    ) -> Session:
        """Make an empty session under an ephemeral key."""
        made = await super().create(who, key=key, session_id=session_id or key, **given)
        await self.prune(who, BOUND, dry_run=False)
        return made

    async def append(
        self, who: Principal, session_id: str, drafts: Draft | Sequence[Draft], **given: Any
    ) -> Appended:
        """Add messages; what is quiet makes room for them. `StoreFull` in a session that is too large."""
        before = await self.get(who, session_id)
        done = await super().append(who, session_id, drafts, **given)
        self._said[who.owner] += (await self.get(who, session_id)).bytes - before.bytes
        if self._said[who.owner] > LOOKED_AT_BYTES:
            del self._said[who.owner]
            await self.prune(who, BOUND, dry_run=False)
        return done

    async def _remember(self, tx: Writer, record: Record, shrinking: Shrinking) -> int:  # noqa: ARG002
        return 0

    async def fork(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("forked")

    async def branch(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("forked")

    async def start_anew(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("started anew")

    async def search(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("searched")

    async def add_facts(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("remembered")

    async def take_in(self, *_: Any, **__: Any) -> NoReturn:
        _refuse("taken in")


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(f"an ephemeral session cannot be {what}")
