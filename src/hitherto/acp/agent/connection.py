"""One client's connection: who it is, what it can do, which sessions it has open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol
from weakref import WeakValueDictionary

import msgspec

from hitherto.acp.agent.display import SessionDisplay
from hitherto.acp.agent.editor_host import editor_host
from hitherto.acp.agent.elicitation import elicitor_of
from hitherto.acp.agent.permission import UNANSWERED, ask_permission
from hitherto.acp.agent.session import AttachedSession
from hitherto.acp.protocol.initialize import About, Client
from hitherto.acp.protocol.options import AvailableOptions
from hitherto.acp.protocol.session_rows import BEHIND, NOWHERE
from hitherto.engine import Engine, Notice
from hitherto.engines.capabilities import Reads, reads_of
from hitherto.errors import HithertoError, InvalidCwd, InvalidInput, SignInRequired
from hitherto.holders import new_holder
from hitherto.model import LOCAL, Change, Principal, Session, ToolCall
from hitherto.permissions import Choice, Verdict
from hitherto.rpc.errors import INVALID_PARAMS, INVALID_REQUEST, OVERLOADED, Failure, Gone, failure_of
from hitherto.rpc.peer import Peer
from hitherto.service import Sessions
from hitherto.service.catalog.folders import folder_of, name_within
from hitherto.service.catalog.metadata import folders_of
from hitherto.tasks import Turns
from hitherto.updates import elsewhere
from hitherto.values.filters import normal_cwd
from hitherto.values.mcp_servers import McpServer

OPEN_SESSIONS = 256
AUTH_REQUIRED = -32000
HOW = "To sign in, run `hitherto acp --sign-in` in a terminal"
RETRY_SECONDS = 1.0
PRESENT_SECONDS = 120.0
OUTLIVING_SECONDS = 2.0
"""How often to look whether somebody has a session open whose client has left."""
GROWN = "You continued this session here, and {} has continued the original since. Newer messages there are not part of this session."

log = logging.getLogger(__name__)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent offers beyond its engine. `about` identifies it. The first of `models` is the default. `options` are
    those that the engine uses. `imported`: list sessions of other agents too. `local`: the client is a person on this
    machine. `reading`: what prompts may contain, if it cannot be derived from the names of the models. `signs_in`: users can
    sign in to the provider of the model."""

    about: About = About()
    models: tuple[str, ...] = ()
    options: tuple[Literal["model", "mode", "thinking"], ...] = ("model", "mode", "thinking")
    imported: bool = True
    local: bool = True
    reading: Reads | None = None
    signs_in: bool = False

    def reads(self, chosen: str | None = None) -> Reads:
        """What a prompt may contain for the chosen model, or the default one."""
        return self.reading or reads_of(chosen or next(iter(self.models), None))

    @property
    def available_options(self) -> AvailableOptions:
        """What users can choose."""
        return AvailableOptions(self.models, self.options)

    @property
    def native(self) -> bool | None:
        """The value of `Filter.native` for lists of this agent."""
        return None if self.imported else True


async def _always() -> bool:
    return True


class Outliving(NamedTuple):
    """How long turns go on when their client has left: so many seconds in which nobody has their session open, while its right
    to them `holds`."""

    seconds: float
    holds: Callable[[], Awaitable[bool]] = _always


class Watcher(Protocol):
    """Gets every change until `end`."""

    def note(self, change: Change) -> None: ...

    def end(self) -> None: ...


