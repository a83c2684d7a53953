"""Search: the newest hit in each session, newest first, whatever the store. Any text is a valid query."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from hitherto.errors import HithertoError, InvalidCwd
from hitherto.limits import HITS_EXAMINED, MORE_CAP, SEARCH_PAGE, SEARCH_WALK, checked_limit
from hitherto.model import Entry, Filter, Hit, Principal, SearchPage, Session, decode_entry, search_text
from hitherto.ports import Match, Reader, Record
from hitherto.service.catalog.deletion import recording_of
from hitherto.service.catalog.projects import Projects
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.history.branches import load_branches
from hitherto.service.records import load_lists
from hitherto.service.validation import checked_owner
from hitherto.values import spans as algebra
from hitherto.values import words
from hitherto.values.cursors import open_cursor, seal_cursor
from hitherto.values.filters import normal_cwd, normal_filter, passes, title_text, title_tokens
from hitherto.values.spans import EntryPlace, Stretch
from hitherto.values.words import Query

FIRST_BATCH = 200
LARGEST_BATCH = 1_000
NOWHERE = ""
"""No branch, and not the conversation either."""


class _Walk(msgspec.Struct, array_like=True):
    """How far a search has come: the last document looked at, and which sessions were shown."""

    before: int
    shown: tuple[str, ...] = ()


class Index(Room):
    """Finding sessions by what was said in them."""

    def __init__(self, core: Core, catalog: Catalog, projects: Projects) -> None:
        super().__init__(core)
        self._catalog, self._projects = catalog, projects

    async def search(
        self,
        who: Principal,
        text: str,
        *,
        given: Filter | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> SearchPage:
        """The newest hit of each session whose conversation or titles have all the words in one message.

        Words, "phrases", prefix*, and title: tag: cwd: project: agent: role: before: after: to narrow. Archived sessions are
        searched too unless the filter says otherwise. A page may be shorter than `limit` and still have a cursor.
        """
        self._core.home.check_allowed("searched")
        owner = checked_owner(who)
        checked_limit(limit, SEARCH_PAGE)
        query = words.parse_query(text if isinstance(text, str) else "")
        wanted = _narrowed(normal_filter(given or Filter(archived="include")), query)
        if query.project is not None:
            wanted = msgspec.structs.replace(wanted, project=await self._projects.called(who, query.project))
        if query == Query() and isinstance(text, str) and text.strip():
            return SearchPage(hits=())  # nothing but signs: no message has all of its words, for it has none
        if not query.terms and query.role is None:
            return await self._sessions_only(who, query, wanted, cursor, limit)
        secret, question = self._store.secret, ["search", text, wanted]
        walk = None if cursor is None else open_cursor(secret, owner, question, cursor, _Walk)

        async def work(tx: Reader) -> tuple[list[Hit], _Walk | None, int]:
            return *await _Search(tx, owner, query, wanted, limit, walk).run(), await tx.unindexed()

        hits, rest, unindexed = await self._store.read(work)
        return SearchPage(
            hits=tuple(hits),
            cursor=None if rest is None else seal_cursor(secret, owner, question, rest),
            unindexed=unindexed,
        )

    async def _sessions_only(
        self, who: Principal, query: Query, wanted: Filter, cursor: str | None, limit: int
    ) -> SearchPage:
        """A query without words about what was said: the sessions that pass, newest activity first."""
        after = [at for at in (wanted.updated_after, query.after) if at is not None]
        before = [at for at in (wanted.updated_before, query.before) if at is not None]
        narrowed = msgspec.structs.replace(
            wanted,
            text=" ".join(filter(None, (_spelled(query), wanted.text))) or None,
            updated_after=max(after, default=None),
            updated_before=min(before, default=None),
        )
        page = await self._catalog.find(who, narrowed, cursor=cursor, limit=limit)
        hits = tuple(
            Hit(session=session, snippet=title_text(session).partition("\n")[0]) for session in page.sessions
        )
        unindexed = await self._store.read(lambda tx: tx.unindexed())
        return SearchPage(hits=hits, cursor=page.cursor, unindexed=unindexed)


class _Search:
    """One page of one search, inside one transaction."""

    def __init__(
        self, tx: Reader, owner: str, query: Query, wanted: Filter, limit: int, walk: _Walk | None
    ) -> None:
        self.tx = tx
        self.owner = owner
        self.query = query
        self.wanted = wanted
        self.limit = limit
        self.before = None if walk is None else walk.before
        self.shown = set() if walk is None else set(walk.shown)
        self.found: dict[str, Hit] = {}
        self.more: dict[str, int] = {}
        self.sessions: dict[int, _Viewed | None] = {}
        self.holders: dict[int, list[int]] = {}

    async def run(self) -> tuple[list[Hit], _Walk | None]:
        """Walk the matching documents, newest first, until the page is full, the walk too long, or the end."""
        examined, batch = 0, FIRST_BATCH
        while examined < HITS_EXAMINED:
            matches = await self.tx.matches(self.owner, self.query.terms, self.query.role, self.before, batch)
            for match in matches:
                if not await self._take(match):
                    # The next page looks at this match again, for the sessions that found no room.
                    self.before = match.number + 1
                    return self._answer(ended=False)
                self.before = match.number
            examined += len(matches)
            if len(matches) < batch:
                return self._answer(ended=True)
            batch = LARGEST_BATCH
        return self._answer(ended=False)

    def _answer(self, *, ended: bool) -> tuple[list[Hit], _Walk | None]:
        shown = (*self.shown, *map(_short, self.found))
        done = ended or self.before is None or len(shown) >= SEARCH_WALK
        hits = [
            msgspec.structs.replace(hit, more=min(self.more[name], MORE_CAP))
            for name, hit in self.found.items()
        ]
        return hits, None if done else _Walk(self.before or 0, tuple(sorted(shown)))

    async def _take(self, match: Match) -> bool:
        """Count the match for every session it stands in; False when the page has no room for a new one."""
        entry: Entry | None = None
        for session, branch in await self._standing_in(match):
            hit = self.found.get(session.id)
            if hit is not None and not self._timed and not _is_better(match, hit):
                self.more[session.id] += 1
                continue
            if match.place is not None and entry is None:
                stretch = Stretch(match.place.log, match.place.seq, match.place.seq)
                entry = decode_entry((await self.tx.payloads(self.owner, [stretch]))[0])
            at = session.updated_at if entry is None else entry.at
            if not self._in_time(at):
                continue
            if hit is None and len(self.found) == self.limit:
                return False
            if hit is None or _is_better(match, hit):
                self.found[session.id] = self._hit(session, entry, at, branch)
            self.more[session.id] = self.more.get(session.id, -1) + 1
        return True

    @property
    def _timed(self) -> bool:
        return self.query.after is not None or self.query.before is not None

    def _in_time(self, at: int) -> bool:
        after, before = self.query.after, self.query.before
        return (after is None or at >= after) and (before is None or at < before)

    def _hit(self, session: Session, entry: Entry | None, at: int, branch: str | None) -> Hit:
        text = title_text(session) if entry is None else search_text(entry)
        snippet = words.snippet(text, self.query.terms)
        return Hit(
            session=session,
            entry=None if entry is None else entry.id,
            role=None if entry is None else entry.role,
            at=at,
            snippet=snippet,
            marks=tuple(words.marks(snippet, self.query.terms)),
            branch=branch,
        )

    async def _standing_in(self, match: Match) -> list[tuple[Session, str | None]]:
        """The sessions that pass and whose conversation (or titles) the matching document belongs to, or which branch of
        theirs it does."""
        if match.place is None:
            known = await self._session(match.num)
            return [] if known is None else [(known.session, None)]
        place = match.place
        if place.log not in self.holders:
            self.holders[place.log] = sorted(await self.tx.reaching(self.owner, place.log))
        standing = [await self._session(num) for num in self.holders[place.log]]
        return [
            (known.session, branch)
            for known in standing
            if known and (branch := known.branch_of(place)) is not NOWHERE
        ]

    async def _session(self, num: int) -> _Viewed | None:
        if num not in self.sessions:
            record = await self.tx.by_num(self.owner, num)
            passed = record is not None and self._passes(record) and await self._in_day(record)
            self.sessions[num] = await self._viewed(record) if record and passed else None
        return self.sessions[num]

    async def _viewed(self, record: Record) -> _Viewed:
        conversation = (await load_lists(self.tx, record)).conversation()
        said: dict[str | None, list[Stretch]] = {None: conversation}
        for each in await load_branches(self.tx, record):
            said[each.checkpoint.id] = each.lists.conversation()
        return _Viewed(record.session, said)

    async def _in_day(self, record: Record) -> bool:
        day = self.wanted.day
        return day is None or bool(await self.tx.spoken(self.owner, day, [record.num]))

    def _passes(self, record: Record) -> bool:
        fresh = _short(record.session.id) not in self.shown
        return (
            fresh
            and (recording_of(record.session) is None or self.wanted.archived == "only")
            and passes(record.session, self.wanted)
            and (not self.query.title or words.matches(self.query.title, title_tokens(record.session)))
        )


def _is_better(match: Match, hit: Hit) -> bool:
    """Messages say more than a title, which is often made from them."""
    return match.place is not None and hit.entry is None


class _Viewed(NamedTuple):
    """A session, and all that is said in it: by branch, its conversation first."""

    session: Session
    said: dict[str | None, list[Stretch]]

    def branch_of(self, place: EntryPlace) -> str | None:
        """The branch in which this place stands, None for the conversation, or `NOWHERE`."""
        standing = (name for name, said in self.said.items() if algebra.ordinal(said, place) is not None)
        return next(standing, NOWHERE)


def _narrowed(given: Filter, query: Query) -> Filter:
    """The filter together with what the query's operators say."""
    cwd = given.cwd if query.cwd is None else _cwd(query.cwd)
    return msgspec.structs.replace(
        given,
        cwd=cwd,
        agent_id=query.agent or given.agent_id,
        tags=tuple(sorted({*given.tags, *query.tag})),
    )


def _cwd(text: str) -> str:
    try:
        return normal_cwd(text)
    except (InvalidCwd, HithertoError):
        return text  # no session has such a folder: the search finds nothing, which is the truth


def _spelled(query: Query) -> str:
    """The words that titles must have, as a text that means them."""
    return " ".join(f'"{" ".join(term.tokens)}"{"*" if term.prefix else ""}' for term in query.title)


def _short(session_id: str) -> str:
    return hashlib.blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
