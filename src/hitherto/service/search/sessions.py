"""Search: the newest hit in each session, or its best one, whatever the store. Any text is a valid query."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from hitherto.errors import HithertoError, InvalidCwd, InvalidInput
from hitherto.limits import HITS_EXAMINED, MORE_CAP, SEARCH_PAGE, SEARCH_WALK, checked_limit
from hitherto.model import Entry, Filter, Hit, Principal, SearchPage, decode_entry
from hitherto.ports import Match, Reader, SearchKey
from hitherto.service.catalog.projects import Projects
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.search.best import BestMatch
from hitherto.service.search.question import asked
from hitherto.service.search.standing import Standing, short
from hitherto.service.validation import checked_owner
from hitherto.values import words
from hitherto.values.cursors import open_cursor, seal_cursor
from hitherto.values.filters import normal_cwd, normal_filter, title_text
from hitherto.values.spans import Stretch
from hitherto.values.words import Query

FIRST_BATCH = 200
LARGEST_BATCH = 1_000

Order = Literal["newest", "best"]
ORDERS: tuple[Order, ...] = get_args(Order)


class _Walk(msgspec.Struct, array_like=True):
    """How far a search has come: the last document looked at, and which sessions were shown."""

    before: SearchKey
    shown: tuple[str, ...] = ()


class _Shown(msgspec.Struct, array_like=True):
    """How far a search for the best has come: which sessions were shown."""

    shown: tuple[str, ...]


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
        order: Order = "newest",
    ) -> SearchPage:
        """The newest hit of each session whose conversation or titles have all the words in one message; or, with `best`, the
        sessions that answer a question best, each with its best message: any of the words will do, in any form.

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
        if order not in ORDERS:
            raise InvalidInput(f"an order is one of {', '.join(ORDERS)}, not {order!r}")
        if not query.terms and query.role is None:
            return await self._sessions_only(who, query, wanted, cursor, limit)
        if order == "best" and query.terms:
            return await self._best(owner, text, query, wanted, cursor, limit)
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

    async def _best(
        self, owner: str, text: str, query: Query, wanted: Filter, cursor: str | None, limit: int
    ) -> SearchPage:
        secret, asking = self._store.secret, ["best", text, wanted]
        shown = () if cursor is None else open_cursor(secret, owner, asking, cursor, _Shown).shown
        question = asked(text, query, self._now())

        async def work(tx: Reader) -> tuple[list[Hit], int]:
            standing = Standing(tx, owner, query, wanted, shown)
            return await BestMatch(standing, question).hits(limit), await tx.unindexed()

        hits, unindexed = await self._store.read(work)
        seen = (*shown, *(short(hit.session.id) for hit in hits))
        is_end = len(hits) < limit or len(seen) >= SEARCH_WALK
        return SearchPage(
            hits=tuple(hits),
            cursor=None if is_end else seal_cursor(secret, owner, asking, _Shown(tuple(sorted(seen)))),
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
        self.limit = limit
        self.before = None if walk is None else walk.before
        self.standing = Standing(tx, owner, query, wanted, () if walk is None else walk.shown)
        self.found: dict[str, Hit] = {}
        self.more: dict[str, int] = {}

    async def run(self) -> tuple[list[Hit], _Walk | None]:
        """Walk the matching documents, newest first, until the page is full, the walk too long, or the end."""
        examined, batch = 0, FIRST_BATCH
        while examined < HITS_EXAMINED:
            matches = await self.tx.matches(self.owner, self.query.terms, self.query.role, self.before, batch)
            for match in matches:
                if not await self._take(match):
                    # The next page looks at this match again, for the sessions that found no room.
                    self.before = match.key.above()
                    return self._answer(ended=False)
                self.before = match.key
            examined += len(matches)
            if len(matches) < batch:
                return self._answer(ended=True)
            batch = LARGEST_BATCH
        return self._answer(ended=False)

    def _answer(self, *, ended: bool) -> tuple[list[Hit], _Walk | None]:
        shown = (*self.standing.shown, *map(short, self.found))
        hits = [
            msgspec.structs.replace(hit, more=min(self.more[name], MORE_CAP))
            for name, hit in self.found.items()
        ]
        if ended or self.before is None or len(shown) >= SEARCH_WALK:
            return hits, None
        return hits, _Walk(self.before, tuple(sorted(shown)))

    async def _take(self, match: Match) -> bool:
        """Count the match for every session it stands in; False when the page has no room for a new one."""
        entry: Entry | None = None
        for session, branch in await self.standing.standing_in(match):
            hit = self.found.get(session.id)
            if hit is not None and not self._timed and not _is_better(match, hit):
                self.more[session.id] += 1
                continue
            if match.place is not None and entry is None:
                stretch = Stretch(match.place.log, match.place.seq, match.place.seq)
                entry = decode_entry((await self.tx.payloads(self.owner, [stretch]))[0])
            at = session.created_at if entry is None else entry.at
            if not self.standing.in_time(at):
                continue
            if hit is None and len(self.found) == self.limit:
                return False
            if hit is None or _is_better(match, hit):
                # A message comes where it was said, not where the title stood.
                self.found.pop(session.id, None)
                self.found[session.id] = self.standing.hit(session, entry, at, branch, self.query.terms)
            self.more[session.id] = self.more.get(session.id, -1) + 1
        return True

    @property
    def _timed(self) -> bool:
        return self.query.after is not None or self.query.before is not None


def _is_better(match: Match, hit: Hit) -> bool:
    """Messages say more than a title, which is often made from them."""
    return match.place is not None and hit.entry is None


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