class Connection:
    """See the module. `holder` identifies it to other processes. If the store could not be opened, `sessions` is the error,
    and every request is answered with it."""

    peer: Peer[Connection]
    session_type: type[AttachedSession] = AttachedSession
    display_type: type[SessionDisplay] = SessionDisplay

    def __init__(
        self,
        sessions: Sessions | HithertoError,
        who: Principal,
        engine: Engine,
        tasks: asyncio.TaskGroup,
        *,
        client: Client | None = None,
        offer: Offer = Offer(),  # noqa: B008 - a frozen value
        warm: asyncio.Event | None = None,
        outliving: Outliving | None = None,
    ) -> None:
        self._outliving = outliving
        self.who, self.engine, self.offer, self._warm = who, engine, offer, warm
        self.client = client
        self.attached: dict[str, AttachedSession] = {}
        self.watchers: dict[str, Watcher] = {}
        self._reserved = 0
        self._sessions = sessions
        self._tasks = tasks
        self._started: set[asyncio.Task[None]] = set()
        self._follow_task: asyncio.Task[None] | None = None
        self._presence_task: asyncio.Task[None] | None = None
        self._presence_changed = asyncio.Event()
        self.holder = new_holder()
        self.by_session = Turns()
        self._closed = False
        self._session_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def sessions(self) -> Sessions:
        """The service, for a client that has called `initialize`."""
        if self.client is None:
            raise Failure(INVALID_REQUEST, "call initialize first")
        if isinstance(self._sessions, HithertoError):
            raise self._sessions
        return self._sessions

    @property
    def is_here(self) -> bool:
        """Whether the client is a user of this machine: folders named by remote callers are never read."""
        return self.offer.local and self.who == LOCAL

    async def folder(self, cwd: str) -> str:
        """The one name of a folder, under whichever the client knows it."""
        return await folder_of(self.sessions.catalog, self.who, cwd) if self.is_here else normal_cwd(cwd)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that ends with the connection. If it fails, that is logged and affects nothing else."""
        task = self._tasks.create_task(_log_failure(work))
        self._started.add(task)
        task.add_done_callback(self._started.discard)
        return task

    def session_lock(self, session_id: str) -> asyncio.Lock:
        """Held while the session is opened or closed."""
        return self._session_locks.setdefault(session_id, asyncio.Lock())

    @contextmanager
    def reserve(self, session_id: str | None = None) -> Iterator[None]:
        """Reserve a place for one more open session, unless this one is open already. Done before anything is stored, so
        that no session is created that cannot be opened."""
        if session_id in self.attached:
            yield
            return
        if len(self.attached) + self._reserved >= OPEN_SESSIONS:
            message = f"too many open sessions: a client may have {OPEN_SESSIONS}. Close some first"
            raise Failure(OVERLOADED, message)
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    async def attach(
        self, session: Session, cwd: str | None, directories: Sequence[str], servers: Sequence[McpServer]
    ) -> AttachedSession:
        """Open a session, within `reserve`; from now on its changes are noted. Nothing is shown before
        `AttachedSession.begin`."""
        await self.detach(session.id)
        await self.follow()
        if self._presence_task is None:
            self._presence_task = self.start(self._report_presence())
        client = self.client or Client()
        roots = roots_of(session, cwd, directories)
        display = await self._make_display(session, client)
        attached = self.session_type(
            self.sessions,
            self.who,
            session,
            self.engine,
            display,
            self.start,
            roots=roots,
            servers=servers,
            host=editor_host(
                self.peer,
                session.id,
                client,
                roots,
                self.start,
                display.embed_terminal,
                local=self.offer.local,
                apart=self._outliving is not None,
            ),
            local=self.offer.local,
            elicitor=elicitor_of(self.peer, session.id, client, display.settle),
            warm=self._warm,
        )
        attached.ask = partial(self._ask, attached)
        attached.outlives = lambda: self._outliving is not None and self.peer.left
        self.attached[session.id] = attached
        self._presence_changed.set()
        return attached

    async def _make_display(self, session: Session, client: Client) -> SessionDisplay:
        """What the client will see. A session that continues in a fork is shown as it is there."""
        continuation = await self.sessions.turns.continued(self.who, session.id)
        display = self.display_type(
            self.sessions,
            self.who,
            session,
            client,
            self.peer.send,
            self.offer.available_options,
            continuation=continuation,
        )
        grown = (
            continuation is not None
            and continuation.id != session.id
            and session.updated_at > continuation.created_at
        )
        if grown and continuation is not None and BEHIND not in continuation.meta:
            display.report(Notice(text=GROWN.format(session.source), severity="warning"))
        return display

    async def ensure_open(self, session_id: str) -> AttachedSession:
        """The open session of this id. If it is not open yet, it is opened with its own folder and no others."""
        async with self.session_lock(session_id):
            known = self.attached.get(session_id)
            if known is None:
                session = await self.sessions.get(self.who, session_id)
                with self.reserve():
                    known = await self.attach(session, next(iter(folders_of(session)), None), (), ())
                await known.display.skip()
                await known.begin()
            return known

    async def detach(self, session_id: str) -> None:
        """Close a session, if it is open; its running turn ends first."""
        attached = self.attached.pop(session_id, None)
        if attached is not None:
            self._presence_changed.set()
            await attached.close()

    async def _ask(self, attached: AttachedSession, call: ToolCall) -> Choice | Verdict:
        return await ask_permission(self.peer, attached.session.id, call, attached.text_of)

    async def answer_from_others(self, attached: AttachedSession, call: ToolCall) -> Choice | Verdict:
        """What somebody else answers about a call, when the client has left; for a while, and nobody about what acts on the
        client's own machine."""
        if self._outliving is not None and not attached.needs_its_client(call):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._outliving.seconds):
                    return await elsewhere(call)
        return Verdict(allowed=False, reason=UNANSWERED)

    async def outlive(self) -> None:
        """When the client has left: let its turns go on, until they end or nobody has had their session open for too long."""
        if self._outliving is None:
            return
        self._leave()
        await asyncio.gather(*(self._outlive(each, self._outliving) for each in list(self.attached.values())))

    async def _outlive(self, attached: AttachedSession, outliving: Outliving) -> None:
        loop = asyncio.get_running_loop()
        seen = loop.time()
        while not await attached.is_idle_within(min(OUTLIVING_SECONDS, outliving.seconds)):
            with suppress(HithertoError):  # the store may be away for a moment
                if not await outliving.holds():
                    break
                if await self.sessions.presence.attended(self.who, attached.session.id):
                    seen = loop.time()
            if loop.time() - seen >= outliving.seconds:
                break
        await self.detach(attached.session.id)

    def _leave(self) -> None:
        """Nothing is open here any more, as others see it."""
        self._closed = True
        self._presence_changed.set()

    async def close(self) -> None:
        """Close all sessions at the same time: a client that disconnects does not wait long."""
        await asyncio.gather(*map(self.detach, list(self.attached)))
        self._leave()
        if self._presence_task is not None:
            await asyncio.wait([self._presence_task])
        for task in self._started:
            task.cancel()

    async def follow(self) -> None:
        """Follow all changes from now on."""
        if self._follow_task is None:
            position = await self.sessions.changes.newest(self.who)
            self._follow_task = self.start(self._follow(position))

    async def _follow(self, position: str) -> None:
        while True:
            try:
                async for change in self.sessions.watch(self.who, after=position):
                    position = change.position
                    self._dispatch(change)
            except HithertoError:
                log.exception("cannot read the change feed; trying again")
                await asyncio.sleep(RETRY_SECONDS)

    async def _report_presence(self) -> None:
        """Record which sessions are open here, whenever that changes and at regular intervals; at the beginning and at the end,
        remove the drafts that have been left."""
        reported: set[str] = set()
        drafts_removed = False
        while True:
            self._presence_changed.clear()
            leaving = self._closed
            present: set[str] = set() if leaving else set(self.attached)
            try:
                await self.sessions.presence.attend(
                    self.who, self.holder, opened=present, left=reported - present
                )
                reported = present
                if leaving or not drafts_removed:
                    drafts_removed = True
                    await self.sessions.presence.remove_drafts(self.who)
            except HithertoError:
                log.exception("cannot record which sessions are open here")
                reported |= present
            if leaving:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(PRESENT_SECONDS):
                    await self._presence_changed.wait()

    def _dispatch(self, change: Change) -> None:
        for attached in self.attached.values():
            if change.session in (attached.session.id, attached.target):
                attached.display.note_change(change)
        for watcher in list(self.watchers.values()):
            watcher.note(change)


