"""The agent's session that is bound to one of ours: routes its updates and collects them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw

from hitherto.acp.proxy.agent_process import AgentProcess
from hitherto.acp.proxy.frames import join_members, members_of, raw_json, text_of
from hitherto.acp.proxy.recorder import STATE_UPDATES, Collector
from hitherto.model import Json, Part
from hitherto.rpc import frames

READY_SECONDS = 0.1
"""How often text is shown to other processes, at most."""
CALL_SECONDS = 1.0
"""How long a tool call waits for its input before it is stored."""
_BEGIN = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":'


def is_state(update: Raw) -> bool:
    """Whether an update is about the state of a session, and not a message."""
    return text_of(members_of(update) or {}, "sessionUpdate") in STATE_UPDATES


class AgentSession:
    """See the module. `waiting`: the editor does not know the session yet. `replaying`: the agent replays messages that are
    already stored. `accepts_titles`: titles of the agent are used, and passed to `on_title`. `on_ready` is called when there
    is something to store."""

    def __init__(
        self,
        process: AgentProcess,
        agent_session_id: str,
        session_id: str,
        *,
        on_ready: Callable[[], None] = lambda: None,
        on_title: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.process, self.agent_session_id = process, agent_session_id
        self.session, self.begin = raw_json(session_id), _BEGIN % frames.encode(session_id)
        self.collector = Collector()
        self.replaying = self.closed = self.waiting = False
        self.accepts_titles = True
        self.counted_cost = 0.0
        self._on_ready, self._on_title = on_ready, on_title
        self._ready_scheduled = self._flush_scheduled = False

    def take_update(self, update: Raw, beside: Json | None = None) -> Raw | None:
        """Record an update; `beside` are other members of its parameters. Returns it as the editor gets it; None if the editor
        does not get it."""
        if self.closed:
            return None
        if self.replaying:
            return update if is_state(update) and self._note_state(update) else None
        fields = self.collector.record(update, beside)
        if fields is not None and fields.get("sessionUpdate") == "session_info_update" and "title" in fields:
            return self._take_title(update, fields["title"])
        self._schedule_ready()
        return update

    def _note_state(self, update: Raw) -> bool:
        self.collector.record(update)
        return True

    def hear(self, parts: tuple[Part, ...]) -> None:
        """The user says something while the agent answers."""
        self.collector.hear(parts)
        self._schedule_ready()

    def ask(self, call: object) -> None:
        """The agent asks the user about a tool call."""
        self.collector.record_question(call)
        self._schedule_ready()

    def _take_title(self, update: Raw, title: object) -> Raw:
        if self.accepts_titles:
            if isinstance(title, str):
                self._on_title(title)
            return update
        members = members_of(update) or {}
        return Raw(join_members({name: raw for name, raw in members.items() if name != "title"}))

    def _schedule_ready(self) -> None:
        if self.collector.is_ready:
            self._on_ready()
        elif not self._ready_scheduled:
            self._ready_scheduled = True
            asyncio.get_running_loop().call_later(READY_SECONDS, self._report_ready)
        if not self._flush_scheduled and self.collector.has_calls:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_later(CALL_SECONDS, self._flush_calls)

    def _report_ready(self) -> None:
        self._ready_scheduled = False
        self._on_ready()

    def _flush_calls(self) -> None:
        self._flush_scheduled = False
        if self.collector.has_calls:
            self.collector.complete_message()
            self._on_ready()
