"""What a client is shown of an open session, in whichever process its turns run.

Nothing is queued for a client. An update of a turn only marks that there is something to show; the content is read from
the store once the client has taken the previous updates. So a client that reads slowly gets longer pieces, a client that
does not read costs nothing, and a turn of another process looks the same as a turn of this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import msgspec

from hitherto.acp.protocol.entry_bytes import Result, Stored, read_page, read_stored, value_of
from hitherto.acp.protocol.initialize import Client
from hitherto.acp.protocol.options import (
    AvailableOptions,
    ChosenOptions,
    choose,
    chosen_options,
    instructed,
    options,
    options_meta,
)
from hitherto.acp.protocol.params import SystemPrompt
from hitherto.acp.protocol.session_rows import meta_fields
from hitherto.acp.protocol.times import rfc3339
from hitherto.acp.protocol.tool_calls import content_of
from hitherto.acp.protocol.updates import Renderer, ShownSoFar
from hitherto.engine import Context, Notice, ToolProgress
from hitherto.errors import EntryNotFound, HithertoError, SessionNotFound
from hitherto.ids import uuid7
from hitherto.model import (
    Change,
    Entry,
    HistoryPage,
    Json,
    Live,
    LiveTool,
    Principal,
    Session,
    decode_json,
    encode,
)
from hitherto.presentation.live_text import unseen
from hitherto.service import Sessions
from hitherto.updates import Compacted, Compacting, Queued, Said, Update
from hitherto.updates import Stored as Kept

PAGE = 1_000
PAGE_BYTES = 256 * 1024
"""The most of a replay at a time: large enough to be fast, small enough to let other requests in."""
NOTICES = 100

log = logging.getLogger(__name__)
Send = Callable[[bytes], Awaitable[None]]
Alone = Callable[[], AbstractAsyncContextManager[Send]]


class SessionDisplay:
    """One session as one client sees it. `followed` is called at the end of a turn of somebody else,
    `asked` while one waits for an answer. `target` is the session that is read: the client's own, or the fork in which a
    read-only one continues (`continuation`, if it exists already)."""

    def __init__(
        self,
        sessions: Sessions,
        who: Principal,
        session: Session,
        client: Client,
        send: Send,
        available_options: AvailableOptions = AvailableOptions(),  # noqa: B008 - a frozen value
        *,
        continuation: Session | None = None,
    ) -> None:
        read = continuation or session
        self.target = read.id
        self.known = KnownState(read, available_options)
        self._sessions, self._who, self._client, self._send = sessions, who, client, send
        self._available_options = available_options
        self._renderer = Renderer(session.id, client)
        self._revision: int | None = read.revision
        self._last: str | None = None
        self._shown: ShownSoFar | None = None
        self._buffered: list[tuple[bool, list[str]]] = []
        self._buffered_entry = ""
        self._progress: dict[str, ToolProgress] = {}
        self._terminals: dict[str, str] = {}
        self._tools_shown: dict[str, LiveTool] = {}
        self._usage_shown: tuple[Context, float | None] | None = None
        self._compacting: deque[Compacting] = deque(maxlen=NOTICES)
        self._context: Context | None = None
        self._notices: deque[Notice] = deque(maxlen=NOTICES)
        self._reports: deque[Notice] = deque(maxlen=NOTICES)
        self._own_prompts: set[str] = set()
        self._prompts, self._unknown_prompts = 0, 0
        self._queued: set[str] = set()
        self._has_new_entries = self._has_live_text = False
        self._session_changed = True  # maybe, since it was read
        self._is_busy = read.status in BUSY
        self.followed: Callable[[], object] = lambda: None
        self.asked: Callable[[], object] = lambda: None
        self._wake = asyncio.Event()
        self._wake.set()
        self._lock = asyncio.Lock()

    # What happens

    def emit(self, update: Update) -> None:
        """Something happened in a turn of this client."""
        match update:
            case Said():
                self._buffer(update)
            case Queued():
                self._know_prompt(update.entry)
                self._queued.add(update.entry)
            case Kept():
                self._note_stored(update.entry)
            case ToolProgress() | Context() | Notice() | Compacting():
                self._note_passing(update)
            case Compacted():
                self._has_new_entries = True
            case _:
                self._session_changed = True
        self._wake.set()

    def _note_passing(self, update: ToolProgress | Context | Notice | Compacting) -> None:
        """Something happened that is shown and not stored."""
        match update:
            case ToolProgress():
                self._progress[update.id] = update
            case Context():
                self._context = update
            case Notice():
                self._notices.append(update)
            case Compacting():
                self._compacting.append(update)

    def report(self, notice: Notice) -> None:
        """Something failed that does not end the session. Clients without notices get it as text during a turn."""
        log.warning("%s", notice.text)
        if self._client.notices:
            self.emit(notice)
        else:
            self._reports.append(notice)

    def embed_terminal(self, call_id: str, terminal_id: str) -> None:
        """The command of a tool call runs in a terminal of this client: it is shown there, while it runs and afterwards."""
        self._terminals[call_id] = terminal_id
        self._wake.set()

    def refresh(self) -> None:
        """Show changes of the session itself, such as its title."""
        self._session_changed = True
        self._wake.set()

    async def show_info(self) -> None:
        """Show what is known of the session itself."""
        async with self._lock:
            await self.update(*self.known.info(await self._sessions.get(self._who, self.target)))

    def note_change(self, change: Change) -> None:
        """The session was changed, in this process or another."""
        if change.revision != self._revision:  # a change of live text may hide an earlier change
            self._revision = change.revision
            self._has_new_entries = self._session_changed = True
        self._has_live_text = True
        self._wake.set()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """While a prompt of this client waits or is answered: it is not sent back to it, and its text comes from `emit`."""
        self._prompts += 1
        self._unknown_prompts += 1
        self._wake.set()
        try:
            yield
        finally:
            self._prompts -= 1
            if not self._prompts:
                self._unknown_prompts = 0
                self._queued.clear()
            self._wake.set()

    @property
    def _turn_running(self) -> bool:
        """Whether a turn of this client runs: a prompt that waits for another turn does not count."""
        return self._prompts > len(self._queued)

    def _note_stored(self, entry: Entry) -> None:
        if entry.id in self._queued:
            self._queued.discard(entry.id)
        elif self._unknown_prompts and entry.role == "user":
            self._know_prompt(entry.id)
        self._has_new_entries = self._session_changed = True

    def _know_prompt(self, entry: str) -> None:
        if entry not in self._own_prompts:
            self._own_prompts.add(entry)
            self._unknown_prompts = max(self._unknown_prompts - 1, 0)

    # What is shown

    async def run(self) -> None:
        """Show updates until cancelled. If the store fails, try again at the next change."""
        while True:
            await self._wake.wait()
            try:
                await self.settle()
            except HithertoError:
                log.exception("cannot show session %s", self.target)

    async def settle(self) -> None:
        """Show everything that has happened until now."""
        async with self._lock:
            self._wake.clear()
            try:
                await self._show()
            except SessionNotFound:
                return  # deleted meanwhile: there is nothing more to show

    async def update(self, kind: str, fields: Json) -> None:
        """Show an update of another kind."""
        await self._send(self._renderer.update(kind, fields))

    async def choose(self, option: str, value: str | bool) -> None:
        """Set an option, and store it with the session."""
        async with self._lock:  # the client that sets an option is not notified of it
            await self._show_session()  # keeps what other clients have set
            chosen = choose(self.known.chosen, option, value, self._available_options)
            await self._sessions.catalog.set_own_meta(self._who, self.target, options_meta(chosen))
            self.known.chosen = chosen

    async def instruct(self, given: SystemPrompt | None) -> None:
        """Keep the client's instructions for the model with the session; without any, it keeps those that it has."""
        if given is not None and (chosen := instructed(self.known.chosen, given)) != self.known.chosen:
            async with self._lock:
                await self._sessions.catalog.set_own_meta(self._who, self.target, options_meta(chosen))
                self.known.chosen = chosen

    async def show_message(self, text: str) -> None:
        """Show a message that is not part of the conversation."""
        async with self._lock:
            await self._send(self._renderer.chunk(uuid7(), text, thought=False))

    async def skip(self) -> None:
        """Treat everything stored as shown."""
        async with self._lock:
            await self._skip()

    async def replay(self, session: Session, alone: Alone) -> None:
        """Show the whole conversation, page by page, in constant memory. `alone` keeps anything else from being sent
        meanwhile."""
        async with self._lock, alone() as send:
            self._renderer = Renderer(session.id, self._client)
            self._last, self._shown = None, None
            await self._pages(send)
            if await self._sessions.leases.current(self._who, self.target) is None:
                for line in self._renderer.close_interrupted():
                    await send(line)
            self._has_live_text = True  # a turn may be running right now
            self._wake.set()

    async def _show(self) -> None:
        while self._compacting:  # before the summary itself, which is shown when it is stored
            for line in self._renderer.compacting(self._compacting.popleft()):
                await self._send(line)
        if self._session_changed:
            self._session_changed = False
            await self._show_session()
        if self._has_new_entries and not self._unknown_prompts:
            self._has_new_entries = False
            await self._pages(self._send)
        if self._buffered:
            await self._show_buffered()
        elif self._has_live_text and not self._turn_running:
            self._has_live_text = False
            await self._show_live()
        await self._show_rest()

    async def _pages(self, send: Send) -> None:
        """All entries after the last one that was shown, in pages of bounded bytes."""
        while True:
            try:
                page = await self._sessions.history(
                    self._who,
                    self.target,
                    view="conversation",
                    after=self._last,
                    limit=PAGE,
                    max_bytes=PAGE_BYTES,
                )
            except (
                EntryNotFound
            ):  # rewound, or read anew from another agent: there is no going back over the wire
                await self._skip()
                return
            if lines := self._lines(page):
                await send(b"".join(lines))
            if page.next is None:
                return
            await asyncio.sleep(0)  # lets other tasks run, however fast the store and the reader are

    def _lines(self, page: HistoryPage) -> list[bytes]:
        """The updates of a page; sets `_last` to its last entry."""
        lines: list[bytes] = []
        entries, marks = read_page(page.raw), frozenset(page.marks)
        if self._own_prompts or self._shown or self._buffered_entry or self._progress or self._tools_shown:
            for at, stored in enumerate(entries):
                self._render_unshown(stored, lines, marks=(0,) if at in marks else ())
        else:
            self._renderer.entries(entries, lines, marks=marks)
        if entries:
            self._last = value_of(entries[-1].id)
        return lines

    def _render_unshown(self, stored: Stored, lines: list[bytes], *, marks: tuple[int, ...]) -> None:
        """The updates of an entry that were not shown yet: none for a prompt of this client, no text twice."""
        entry = value_of(stored.id)
        if entry in self._own_prompts:
            self._own_prompts.discard(entry)
            return
        shown = self._shown if self._shown is not None and self._shown.entry == entry else None
        if entry == self._buffered_entry:
            self._buffered, self._buffered_entry = [], ""
        if shown is not None:
            self._shown = None
        for part in stored.parts if self._progress or self._tools_shown else ():
            if isinstance(part, Result):
                self._progress.pop(part.id, None)
                self._tools_shown.pop(part.id, None)
        self._renderer.entries((stored,), lines, marks=marks, begun=shown)

    async def _skip(self) -> None:
        page = await self._sessions.history(self._who, self.target, view="conversation", last=True, limit=1)
        self._last = page.entries[-1].id if page.raw else None

    async def _show_session(self) -> None:
        """Show changes of the session itself: title, tags, options."""
        session = await self._sessions.get(self._who, self.target)
        for kind, fields in self.known.pending_updates(session):
            await self.update(kind, fields)
        was_busy, self._is_busy = self._is_busy, session.status in BUSY
        if was_busy and not self._is_busy and not self._prompts:
            self.followed()
        if session.status == "waiting" and not self._prompts:
            self.asked()

    # Text that is being written

    def _buffer(self, said: Said) -> None:
        """Buffer a piece until it is shown. The buffer of a message is dropped when the message is stored and shown."""
        if said.entry != self._buffered_entry:
            self._buffered_entry, self._buffered = said.entry, []
        if not self._buffered or self._buffered[-1][0] != said.thought:
            self._buffered.append((said.thought, []))
        self._buffered[-1][1].append(said.text)

    async def _show_buffered(self) -> None:
        pieces, self._buffered = self._buffered, []
        lines = [
            self._render_chunk(self._buffered_entry, "".join(texts), thought) for thought, texts in pieces
        ]
        await self._send(b"".join(lines))

    async def _show_live(self) -> None:
        """Show the text of a turn in another process, as far as it was not shown."""
        data = await self._sessions.changes.live(self._who, self.target)
        if data is None:
            return
        live = msgspec.convert(decode_json(data), Live)
        known = self._shown if self._shown is not None and self._shown.entry == live.entry else None
        lines = [
            self._render_chunk(live.entry, text, thought)
            for thought, text in unseen(live, 0 if known is None else known.length)
        ]
        if lines:
            await self._send(b"".join(lines))
        for tool in live.tools:
            if self._tools_shown.get(tool.id) != tool:
                self._tools_shown[tool.id] = tool
                self._progress[tool.id] = ToolProgress(id=tool.id, content=tool.content)
        if live.used is not None:
            self._context = Context(used=live.used, size=live.size)

    def _render_chunk(self, entry: str, text: str, thought: bool) -> bytes:
        if self._shown is None or self._shown.entry != entry:
            self._shown = ShownSoFar(entry)
        (self._shown.thoughts if thought else self._shown.texts).append(text)
        return self._renderer.chunk(entry, text, thought=thought)

    # What is not stored

    async def _show_rest(self) -> None:
        await self._show_running_tools()
        if self._context is not None:
            await self._show_usage(self._context)
            self._context = None
        while self._reports and self._turn_running:
            await self._send(self._renderer.chunk(uuid7(), self._reports.popleft().text, thought=True))
        while self._notices:
            notice = self._notices.popleft()
            if self._client.notices and notice.text:
                await self.update("notice", {"severity": notice.severity, "title": notice.text})

    async def _show_running_tools(self) -> None:
        """Show where tools run, and what they have put out so far."""
        while self._terminals:
            if (line := self._renderer.embed(*self._terminals.popitem())) is not None:
                await self._send(line)
        while self._progress:
            _, progress = self._progress.popitem()
            if self._renderer.is_embedded(progress.id):
                continue  # its output is seen in the terminal
            parts = read_stored(encode({"id": "", "at": 0, "role": "tool", "parts": progress.content})).parts
            fields: Json = {"toolCallId": progress.id, "status": "in_progress"}
            if content := content_of(parts):
                fields["content"] = content
            await self.update("tool_call_update", fields)

    async def _show_usage(self, context: Context) -> None:
        if context.size is None:
            return
        session = await self._sessions.get(self._who, self.target)
        if self._usage_shown == (context, session.cost):
            return
        self._usage_shown = (context, session.cost)
        cost = {} if session.cost is None else {"cost": {"amount": session.cost, "currency": "USD"}}
        await self.update("usage_update", {"used": context.used, "size": context.size, **cost})