async def _log_failure(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Gone:
        pass  # the task that reads requests notices it too
    except Exception:
        log.exception("a task of the connection failed")


def to_failure(error: HithertoError, params: Any, offer: Offer | None = None) -> Failure:
    """An error of the program as a protocol error; it names the session of the request. What a sign-in would mend is said so,
    if there is one."""
    failure = failure_of(error)
    if isinstance(error, SignInRequired) and offer is not None and offer.signs_in:
        failure = Failure(AUTH_REQUIRED, f"Authentication required: {error.message}. {HOW}", failure.data)
    session_id = getattr(params, "session_id", None)
    if session_id is not None and failure.data is not None:
        failure.data = {**failure.data, "sessionId": session_id}
    return failure


async def check_cwd(connection: Connection, session: Session, cwd: str) -> str:
    """The folder in which a client opens a session, under the name that it gives if that leads there. Raises unless it is or
    was the session's own."""
    given = normal_cwd(cwd)
    if session.cwd is None or given == session.cwd:
        return given
    name = None
    if connection.is_here:
        name = await name_within(connection.sessions.catalog, connection.who, session, given)
    if name is None and given in session.earlier_cwds:
        name = session.cwd
    if name is None:
        message = f"cwd must be {session.cwd}, the folder of this session. If you moved the folder, run `hitherto move`"
        raise Failure(
            INVALID_PARAMS, message, {"code": InvalidCwd.code, "cwd": session.cwd, "sessionId": session.id}
        )
    return name


def check_directories(directories: Sequence[str] | None) -> tuple[str, ...]:
    """The normal form of the additional folders; each must be absolute."""
    for directory in directories or ():
        if not directory:
            raise InvalidInput("an additional directory cannot be empty")
    return tuple(normal_cwd(directory) for directory in directories or ())


def roots_of(session: Session, cwd: str | None, directories: Sequence[str]) -> tuple[str, ...]:
    """The folders that tools may touch. A session without a folder is listed with `/`, but does not get the whole machine."""
    if cwd is None or (session.cwd is None and cwd == NOWHERE):
        return tuple(directories)
    return (cwd, *directories)
