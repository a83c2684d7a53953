"""A store as a restricted token sees it: what is out of reach is not there.

All that a method asks goes through the port, so one place decides for all of them. What has to be done everywhere, such as
blanking an erased message in forks out of reach, is done in the `whole` transaction behind it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from hitherto.edits.reach import ReachedEdits
from hitherto.errors import OutOfReach
from hitherto.limits import ROWS_EXAMINED
from hitherto.model import Account, Change, Fact, Filter, Reach
from hitherto.ports import (
    Ahead,
    ListKey,
    Match,
    Memo,
    Reader,
    Record,
    Rescan,
    Row,
    Scan,
    SearchKey,
    Store,
    Writer,
)
from hitherto.service.notes import OF_SESSIONS
from hitherto.values.facts import FactQuery, RivalQuery
from hitherto.values.scopes import reach_name, reaches, reaches_account, reaches_fact, reaches_key
from hitherto.values.words import Term

T = TypeVar("T")
BATCH = 200
PREFIXED = 1_000
"""How many sessions of a beginning of an id are looked through for those within reach."""


class ReachedStore:
    """A store within a reach. Other calls than these are about no session, or about the whole store."""

    def __init__(self, store: Store, reach: Reach) -> None:
        self._store, self._reach = store, reach

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:  # noqa: ARG002
        """Nothing is fetched ahead: it would be more than is shown."""
        return await self._store.read(lambda tx: work(cast("Reader", _Reached(tx, self._reach))))

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        return await self._store.write(lambda tx: work(cast("Writer", _Written(tx, self._reach))), about)

    async def wait(self, owner: str, after: str, seconds: float) -> str:
        """Returns early only for a change within reach; else what was given."""
        end, seen = monotonic() + seconds, after
        while (left := end - monotonic()) > 0:
            position = await self._store.wait(owner, seen, left)
            if position == seen:
                break
            if await self.read(lambda tx: tx.changes(owner, after, 1)):
                return position
            seen = position
        return after


class _Reached:
    """A view without what is out of reach."""

    def __init__(self, tx: Reader, reach: Reach) -> None:
        self.whole: Any = tx
        self._reach, self._scope = reach, reach_name(reach)
        self._logs: dict[int, bool] = {}
        self._parents: dict[str, bool] = {}
        self._hidden: dict[int, tuple[str | None, str | None]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    # Sessions

    async def session(self, owner: str, session_id: str) -> Record | None:
        return await self._within(await self.whole.session(owner, session_id))

    async def by_num(self, owner: str, num: int) -> Record | None:
        return await self._within(await self.whole.by_num(owner, num))

    async def by_key(self, owner: str, key: str) -> Record | None:
        return await self._within(await self.whole.by_key(owner, key))

    async def with_prefix(self, owner: str, prefix: str, limit: int) -> list[str]:
        ids = await self.whole.with_prefix(owner, prefix, PREFIXED)
        return [each for each in ids if await self.session(owner, each) is not None][:limit]

    async def children(self, owner: str, session_id: str) -> list[Record]:
        return await self._all_within(await self.whole.children(owner, session_id))

    async def titled(self, owner: str, terms: Sequence[Term], limit: int) -> list[Record] | None:
        found = await self.whole.titled(owner, terms, limit)
        return None if found is None else await self._all_within(found)

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        """Goes on until the page is full: a short one would tell of what it leaves out."""
        found: list[Record] = []
        while True:
            part = await self.whole.scan(owner, self._narrowed(given), below, limit, examine)
            found += await self._all_within(part.records)
            if len(found) > limit:
                last = found[limit - 1]
                return Scan(found[:limit], ListKey(last.order_at, last.session.id), ended=False)
            if part.ended or len(found) == limit:
                return Scan(found, part.last, part.ended)
            below = part.last

    async def changed(self, owner: str, given: Filter, after: str, limit: int, examine: int) -> Rescan:
        found: list[Record] = []
        while True:
            part = await self.whole.changed(owner, self._narrowed(given), after, limit, examine)
            found += await self._all_within(part.records)
            if part.ended or len(found) >= limit:
                return Rescan(found, part.position, part.ended)
            after = part.position

    async def count(self, owner: str, given: Filter) -> int:
        count, below = 0, None
        while True:
            part = await self.scan(owner, given, below, BATCH, ROWS_EXAMINED)
            count += len(part.records)
            if part.ended:
                return count
            below = part.last

    async def edits_reached(self, owner: str, ids: Sequence[str]) -> ReachedEdits:
        within = [each for each in ids if await self.session(owner, each) is not None]
        reached: ReachedEdits = await self.whole.edits_reached(owner, within)
        return reached

    # Search and changes

    async def matches(
        self,
        owner: str,
        terms: Sequence[Term],
        kind: str | None,
        before: SearchKey | None,
        limit: int,
        **how: Any,
    ) -> list[Match]:
        found: list[Match] = []
        while len(found) < limit:
            part = await self.whole.matches(owner, terms, kind, before, limit, **how)
            found += [match for match in part if await self._stands_within(owner, match)]
            if len(part) < limit:
                break
            before = part[-1].key
        return found[:limit]

    async def changes(self, owner: str, after: str, limit: int) -> list[Change]:
        found: list[Change] = []
        while len(found) < limit:
            part = await self.whole.changes(owner, after, BATCH)
            found += [change for change in part if await self._tells_within(owner, change)]
            if len(part) < BATCH:
                break
            after = part[-1].position
        return found[:limit]

    # Facts

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        return await self._known(owner, await self.whole.facts(owner, session_id))

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        found: list[Fact] = []
        part, most = replace(wanted, offset=0, limit=BATCH), wanted.offset + wanted.limit
        while len(found) < most:
            facts = await self.whole.find_facts(owner, part)
            found += await self._known(owner, facts)
            if len(facts) < BATCH:
                break
            part = replace(part, offset=part.offset + BATCH)
        return found[wanted.offset : most]

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        return await self._known(owner, await self.whole.rivals(owner, wanted))

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        """All or nothing: one of which the fact itself is out of reach is unknown."""
        found = await self.whole.facts_behind(owner, fact_id)
        asked = [fact for fact in found if fact.id == fact_id]
        return await self._known(owner, found) if await self._known(owner, asked) else []

    # People, and what was asked before

    async def link(self, owner: str, account: Account) -> Account | None:
        known = await self.whole.link(owner, account)
        seen = known is not None and all(reaches_account(self._reach, each) for each in (account, known))
        return known if seen else None

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        if not reaches_account(self._reach, account):
            return []
        known = await self.whole.linked_to(owner, account)
        return [each for each in known if reaches_account(self._reach, each)]

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        memo: Memo | None = await self.whole.memo(owner, method, self._scoped(method, key))
        return memo

    def _scoped(self, method: str, key: str) -> str:
        """Idempotency keys of others are free to use."""
        return key if method in OF_SESSIONS else f"{self._scope}:{key}"

    # What is within

    async def _within(self, record: Record | None) -> Record | None:
        if record is None or not reaches(self._reach, record.session):
            return None
        parent = record.session.parent
        if parent is None or await self._is_parent_within(record.owner, parent):
            return record
        self._hidden[record.num] = (parent, record.session.parent_entry)
        return replace(record, session=replace(record.session, parent=None, parent_entry=None))

    async def _is_parent_within(self, owner: str, parent: str) -> bool:
        if parent not in self._parents:
            found = await self.whole.session(owner, parent)
            self._parents[parent] = found is not None and reaches(self._reach, found.session)
        return self._parents[parent]

    async def _all_within(self, records: Sequence[Record]) -> list[Record]:
        return [seen for record in records if (seen := await self._within(record)) is not None]

    async def _known(self, owner: str, facts: Sequence[Fact]) -> list[Fact]:
        found = []
        for fact in facts:
            record = None if fact.session is None else await self.session(owner, fact.session)
            if reaches_fact(self._reach, fact, None if record is None else record.session):
                found.append(fact)
        return found

    async def _stands_within(self, owner: str, match: Match) -> bool:
        """Whether any session within reach has the document."""
        if match.place is None:
            return await self.by_num(owner, match.num) is not None
        log = match.place.log
        if log not in self._logs:
            nums = await self.whole.reaching(owner, log)
            self._logs[log] = any([await self.by_num(owner, num) is not None for num in sorted(set(nums))])
        return self._logs[log]

    async def _tells_within(self, owner: str, change: Change) -> bool:
        if change.revision is None:
            return reaches_key(self._reach, change.key)
        return await self.session(owner, change.session) is not None

    def _narrowed(self, given: Filter) -> Filter:
        """With the one agent and the one channel that are within reach, which the store looks up."""
        agents, channels = self._reach.agents, self._reach.channels
        return replace(
            given,
            agent_id=agents[0] if given.agent_id is None and len(agents) == 1 else given.agent_id,
            channel=channels[0] if given.channel is None and len(channels) == 1 else given.channel,
        )


class _Written(_Reached):
    """A write transaction within a reach: what is made must lie within it too."""

    async def insert(self, record: Record) -> Record:
        self._check(record)
        made: Record = await self.whole.insert(record)
        return made

    async def rewrite(self, record: Record, kind: str) -> Record:
        """What loses its key may leave: it makes room for another."""
        if record.session.key is not None:
            self._check(record)
        return await self._shown(await self.whole.rewrite(self._unhidden(record), kind))

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        return await self._shown(await self.whole.extend(self._unhidden(record), rows))

    async def put_facts(self, owner: str, facts: Sequence[Fact]) -> None:
        if len(await self._known(owner, facts)) < len(facts):
            raise OutOfReach(
                "this token may not remember such a fact: its agent, person or session is not allowed"
            )
        await self.whole.put_facts(owner, facts)

    async def put_memo(self, owner: str, method: str, key: str, memo: Memo) -> None:
        await self.whole.put_memo(owner, method, self._scoped(method, key), memo)

    def _check(self, record: Record) -> None:
        if not reaches(self._reach, record.session):
            raise OutOfReach(
                "this token may not have such a session: its agent, channel, key or person is not allowed"
            )

    def _unhidden(self, record: Record) -> Record:
        """The record with the parent that it was shown without."""
        parent, entry = self._hidden.get(record.num, (None, None))
        if parent is None or record.session.parent is not None:
            return record
        return replace(record, session=replace(record.session, parent=parent, parent_entry=entry))

    async def _shown(self, record: Record) -> Record:
        if record.num not in self._hidden:
            return record
        return replace(record, session=replace(record.session, parent=None, parent_entry=None))
