"""The storage port: what a store must be able to do. The docstrings are the contract.

The rules of the product live in the service; a store keeps tables. All work happens inside `Store.read` and
`Store.write`, which take a coroutine function and run it in one transaction. Such a function awaits nothing but the
transaction it is given, may be run more than once (after a conflict), and so has no other effect.

Everything a transaction returns belongs to the owner it was asked for. Numbers (`num`, `log`, `seq`, document
numbers) are the store's own and never leave the program; a session's `num` is also the number of its own log and is
never used twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol, TypeVar

import msgspec

from hitherto.edits.batches import EditBatch
from hitherto.edits.reach import ReachedEdits
from hitherto.model import (
    Account,
    Change,
    Checkpoint,
    Entry,
    Facets,
    Fact,
    Filter,
    Json,
    Lease,
    Pending,
    Session,
    Token,
    search_text,
)
from hitherto.values.days import Tally
from hitherto.values.facts import FactQuery, RivalQuery
from hitherto.values.query.moments import Period
from hitherto.values.spans import CURRENT as CURRENT
from hitherto.values.spans import EntryPlace, Span, Spans, Stretch
from hitherto.values.usage.requests import Request
from hitherto.values.words import Term, searchable

T = TypeVar("T")
Now = Callable[[], int]

Mode = Literal["make", "change", "read"]
"""What a store is opened for. Only `make` makes one that is not there; the others raise `StoreNotFound`. With `read`, one that
this process may not write to is opened too: what is written to it then raises `StoreUnavailable`."""


class Totals(NamedTuple):
    """Running sums within a log, up to and including an entry. Cost is in millionths of a dollar."""

    tokens: int = 0
    errors: int = 0
    cost: int = 0
    bytes: int = 0

    def plus(self, other: Totals) -> Totals:
        """Their sum."""
        return Totals(
            self.tokens + other.tokens,
            self.errors + other.errors,
            self.cost + other.cost,
            self.bytes + other.bytes,
        )

    def minus(self, other: Totals) -> Totals:
        """Their difference."""
        return Totals(
            self.tokens - other.tokens,
            self.errors - other.errors,
            self.cost - other.cost,
            self.bytes - other.bytes,
        )


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A session with what only the program sees.

    `order_at` is `updated_at`, not later than the moment it was written: lists are ordered by `(order_at, id)`.
    `head` and `totals` are those of the session's own log. `change` is the number of its newest change. `heard_at`: when the user
    of a chat was last heard of; None if that is not known.
    """

    num: int
    owner: str
    session: Session
    order_at: int
    head: int = 0
    totals: Totals = Totals()
    lease: Lease | None = None
    change: int = 0
    heard_at: int | None = None

    @property
    def silent_since(self) -> int | None:
        """By what a chat is found when it has been silent for long: 0 if nothing is known. None for what never starts anew by
        the clock: what is no chat, is archived, or is empty."""
        session = self.session
        if session.key is None or session.source is not None or session.archived or not session.message_count:
            return None
        return self.heard_at or 0


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An entry ready to be stored: `payload` is its exact bytes, `totals` the running sums including it; `words` are those that
    it is found by, as `values.words.searchable` gives them, if whoever made it has looked."""

    entry: Entry
    payload: bytes
    seq: int
    totals: Totals
    words: str | None = None

    @property
    def searchable(self) -> str:
        """The words that it is found by."""
        return searchable(search_text(self.entry)) if self.words is None else self.words


class KeptUsage(NamedTuple):
    """What is kept of the usage of a session: its `revision` now, that at which it was counted, and the count. `size` is about how
    many entries it has: those of its context, or of its log if they are more."""

    revision: int
    size: int
    counted: int | None = None
    body: bytes | None = None


class ListKey(NamedTuple):
    """A position in the order of lists (both falling)."""

    order_at: int
    id: str


class Scan(NamedTuple):
    """Part of a list: the records that pass, the last key that was looked at, and whether the list ends there."""

    records: list[Record]
    last: ListKey | None
    ended: bool


class Rescan(NamedTuple):
    """Part of what changed: the records that pass, the position after what was looked at, and whether that is all."""

    records: list[Record]
    position: str
    ended: bool


class InboxSize(NamedTuple):
    """How many rows an inbox has, and about how many bytes they take."""

    rows: int
    bytes: int


class SearchKey(NamedTuple):
    """Where a document stands in the order of search: by the time it was said, and `tie` among those of one moment.

    `order` names the order itself: a store that has changed its order knows the keys of the earlier one by it.
    """

    at: int
    tie: int
    order: int = 0

    def above(self) -> SearchKey:
        """The next higher key: strictly below it are this one and all that is older."""
        return self._replace(tie=self.tie + 1)


class Match(NamedTuple):
    """A document that matches: an entry (`seq` of the log `num`) or a session's titles (of the session `num`; `seq` is 0).

    Flat, because a search goes through thousands of them.
    """

    at: int
    tie: int
    order: int
    num: int
    seq: int

    @property
    def key(self) -> SearchKey:
        """Where it stands in the order of search."""
        return SearchKey(self.at, self.tie, self.order)

    @property
    def place(self) -> EntryPlace | None:
        """Where the entry is; None for titles."""
        return EntryPlace(self.num, self.seq) if self.seq else None


class Spot(NamedTuple):
    """An entry of a stretch: its place in the log, and its id."""

    seq: int
    id: str


class SilentChat(NamedTuple):
    """A chat whose user was last heard of then, or later. `record` is None if it is damaged."""

    silent_since: int
    owner: str
    id: str
    record: Record | None = None


class LogEnd(NamedTuple):
    """A session with its present spans, and the end of its own log: so many entries, of about so many bytes at most."""

    owner: str
    session_id: str
    entries: int
    bytes: int


class FirstPage(NamedTuple):
    """What `scan` gives of the newest sessions that pass the (normal) filter, and `newest`."""

    owner: str
    given: Filter
    limit: int
    examine: int


Ahead = LogEnd | FirstPage
"""What some work asks first, and as a rule only."""


class Memo(NamedTuple):
    """What an idempotency key was used for."""

    digest: bytes
    answer: bytes
    at: int


class RawCopy(NamedTuple):
    """The exact bytes of a source file, kept beside the session read from it."""

    name: str
    data: bytes


class PackedCopy(NamedTuple):
    """The same as zstd packs it, which is done apart from the store's own work; `size` is how many bytes are in it."""

    name: str
    packed: bytes
    size: int

    @property
    def data(self) -> bytes:
        """The bytes themselves."""
        import zstandard  # here: most of what uses the ports unpacks nothing

        return zstandard.ZstdDecompressor().decompress(self.packed)


