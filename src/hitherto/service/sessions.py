"""`Sessions`: one object, composed of the rooms of the service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_origin, get_type_hints

from msgspec.structs import replace

from hitherto.engine import Choices, Engine
from hitherto.errors import InvalidInput, ModelMissing
from hitherto.ids import now_ms, uuid7
from hitherto.model import Part, Principal, QueueMode, Reach
from hitherto.ports import Store
from hitherto.service.access.identities import Identities
from hitherto.service.access.people import People
from hitherto.service.access.presence import Presence
from hitherto.service.access.reach import ReachedStore
from hitherto.service.access.signin import SignIn
from hitherto.service.access.tokens import Tokens
from hitherto.service.admin.maintenance import Admin
from hitherto.service.admin.statistics import Statistics
from hitherto.service.admin.usage import Spending
from hitherto.service.catalog.projects import Projects
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.changes import Changes
from hitherto.service.channels.addresses import Channels
from hitherto.service.channels.resets import Resets
from hitherto.service.compaction.compact import Compaction
from hitherto.service.compaction.episodes import Episodes
from hitherto.service.core import Core, Home, Room, StoredHome
from hitherto.service.edits.edits import Edits
from hitherto.service.history.branches import Branches
from hitherto.service.history.checkpoints import Timeline
from hitherto.service.history.comparison import Comparisons
from hitherto.service.history.entries import Entries
from hitherto.service.history.forks import Forks
from hitherto.service.history.inbox import Inbox
from hitherto.service.idempotency import Idempotency
from hitherto.service.memory.facts import Memory
from hitherto.service.search.sessions import Index
from hitherto.service.search.within import ConversationSearch
from hitherto.service.transfer.transfer import Transfer
from hitherto.service.turns.leases import Leases
from hitherto.service.turns.questions import Questions
from hitherto.service.turns.turns import Turns
from hitherto.summariser import CompactionPolicy
from hitherto.updates import Ask, Emit, Outcome
from hitherto.values.scopes import restricts_sessions

P = ParamSpec("P")
R = TypeVar("R", bound=Room)
T = TypeVar("T")


def _flat(room: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Sessions, P], T]:
    """A method of `Sessions` that is the method of a room: with its parameters, its types and its words."""
    name = method.__name__

    @wraps(method)
    def call(self: Sessions, /, *given: P.args, **named: P.kwargs) -> T:
        result: T = getattr(getattr(self, room), name)(*given, **named)
        return result

    return call


class Sessions:
    """All that can be done with sessions. Every call takes the principal on whose behalf it is made.

    What is wanted most is a method; the rest is reached by its noun: `sessions.tokens.create(…)`.
    """

    is_here = True
    """Whether this process has the store itself; else a server has it."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = uuid7,
        ephemeral: Sessions | None = None,
        compaction: CompactionPolicy = CompactionPolicy(),  # noqa: B008 - a frozen value
        home: Home = StoredHome(),  # noqa: B008 - it has no state
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.core = Core(store=store, aside=store, now=now, new_id=new_id, home=home, compaction=compaction)
        self.engine: Engine | None = None
        """What answers prompts, where that is not the caller's to choose: a server's."""
        self._ephemeral, self._close = ephemeral, close

    # What nearly everybody needs, as it is documented in its room.

    create = _flat("catalog", Catalog.create)
    get = _flat("catalog", Catalog.get)
    get_by_key = _flat("catalog", Catalog.get_by_key)
    resolve = _flat("catalog", Catalog.resolve)
    find = _flat("catalog", Catalog.find)
    count = _flat("catalog", Catalog.count)
    rename = _flat("catalog", Catalog.rename)
    tag = _flat("catalog", Catalog.tag)
    archive = _flat("catalog", Catalog.archive)
    pin = _flat("catalog", Catalog.pin)
    move = _flat("catalog", Catalog.move)
    set_meta = _flat("catalog", Catalog.set_meta)
    delete = _flat("catalog", Catalog.delete)
    append = _flat("entries", Entries.append)
    history = _flat("entries", Entries.history)
    entry = _flat("entries", Entries.entry)
    erase = _flat("entries", Entries.erase)
    fork = _flat("forks", Forks.fork)
    branch = _flat("forks", Forks.branch)
    rewind = _flat("timeline", Timeline.rewind)
    reset = _flat("episodes", Episodes.reset)
    restore = _flat("timeline", Timeline.restore)
    checkpoints = _flat("timeline", Timeline.checkpoints)
    compact = _flat("compaction", Compaction.compact)
    search = _flat("index", Index.search)
    within = _flat("conversation", ConversationSearch.find)
    opened = _flat("turns", Turns.opened)
    watch = _flat("changes", Changes.watch)
    wait = _flat("changes", Changes.wait)
    usage = _flat("spending", Spending.usage)
    export = _flat("transfer", Transfer.export)
    import_ = _flat("transfer", Transfer.import_)

    def at(self, name: str) -> Sessions:
        """Where a session of this key or id is kept: here, or in the memory of this process if it is ephemeral."""
        if self.core.home.keeps(name):
            return self
        if self._ephemeral is None:
            raise InvalidInput("ephemeral sessions are not enabled: open the store with ephemeral=True")
        return self._ephemeral

    def limited_to(self, reach: Reach | None) -> Sessions:
        """The same sessions as a token sees them that is restricted to this reach: what is beyond it is not there."""
        if reach is None or not restricts_sessions(reach):
            return self
        store = cast("Store", ReachedStore(self.core.store, reach))
        limited = self._over(replace(self.core, store=store, aside=store))
        limited._ephemeral = None if self._ephemeral is None else self._ephemeral.limited_to(reach)
        return limited

    async def prompt(
        self,
        who: Principal,
        session_id: str,
        parts: Sequence[Part],
        *,
        engine: Engine | None = None,
        choices: Choices = Choices(),  # noqa: B008 - a frozen value
        ask: Ask | None = None,
        emit: Emit = lambda _: None,
        wait: bool = False,
        queue: QueueMode | None = None,
        idempotency_key: str | None = None,
    ) -> Outcome:
        """Open the session, say something in it, have it answered, and close it. See `opened` and `OpenSession.prompt`.

        It is answered by `engine`, else by the one that these sessions have; `ModelMissing` if there is neither.
        """
        answering = engine or self.engine
        if answering is None:
            raise ModelMissing("there is no engine to answer the prompt: pass one as engine")
        async with self.opened(who, session_id, answering) as opened:
            return await opened.prompt(
                parts,
                choices=choices,
                ask=ask,
                emit=emit,
                wait=wait,
                queue=queue,
                idempotency_key=idempotency_key,
            )

    async def close(self) -> None:
        """Close the store that `hitherto.open` has opened for these sessions. To close twice is to close once."""
        if self._close is not None:
            await self._close()

    # The rooms. Each is made when it is first used, and is given those that it needs.

    @cached_property
    def catalog(self) -> Catalog:
        """Sessions as a list: everything about them but what was said."""
        return self._room(Catalog)

    @cached_property
    def projects(self) -> Projects:
        """The projects that sessions belong to."""
        return self._room(Projects, self.catalog)

    @cached_property
    def entries(self) -> Entries:
        """What was said."""
        return self._room(Entries)

    @cached_property
    def edits(self) -> Edits:
        """What sessions changed in files."""
        return self._room(Edits)

    @cached_property
    def inbox(self) -> Inbox:
        """What waits for a running turn."""
        return self._room(Inbox)

    @cached_property
    def forks(self) -> Forks:
        """Sessions that share the history of another."""
        return self._room(Forks)

    @cached_property
    def timeline(self) -> Timeline:
        """Earlier states of a session, and going back to them."""
        return self._room(Timeline)

    @cached_property
    def branches(self) -> Branches:
        """What was said beside the conversations of other agents' sessions."""
        return self._room(Branches)

    @cached_property
    def comparison(self) -> Comparisons:
        """Sessions that begin with the same history."""
        return self._room(Comparisons)

    @cached_property
    def conversation(self) -> ConversationSearch:
        """Finding the way within one session."""
        return self._room(ConversationSearch)

    @cached_property
    def index(self) -> Index:
        """Finding sessions by what was said in them."""
        return self._room(Index, self.catalog, self.projects)

    @cached_property
    def turns(self) -> Turns:
        """Prompts and their answers."""
        return self._room(Turns, self.catalog, self.forks, self.leases, self.changes, self.compaction)

    @cached_property
    def leases(self) -> Leases:
        """The right to write to a session for a while."""
        return self._room(Leases)

    @cached_property
    def questions(self) -> Questions:
        """What running turns want to know about their tools."""
        return self._room(Questions)

    @cached_property
    def compaction(self) -> Compaction:
        """Making a context smaller."""
        return self._room(Compaction)

    @cached_property
    def episodes(self) -> Episodes:
        """The parts of a session from one reset to the next."""
        return self._room(Episodes)

    @cached_property
    def changes(self) -> Changes:
        """What happens to sessions, as it happens."""
        return self._room(Changes)

    @cached_property
    def memory(self) -> Memory:
        """Facts that outlive the context they were drawn from."""
        return self._room(Memory)

    @cached_property
    def tokens(self) -> Tokens:
        """Who may call a server."""
        return self._room(Tokens)

    @cached_property
    def identities(self) -> Identities:
        """Accounts that are known to be one person."""
        return self._room(Identities)

    @cached_property
    def people(self) -> People:
        """Everything of one person."""
        return self._room(People, self.catalog, self.entries, self.identities)

    @cached_property
    def signin(self) -> SignIn:
        """Signing in to the page."""
        return self._room(SignIn)

    @cached_property
    def presence(self) -> Presence:
        """Who has which session open."""
        return self._room(Presence)

    @cached_property
    def channels(self) -> Channels:
        """Sessions of a chat gateway, which go by key."""
        return self._room(Channels)

    @cached_property
    def resets(self) -> Resets:
        """Chats that start anew by the clock."""
        return self._room(Resets)

    @cached_property
    def transfer(self) -> Transfer:
        """Exports, imports, and sessions of other agents."""
        return self._room(Transfer, self.catalog)

    @cached_property
    def statistics(self) -> Statistics:
        """Sessions in numbers."""
        return self._room(Statistics, self.spending)

    @cached_property
    def spending(self) -> Spending:
        """Tokens and money."""
        return self._room(Spending)

    @cached_property
    def admin(self) -> Admin:
        """Care of the store itself."""
        return self._room(Admin, self.catalog, self.leases)

    @cached_property
    def idempotency(self) -> Idempotency[Sessions]:
        """Writing at most once, and only at the revision that the caller has seen."""
        return self._room(Idempotency[Sessions], self._over)

    def _room(self, kind: Callable[Concatenate[Core, P], R], *needs: P.args, **named: P.kwargs) -> R:
        """Make a room. Whoever keeps sessions elsewhere gives another of its kind."""
        return kind(self.core, *needs, **named)

    def _over(self, core: Core) -> Sessions:
        """The same sessions over another core, with rooms of their own."""
        if core is self.core:
            return self
        other = type(self).__new__(type(self))
        vars(other).update(each for each in vars(self).items() if each[0] not in ROOMS)
        other.core = core
        return other


def _kind(room: cached_property[Any]) -> type[Room]:
    hint = get_type_hints(room.func)["return"]
    kind: type[Room] = get_origin(hint) or hint
    return kind


ROOMS: Mapping[str, type[Room]] = {
    name: _kind(member) for name, member in vars(Sessions).items() if isinstance(member, cached_property)
}
"""All rooms, by the name that they have in `Sessions`."""
