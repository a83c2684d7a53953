"""A session of the agent's behind one of ours: where its updates go, and what is collected of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw

from hitherto.acp.proxy.agent_process import Life
from hitherto.acp.proxy.frames import joined, members_of, text_of, written
from hitherto.acp.proxy.recorder import UNSAID, Collector
from hitherto.rpc import frames

RING_SECONDS = 0.1
"""What is said is shown to other processes so often, at most."""
CALL_SECONDS = 1.0
"""So long a call is kept waiting for its input."""
STATE = UNSAID - {"user_message_chunk"}
_BEGIN = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":'


def is_state(update: Raw) -> bool:
    """Whether an update tells how a session is, and not what was said in it."""
    return text_of(members_of(update) or {}, "sessionUpdate") in STATE


class Seat:
    """See the module. While it is `waiting` the editor does not know the session yet. While it is `muted` the agent tells what was said before, which is known; `titles` says whether a
    title that the agent finds is heeded, and `entitle` is told of it. `rung` is called when there is something to keep."""

    def __init__(
        self,
        life: Life,
        behind: str,
        ours: str,
        *,
        rung: Callable[[], None] = lambda: None,
        entitle: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.life, self.behind = life, behind
        self.session, self.begin = written(ours), _BEGIN % frames.encode(ours)
        self.collector = Collector()
        self.muted = self.closed = self.waiting = False
        self.titles = True
        self.counted = 0.0
        self._rung, self._entitle = rung, entitle
        self._ringing = self._calling = False

    def hear(self, update: Raw) -> Raw | None:
        """Take an update in; returns it as the editor gets it, None if it does not."""
        if self.closed:
            return None
        if self.muted:
            return update if is_state(update) else None
        fields = self.collector.hear(update)
        if fields is not None and fields.get("sessionUpdate") == "session_info_update" and "title" in fields:
            return self._titled(update, fields["title"])
        self._ring()
        return update

    def ask(self, call: object) -> None:
        """The user is asked about a call."""
        self.collector.ask(call)
        self._ring()

    def _titled(self, update: Raw, title: object) -> Raw:
        if self.titles:
            if isinstance(title, str):
                self._entitle(title)
            return update
        members = members_of(update) or {}
        return Raw(joined({name: raw for name, raw in members.items() if name != "title"}))

    def _ring(self) -> None:
        if self.collector.is_ready:
            self._rung()
        elif not self._ringing:
            self._ringing = True
            asyncio.get_running_loop().call_later(RING_SECONDS, self._ring_late)
        if not self._calling and self.collector.has_calls:
            self._calling = True
            asyncio.get_running_loop().call_later(CALL_SECONDS, self._call_late)

    def _ring_late(self) -> None:
        self._ringing = False
        self._rung()

    def _call_late(self) -> None:
        self._calling = False
        if self.collector.has_calls:
            self.collector.tell()
            self._rung()