def packed(copy: RawCopy) -> PackedCopy:
    """The copy, packed."""
    import zstandard

    return PackedCopy(copy.name, zstandard.ZstdCompressor(level=3).compress(copy.data), len(copy.data))


class Activity(NamedTuple):
    """What was said in some days. An agent or model that is not known is the empty text.

    `days`: day, sessions; `shares`: day, agent, model; both by rising day, agent and model. `projects`: project,
    sessions; the one with the most messages first, then by name. `longest`: the sessions with the most messages, of
    equal ones the older first.
    """

    days: list[tuple[int, int, Tally]]
    shares: list[tuple[int, str, str, Tally]]
    projects: list[tuple[str, int, Tally]]
    longest: list[Record]


class QuarantinedLog(NamedTuple):
    """Entries that nothing explains, set aside by `Store.check`; `log` is how the store calls them."""

    owner: str
    log: int
    at: int
    why: str
    stretches: tuple[Stretch, ...]


class Losses(NamedTuple):
    """What was deleted and erased in a store, for another that may still have it, such as a backup of it.

    `deleted` has an owner and the id of a session each, `erased` also a mark. Some marks are made with the store's `secret`.
    """

    secret: bytes
    deleted: tuple[tuple[str, str], ...]
    erased: tuple[tuple[str, str, str], ...]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor` found: `problems` remain; `repaired` was derived data and is whole again, or is in quarantine."""

    checked: tuple[str, ...]
    problems: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()


class Reader(Protocol):
    """A consistent view of the store.

    A store that is kept on a disk compares every session, lease, entry, span, checkpoint, fact, token and raw copy with what
    was written, whose it is and its place among that. What differs is `StoreDamaged` for whoever asks for it; lists of sessions
    and of tokens leave it out. What has no checksum, because an older program wrote it, is believed.
    """

    async def now(self) -> int:
        """The store's clock in ms: the one that decides about leases."""

    async def session(self, owner: str, session_id: str) -> Record | None:
        """The owner's session of this id. In a write transaction nobody else changes it until the end."""

    async def by_num(self, owner: str, num: int) -> Record | None:
        """The owner's session of this number, not locked."""

    async def by_key(self, owner: str, key: str) -> Record | None:
        """The owner's session with this session key."""

    async def with_prefix(self, owner: str, prefix: str, limit: int) -> list[str]:
        """Ids of the owner's sessions that start with `prefix`, in order of id."""

    async def buried(self, owner: str, session_id: str) -> bool:
        """Whether the owner has deleted a session of this id (and not made it again)."""

    async def erasures(self, owner: str, session_id: str) -> frozenset[str]:
        """The marks of what was erased in the owner's session of this id, be it there or not."""

    async def bereft(self, owner: str) -> set[str]:
        """The ids of the owner's sessions that were deleted, or in which something was erased."""

    async def erased_among(self, owner: str, marks: Sequence[str]) -> set[str]:
        """Those of these marks of which something was erased in any session of the owner's."""

    async def scan(self, owner: str, given: Filter, below: ListKey | None, limit: int, examine: int) -> Scan:
        """Sessions that pass the (normal) filter, by falling `(order_at, id)`, from strictly below `below`.

        A filter by day passes the sessions that `spoken` returns; the filter's `where` is for the caller to look at, here and in
        `changed` and `count`. Stops after `limit` records, after examining about
        `examine` rows, or at the end.
        """

    async def titled(self, owner: str, terms: Sequence[Term], limit: int) -> list[Record] | None:
        """The owner's sessions whose titles have all terms, in any order; None if there are more than `limit`."""

    async def changed(self, owner: str, given: Filter, after: str, limit: int, examine: int) -> Rescan:
        """Sessions that pass the filter and changed after that position, in the order of the feed.

        Stops after `limit` records, after examining about `examine` rows, or at the end.
        """

    async def count(self, owner: str, given: Filter) -> int:
        """How many sessions pass the filter."""

    async def spans(self, owner: str, num: int, name: str = CURRENT) -> Spans:
        """A span list of the session, in order; empty if there is none."""

    async def span_lists(self, owner: str, num: int) -> dict[str, Spans]:
        """All span lists of the session that are not empty, by name."""

    async def checkpoints(self, owner: str, num: int) -> list[Checkpoint]:
        """The session's checkpoints in the order in which they were made."""

    async def payloads(self, owner: str, stretches: Sequence[Stretch]) -> list[bytes]:
        """The entries of these stretches, in order, as their exact bytes. `StoreDamaged` if one is missing."""

    async def totals(self, owner: str, log: int, seq: int) -> Totals:
        """Running sums at an entry; zero for `seq` 0."""

    async def locate(self, owner: str, logs: Sequence[int], entry_id: str) -> list[EntryPlace]:
        """Where an entry of this id stands in these logs."""

    async def reaching(self, owner: str, log: int) -> list[int]:
        """Numbers of the owner's sessions that have any span, present or checkpoint's, over this log."""

    async def matches(
        self,
        owner: str,
        terms: Sequence[Term],
        kind: str | None,
        before: SearchKey | None,
        limit: int,
        *,
        every: bool = True,
        without: Sequence[Term] = (),
        during: Period | None = None,
    ) -> list[Match]:
        """The owner's documents with all terms, or with any of them if not `every`, and with none of `without`, newest first by the
        time they were said, from strictly below `before`.

        `during` says of which time they are wanted: others need not be found, but may be. An entry was said at its `at`, a session's titles when the session was created, as `said_at` bounds both; of one
        moment, what was stored last comes first. `kind` is a role, `title`, or None for all. No terms: all documents of
        that kind. All that was committed before the transaction began is found; what was deleted or erased is not.
        Raises `InvalidCursor` if `before` is a key of an order that the store has left.
        """

    async def unindexed(self) -> int:
        """How many documents `matches` and `within` do not find yet, because the store cannot be written to; else 0."""

    async def within(
        self,
        owner: str,
        stretch: Stretch,
        terms: Sequence[Term],
        role: str | None,
        limit: int,
        *,
        backwards: bool = False,
        without: Sequence[Term] = (),
    ) -> list[Spot]:
        """The entries of a stretch that have all terms, none of `without` and, if one is given, this role: its first, or its last if
        `backwards`.

        In that order. As with `matches`, all that was committed is found, and nothing that was erased. What it costs
        follows from the stretch and its log, not from what else there is.
        """

    async def children(self, owner: str, session_id: str) -> list[Record]:
        """The owner's sessions whose parent this is, oldest first (by `created_at`, then `id`)."""

    async def edits(self, owner: str, logs: Sequence[int]) -> list[EditBatch]:
        """The edits of these logs of the owner's, by log and first entry."""

    async def edits_marked(
        self, owner: str, wanted: frozenset[int], log: int | None = None
    ) -> list[EditBatch]:
        """Batches of the owner's edits, of one log or of all, that have any of these marks, by log and first entry."""

    async def edits_reached(self, owner: str, ids: Sequence[str]) -> ReachedEdits:
        """What these sessions and their subagents reach, in one query. Sessions that the owner does not have are left out."""

    async def edits_due(self, owner: str, limit: int) -> list[int]:
        """Logs of the owner's whose edits must be read again from their entries, in order."""

    async def changes(self, owner: str, after: str, limit: int) -> list[Change]:
        """The newest change of each session of the owner after that position, deleted ones included.

        Whoever goes on from the position of the last one misses none, whatever is written meanwhile. Raises
        `InvalidInput` if the position is of another store.
        """

    async def newest(self, owner: str) -> str:
        """The position after all of the owner's changes."""

    async def memo(self, owner: str, method: str, key: str) -> Memo | None:
        """What this idempotency key was used for."""

    async def live(self, owner: str, num: int) -> bytes | None:
        """The partial text of the session's running turn."""

    async def inbox(self, owner: str, num: int) -> list[Pending]:
        """What waits in the session's inbox, in order."""

    async def inbox_size(self, owner: str, num: int) -> InboxSize:
        """How much waits in the session's inbox."""

    async def inboxes(self) -> list[tuple[str, str]]:
        """Owner and id of every session, of any owner, in whose inbox something waits; in order."""

    async def running(self) -> list[tuple[str, str]]:
        """Owner and id of every session, of any owner, whose status is `running` or `waiting`; in order."""

    async def facts(self, owner: str, session_id: str | None) -> list[Fact]:
        """The owner's facts, those of one session or all, newest first (by `at`, then `id`, falling)."""

    async def find_facts(self, owner: str, wanted: FactQuery) -> list[Fact]:
        """The owner's facts that still hold and are wanted: no fact that is there has taken their place.

        If a mark is wanted, facts that were kept before there were marks come too, behind the others.
        """

    async def rivals(self, owner: str, wanted: RivalQuery) -> list[Fact]:
        """The owner's facts beside which others cannot hold, in any order; also some that were kept before there was a
        way to tell. `invalidated_by` is None if the fact that took its place is gone."""

    async def facts_behind(self, owner: str, fact_id: str) -> list[Fact]:
        """A fact of the owner's, and all that it has taken the place of, one after the other; in any order."""

    async def raw_copies(self, owner: str, num: int) -> list[RawCopy]:
        """The raw copies kept beside a session, by name."""

    async def raw_sizes(self, owner: str) -> list[tuple[str, int]]:
        """The owner's sessions that have raw copies, newest first (by `updated_at`, then `id`, falling), and about how
        many bytes these take in the store; of what two of them share, each has all."""

    async def quarantined(self) -> list[QuarantinedLog]:
        """What is in quarantine, of every owner, in the order of `log`."""

    async def stats(self, owner: str) -> Json:
        """Numbers about the owner's sessions: how many, archived, messages, tokens, bytes, cost, by source and agent. The cost is
        what was reported of the requests that were counted, each once."""

    async def facets(self, owner: str) -> Facets:
        """How many sessions the owner has of each kind, as `facets` adds them up; of equal numbers by name."""

    async def spoken(self, owner: str, day: str, nums: Sequence[int]) -> set[int]:
        """Those of the owner's sessions in whose own log something was said on that day."""

    async def activity(self, owner: str, first: int, last: int, most: int) -> Activity:
        """What was said from one day to another, both included, in the owner's sessions, each by its own log.

        As `days.tallies` adds it up. `most` is how many projects and sessions to return.
        """

    async def log_after(self, owner: str, log: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
        """The first entries of a log behind this place, with their places, as far as they are there."""

    async def counted(self, owner: str, logs: Sequence[int]) -> dict[int, int]:
        """Up to where the requests of these logs are counted, of those of which any are."""

    async def requests(
        self, owner: str, since: int, until: int, logs: Sequence[int] | None = None
    ) -> list[Request]:
        """The owner's requests that were counted and made from `since` on and before `until`, of these logs or of all; in
        the order of log and place."""

    async def session_usage(self, owner: str, ids: Sequence[str]) -> dict[str, KeptUsage]:
        """What is kept of the usage of these sessions, by id; those that the owner does not have are left out. One lookup for
        each id, in one query."""

    async def projects(self, owner: str) -> list[str]:
        """The projects of the owner's sessions, by name."""

    async def placeless(self, owner: str, limit: int) -> list[str]:
        """Folders of the owner's sessions that have one but no project, each once, by name."""

    async def rooted(self, owner: str, root: str) -> str | None:
        """The name of the owner's repository that is known by this: its root commit, or a folder."""

    async def roots(self, owner: str, project: str) -> list[str]:
        """By what the owner's repositories of this name are known, in order."""

    async def token(self, digest: bytes) -> Token | None:
        """The token whose secret has this digest, be it revoked or not."""

    async def tokens(self, owner: str | None) -> list[Token]:
        """The tokens of an owner or of all, revoked ones too, in the order of `created_at`, then `id`."""

    async def chats(self) -> list[str]:
        """The kinds of chats, of every owner, that may start anew by the clock, each with its channel: `values.keys.chat_of`.

        In order; also chats of no kind that is known, as the empty text."""

    async def silent(
        self, owner: str | None, chat: str, before: int, after: SilentChat | None, limit: int
    ) -> list[SilentChat]:
        """Chats of that kind and channel, of an owner or of all, that are silent since a moment before `before`.

        In their own order, from strictly after `after`. Looks at no other chat."""

    async def duty(self, name: str) -> str | None:
        """Who has, or had last, the duty of this name."""

    async def access(self) -> int:
        """How often tokens of the store have been revoked or replaced: while it stays the same, none was."""

    async def link(self, owner: str, account: Account) -> Account | None:
        """The account that this one of the owner's peers is linked to.

        In a write transaction nobody else changes the owner's links until the end.
        """

    async def linked_to(self, owner: str, account: Account) -> list[Account]:
        """The accounts that are linked to this one, in order."""


class Writer(Reader, Protocol):
    """A write transaction: all of it, or nothing, is there after `Store.write` returns."""

    async def insert(self, record: Record) -> Record:
        """Add a session (with its tags); its `num` and `change` are given by the store and returned in the record.

        The id and the key must be free within the owner; the service has looked. A tombstone of this id goes.
        """

    async def rewrite(self, record: Record, kind: str) -> Record:
        """Store every field of a session that `session` returned, as a change of this kind."""

    async def extend(self, record: Record, rows: Sequence[Row]) -> Record:
        """Append entries to the session's own log; `record` has the new head, totals, counts, times, revision.

        An entry id that the log already has is an `AlreadyExists`.
        """

    async def put_lease(self, record: Record, lease: Lease) -> None:
        """Keep the lease; this is no change of the session."""

    async def put_read_at(self, record: Record, at: int) -> None:
        """Note when the session was last read; this is no change of the session."""

    async def put_heard_at(self, record: Record, at: int) -> None:
        """Note when the user of a chat was last heard of; this is no change of the session."""

    async def put_silent_since(self, record: Record, at: int) -> None:
        """Note that the user of a chat need not be looked for in what was said before then, which is no change either."""

    async def put_spans(self, owner: str, num: int, spans: Sequence[Span], name: str = CURRENT) -> None:
        """Replace a span list of the session."""

    async def put_checkpoint(
        self, owner: str, num: int, checkpoint: Checkpoint, spans: Sequence[Span]
    ) -> None:
        """Add a checkpoint with its spans, after the others."""

    async def drop_checkpoint(self, owner: str, num: int, checkpoint: str) -> None:
        """Drop a checkpoint with its spans, if it is there."""

    async def erase(self, owner: str, place: EntryPlace, payload: bytes) -> None:
        """Replace an entry's bytes for good; its document is gone from the search."""

    async def put_erasures(self, owner: str, session_id: str, marks: Sequence[str], at: int) -> None:
        """Remember, for ever, what was erased in the owner's session of this id; what is known already stays."""

    async def bury(self, record: Record, at: int) -> None:
        """Remove a session with its spans, checkpoints, tags, lease, live text, inbox, raw copies and its own facts.

        Leaves a tombstone in the change feed. Its entries stay until `collect` finds that nothing reaches them.
        """

    async def collect(self, batch: int) -> int:
        """Remove at most `batch` entries, of any owner, that no session and no checkpoint reaches any more.

        Their documents go with them. Returns how many; 0 when there is nothing left to remove, and also while the last
        `check` has left a problem, or a span names entries that are not there: what reaches what is then not known.
        """

    async def release(self, owner: str, log: int) -> None:
        """Take a log out of quarantine; it stays where it is."""

    async def put_memo(self, owner: str, method: str, key: str, memo: Memo) -> None:
        """Keep what an idempotency key was used for."""

    async def forget_memos(self, before: int) -> int:
        """Drop what was kept before that time; returns how many."""

    async def take_duty(self, name: str, holder: str, now: int, until: int, heir_of: str | None) -> bool:
        """Give a duty to the holder until then; False if another has it for longer than `now` and is not `heir_of`."""

    async def put_live(self, record: Record, data: bytes | None) -> None:
        """Replace or drop the partial text of the running turn, as a change of kind `live`, same revision."""

    async def add_pending(self, record: Record, pending: Pending) -> None:
        """Put something at the end of the session's inbox, as a change of kind `inbox`, same revision."""

    async def drop_pending(self, record: Record, ids: Sequence[str]) -> None:
        """Take what has these ids out of the session's inbox, as such a change."""

    async def put_facts(self, owner: str, facts: Sequence[Fact]) -> None:
        """Add facts; one whose id is there already replaces it."""

    async def forget_facts(self, owner: str, ids: Sequence[str]) -> None:
        """Drop the owner's facts of these ids."""

    async def put_raw_copy(self, owner: str, num: int, copy: RawCopy | PackedCopy) -> None:
        """Keep or replace a raw copy beside a session."""

    async def drop_raw_copies(self, owner: str, num: int) -> None:
        """Drop the raw copies kept beside a session."""

    async def put_edits(self, owner: str, batch: EditBatch) -> None:
        """Keep edits, in place of the batch of the same log and first entry.

        They are derived: when an entry of the log is erased or collected, all edits of the log go, and it is due.
        """

    async def settle_edits(self, owner: str, log: int, batches: Sequence[EditBatch]) -> None:
        """Keep these edits in place of all others of the log, which is no longer due."""

    async def forget_edits(self, owner: str) -> None:
        """Drop all edits of the owner's: every log is due."""

    async def put_requests(
        self, owner: str, log: int, head: int, requests: Sequence[Request], gone: Sequence[int]
    ) -> None:
        """Keep requests that were counted in a log; those that stood at these places before are replaced, and those at
        the places `gone` dropped. `head` is up to where the log is counted now, unless it was counted further."""

    async def put_session_usage(self, record: Record, body: bytes) -> None:
        """Keep what a session had used at the revision of the record, unless that of a later one is kept, or the session is gone.
        It goes with the session. This is no change of it."""

    async def put_root(self, owner: str, root: str, project: str) -> None:
        """Remember under which name the repository goes that is known by this."""

    async def put_token(self, token: Token, digest: bytes) -> None:
        """Add a token, or replace the one of its id, and then raise `access`. Of its secret only the digest is ever kept."""

    async def note_token_use(self, token_id: str, at: int) -> None:
        """Note when a token was last used."""

    async def revoke_token(self, token_id: str, at: int) -> bool:
        """Note when a token was revoked, and raise `access`; False if there is none that was not revoked yet."""

    async def put_link(self, owner: str, account: Account, canonical: Account) -> None:
        """Link an account of the owner's peers to another, in place of the one it was linked to."""

    async def drop_link(self, owner: str, account: Account) -> bool:
        """Take a link away; False if there is none."""


class Store(Protocol):
    """A place where sessions are kept, shared by any number of processes."""

    secret: bytes
    """The key that signs cursors: the same for every connection to this store, for ever."""

    async def read(self, work: Callable[[Reader], Awaitable[T]], ahead: Ahead | None = None) -> T:
        """Run `work` on a consistent view. `ahead` is what it will most likely ask: a store may fetch all of that at once.

        A store may begin the work anew, before or after it has read something: it changes nothing outside. Work that
        searches raises `SearchTooBroad` if it takes too long, and `IndexBehind` if the index does not have all messages yet.
        """
        ...

    async def write(self, work: Callable[[Writer], Awaitable[T]], about: str | None = None) -> T:
        """Run `work` in a transaction and return its result when it is durable; on any error nothing was written.

        `about` is the id of the session that it changes. What is written about one session through this object takes
        effect in the order in which it was called.
        """
        ...

    async def wait(self, owner: str, after: str, seconds: float) -> str:
        """Return the position after all of the owner's changes once there is one after `after`; at once if there is.

        Changes of other processes count. When so many `seconds` have passed, returns what there is.
        """
        ...

    async def unordered(self) -> int:
        """About how many messages and titles are not in the order of search yet: after an upgrade they are put in it while the store
        is in use, and found meanwhile. Of very many, some are counted."""
        ...

    async def owners(self) -> list[str]:
        """Everyone who has sessions here."""
        ...

    async def backup(self, target: str) -> None:
        """Write a consistent copy of the whole store while it is in use. Raises `StoreError` if it cannot be copied."""
        ...

    async def distribute(self) -> tuple[str, ...]:
        """Spread the empty tables over the nodes of a distributed database, all of an owner on one of them; returns their names,
        none if that was done before. Raises `InvalidInput` if there is data, and `StoreError` if the store has no nodes."""
        ...

    async def check(self, *, repair: bool) -> Health:
        """Look for damage. With `repair`, rebuild what is derived from the rest, and put what nothing explains in quarantine.

        What is derived from damaged data is left as it is. Nothing is ever removed. While a problem remains, `collect`
        removes nothing.
        """
        ...

    async def clean(self, *, thoroughly: bool = False) -> None:
        """Leave nothing of what was removed or erased in logs and free space, unless somebody is reading just then: the
        next call does. With `thoroughly`, which may take long, nothing in the search and in statistics either."""
        ...

    async def about(self) -> Json:
        """The kind of store, versions and size."""
        ...


class Connect(Protocol):
    """Open the store at a URL; a given clock replaces the store's own (which tests need)."""

    def __call__(
        self, url: str, now: Now | None = None, mode: Mode = "make"
    ) -> AbstractAsyncContextManager[Store]: ...


__all__ = [
    "CURRENT", "Activity", "Connect", "Health", "InboxSize", "ListKey", "Losses", "Match", "Memo", "Mode", "Now", "PackedCopy", "QuarantinedLog", "RawCopy", "Reader",
    "Record", "Rescan", "Row", "Scan", "SearchKey", "SilentChat", "Spot", "Store", "Totals", "Writer", "packed",
]  # fmt: skip