LIST_ONLY = frozenset(
    (
        *("hitherto/tokens", "hitherto/cost", "hitherto/status"),
        *("hitherto/source", "hitherto/parent", "hitherto/parentMessage"),
    )
)
"""Fields that change all the time, or only between a session and its continuation; clients see them in lists only."""


BUSY = ("running", "waiting")
"""While a turn runs, `updatedAt` changes with each message: it is sent at the end."""


class KnownState:
    """What the client knows about the session itself: title, metadata and options."""

    def __init__(self, session: Session, available_options: AvailableOptions) -> None:
        self.chosen: ChosenOptions = chosen_options(session)
        self._available_options = available_options
        self._title, self._meta = session.title, _update_meta(session)
        self._updated_at = session.updated_at

    def pending_updates(self, session: Session) -> Iterator[tuple[str, Json]]:
        """The updates for what has changed since the last call, whoever changed it."""
        fields = self._changed_fields(session)
        if session.updated_at != self._updated_at and (fields or session.status not in BUSY):
            self._updated_at = session.updated_at
            fields["updatedAt"] = rfc3339(session.updated_at)
        if fields:
            yield "session_info_update", fields
        chosen = chosen_options(session)
        if chosen != self.chosen:
            moved, self.chosen = chosen.mode != self.chosen.mode, chosen
            if moved:
                yield self.mode()
            yield self.options()

    def info(self, session: Session) -> tuple[str, Json]:
        """The update with everything that is known of the session itself."""
        self._title, self._meta, self._updated_at = session.title, _update_meta(session), session.updated_at
        fields: Json = {"updatedAt": rfc3339(session.updated_at)}
        if session.title is not None:
            fields["title"] = session.title
        return "session_info_update", {**fields, "_meta": self._meta} if self._meta else fields

    def mode(self) -> tuple[str, Json]:
        """The update of the mode, for clients that do not support options."""
        return "current_mode_update", {"currentModeId": self.chosen.mode}

    def options(self) -> tuple[str, Json]:
        """The update of all options."""
        return "config_option_update", {"configOptions": options(self.chosen, self._available_options)}

    def _changed_fields(self, session: Session) -> Json:
        fields: Json = {}
        if session.title != self._title:
            fields["title"] = self._title = session.title
        if (meta := _update_meta(session)) != self._meta:
            gone = {name: None for name in self._meta if name not in meta}
            fields["_meta"], self._meta = {**meta, **gone}, meta
        return fields


def _update_meta(session: Session) -> Json:
    return {name: value for name, value in meta_fields(session).items() if name not in LIST_ONLY}
