"""Search: the newest hit in each session, or its best one, whatever the store."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from hitherto.errors import InvalidInput, InvalidQuery, SearchTooBroad
from hitherto.limits import COUNTED, SEARCH_PAGE, SEARCH_WALK, checked_limit
from hitherto.model import Condition, Facets, Filter, Found, Hit, Principal, SearchPage, Session
from hitherto.ports import Reader
from hitherto.service.catalog.projects import Projects
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.search.best import BestMatch
from hitherto.service.search.newest import ORDERS, Asking, NewestMatch, Order, Walk
from hitherto.service.search.standing import short
from hitherto.service.search.tally import Tally
from hitherto.service.validation import checked_owner
from hitherto.values.cursors import open_cursor, seal_cursor
from hitherto.values.facets import KINDS, facets_of, freed, is_kept, with_here
from hitherto.values.filters import normal_filter, title_text
from hitherto.values.query.language import FOREVER, Query, filtered, parse_query
from hitherto.values.query.moments import Period


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
        count: bool = False,
    ) -> SearchPage:
        """The newest hit of each session whose conversation or titles have all the words in one message; or, with `best`, the
        sessions that answer a question best, each with its best message: any of the words will do, in any form.

        Words, "phrases", prefix*, -words, `last week`, and fields such as project: to narrow, as `values.query.language` reads them: raises
        `InvalidQuery` for a field that there is not. Archived sessions are searched too unless the filter says otherwise. A page may
        be shorter than `limit` and still have a cursor. With `count` it also says how much there is in all.
        """
        self._core.home.check_allowed("searched")
        owner = checked_owner(who)
        checked_limit(limit, SEARCH_PAGE)
        query = await self._parsed(who, text)
        wanted = filtered(normal_filter(given or Filter(archived="include")), query)
        if query == Query() and isinstance(text, str) and text.strip():
            return SearchPage(hits=())  # nothing but signs: no message has all of its words, for it has none
        if order not in ORDERS:
            raise InvalidInput(f"an order is one of {', '.join(ORDERS)}, not {order!r}")
        if not query.is_about_messages:
            return await self._sessions_only(who, query, wanted, cursor, limit, count=count)
        asking = Asking(owner, text, query, wanted, limit, order)
        page = await (self._best if asking.is_question else self._newest)(asking, cursor)
        if not count:
            return page
        return msgspec.structs.replace(page, found=(await self._tally(asking)).found())

    async def _parsed(self, who: Principal, text: str) -> Query:
        """The query that a text means, with its projects by their whole names."""
        query = parse_query(text if isinstance(text, str) else "", self._now())
        session = [await self._called(who, each) for each in query.session]
        return replace(query, session=tuple(session))

    async def _called(self, who: Principal, given: Condition) -> Condition:
        if given.field != "project":
            return given
        names = [await self._projects.called(who, value) for value in given.values]
        return Condition(field=given.field, values=tuple(names), out=given.out)

    async def _newest(self, asking: Asking, cursor: str | None) -> SearchPage:
        secret, owner, question = self._store.secret, asking.owner, ["search", asking.text, asking.wanted]
        walk = None if cursor is None else open_cursor(secret, owner, question, cursor, Walk)

        shown = () if walk is None else walk.shown

        async def work(tx: Reader) -> tuple[list[Hit], Walk | None, int]:
            search = NewestMatch(tx, asking.standing(tx, secret, shown), asking, walk)
            return *await search.run(), await tx.unindexed()

        hits, rest, unindexed = await self._store.read(work)
        return SearchPage(
            hits=tuple(hits),
            cursor=None if rest is None else seal_cursor(secret, owner, question, rest),
            unindexed=unindexed,
            unordered=await self._core.aside.unordered(),
        )

    async def _best(self, asking: Asking, cursor: str | None) -> SearchPage:
        secret, owner, question = self._store.secret, asking.owner, ["best", asking.text, asking.wanted]
        shown = () if cursor is None else open_cursor(secret, owner, question, cursor, _Shown).shown

        async def work(tx: Reader) -> tuple[list[Hit], int]:
            best = BestMatch(asking.standing(tx, secret, shown), asking.query)
            return await best.hits(asking.limit), await tx.unindexed()

        hits, unindexed = await self._store.read(work)
        seen = (*shown, *(short(hit.session.id) for hit in hits))
        is_end = len(hits) < asking.limit or len(seen) >= SEARCH_WALK
        return SearchPage(
            hits=tuple(hits),
            cursor=None if is_end else seal_cursor(secret, owner, question, _Shown(tuple(sorted(seen)))),
            unindexed=unindexed,
        )

    async def _tally(self, asking: Asking) -> Tally:
        """Count what a search finds: as far as its time allows, by itself, so that it never costs the hits."""
        tallies: list[Tally] = []

        async def work(tx: Reader) -> None:
            standing = asking.standing(tx, self._store.secret)
            tallies.append(Tally(standing))
            if asking.is_question:
                await BestMatch(standing, asking.query).count(tallies[-1])
            else:
                await NewestMatch(tx, standing, asking).count(tallies[-1])

        try:
            await self._store.read(work)
        except SearchTooBroad:
            tallies[-1].more = True
        return tallies[-1]

    async def _sessions_only(
        self, who: Principal, query: Query, wanted: Filter, cursor: str | None, limit: int, *, count: bool
    ) -> SearchPage:
        """A query that says nothing about messages: the sessions that pass, newest activity first."""
        active = _active(wanted, query)
        page = await self._catalog.find(who, active, cursor=cursor, limit=limit)
        found = None
        if count:
            sessions = await self._listed(who, active)
            found = Found(hits=0, sessions=min(len(sessions), COUNTED), more=len(sessions) > COUNTED)
        hits = tuple(
            Hit(session=session, snippet=title_text(session).partition("\n")[0]) for session in page.sessions
        )
        unindexed = await self._store.read(lambda tx: tx.unindexed())
        return SearchPage(hits=hits, cursor=page.cursor, unindexed=unindexed, found=found)

    async def narrowed(self, who: Principal, text: str, *, given: Filter | None = None) -> Filter:
        """The filter of a list together with a query: its fields, the words that titles must have, and the time of the last activity.

        Raises `InvalidQuery` if it asks for messages, which a list knows nothing of.
        """
        query = await self._parsed(who, text)
        wanted = filtered(normal_filter(given or Filter()), query)
        asked = (*query.message, *query.files)
        if asked or query.without:
            what = f"{asked[0].field}:" if asked else "a word to leave out"
            raise InvalidQuery(
                f"{what} is about messages, which a list does not look at: search for it instead"
            )
        titled = " ".join(filter(None, (wanted.text, query.plain))) or None
        return _active(msgspec.structs.replace(wanted, text=titled), query)

    async def facets(
        self, who: Principal, text: str = "", *, given: Filter | None = None, order: Order = "newest"
    ) -> Facets:
        """How many of the sessions that a search or a filter finds are of each kind. For each kind they are counted as if nothing
        were chosen of it, so that it says what else could be; at most 1,000 sessions are. `sources` has `hitherto` for what was
        made here, if there are others. Without a search and a filter all sessions are counted.
        """
        self._core.home.check_allowed("searched")
        owner, wanted = checked_owner(who), normal_filter(given or Filter())
        is_search = bool(text.strip())
        kept = [kind for kind in KINDS if not is_search and is_kept(wanted, kind)]
        kinds = {kind: freed(wanted, kind, is_search=is_search) for kind in KINDS if kind not in kept}
        found = {each: await self._all(who, text, each, order) for each in dict.fromkeys(kinds.values())}
        counted = facets_of({kind: found[each][0] for kind, each in kinds.items()})
        known = await self._store.read(lambda tx: tx.facets(owner)) if kept else Facets()
        known = with_here(known, known.total - sum(number for _, number in known.sources))
        fields = {KINDS[kind]: getattr(known, KINDS[kind]) for kind in kept}
        more = tuple(KINDS[kind] for kind, each in kinds.items() if found[each][1])
        return msgspec.structs.replace(counted, more=more, **fields)

    async def _all(
        self, who: Principal, text: str, given: Filter, order: Order
    ) -> tuple[list[Session], bool]:
        """The sessions that a search finds, as far as they are counted, and whether there are more."""
        query = await self._parsed(who, text)
        wanted = filtered(given, query)
        if not query.is_about_messages:
            listed = await self._listed(who, _active(wanted, query))
            return listed[:COUNTED], len(listed) > COUNTED
        tally = await self._tally(Asking(checked_owner(who), text, query, wanted, 1, order))
        return list(tally.sessions.values()), tally.more

    async def _listed(self, who: Principal, given: Filter) -> list[Session]:
        """The sessions of a list, up to one more than are counted."""
        found: dict[str, Session] = {}
        async for session in self._catalog.every(who, given):
            found[session.id] = session
            if len(found) > COUNTED:
                break
        return list(found.values())


def _active(wanted: Filter, query: Query) -> Filter:
    """The filter with the time that the query asks for, as that of the last activity."""
    when = query.when or Period(-FOREVER, FOREVER)
    after = [at for at in (wanted.updated_after, query.after, when.after) if at is not None]
    before = [at for at in (wanted.updated_before, query.before, when.before) if at is not None]
    latest, first = max(after), min(before)
    return msgspec.structs.replace(
        wanted,
        updated_after=None if latest == -FOREVER else latest,
        updated_before=None if first == FOREVER else first,
    )


__all__ = ["ORDERS", "Index", "Order"]
