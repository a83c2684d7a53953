"""A session store in memory, for tests."""

from __future__ import annotations

from collections.abc import Callable

from hitherto.claude.session_stores.protocol import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)
from hitherto.claude.session_stores.summary import fold_session_summary
from hitherto.ids import now_ms

_Name = tuple[str, str, str]
"""Project, session and subpath; the subpath of a session's own transcript is empty."""


class InMemorySessionStore(SessionStore):
    """A session store that is gone with the process."""

    def __init__(self, now: Callable[[], int] = now_ms) -> None:
        self._now = now
        self._last = 0
        self._entries: dict[_Name, list[SessionStoreEntry]] = {}
        self._changed: dict[_Name, int] = {}
        self._summaries: dict[_Name, SessionSummaryEntry] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add records to a transcript."""
        name = _name(key)
        self._entries.setdefault(name, []).extend(entries)
        # Of two appends, the later one has the later time, however fast they follow each other.
        self._last = self._changed[name] = max(self._now(), self._last + 1)
        if not name[2]:
            folded = fold_session_summary(self._summaries.get(name), key, entries)
            self._summaries[name] = {**folded, "mtime": self._last}

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All records of a transcript; None if there is no such transcript."""
        found = self._entries.get(_name(key))
        return None if found is None else list(found)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project."""
        return [
            {"session_id": session, "mtime": mtime}
            for (project, session, subpath), mtime in self._changed.items()
            if project == project_key and not subpath
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What lists show of the sessions of a project."""
        return [summary for (project, _, _), summary in self._summaries.items() if project == project_key]

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript, and with that of a session those of its subagents."""
        wanted = _name(key)
        for name in [name for name in self._entries if name == wanted or (*name[:2], "") == wanted]:
            del self._entries[name], self._changed[name]
            self._summaries.pop(name, None)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's further transcripts."""
        own = (key["project_key"], key["session_id"])
        return [name[2] for name in self._entries if name[:2] == own and name[2]]

    def get_entries(self, key: SessionKey) -> list[SessionStoreEntry]:
        """All records of a transcript; none if there is no such transcript."""
        return list(self._entries.get(_name(key), ()))

    @property
    def size(self) -> int:
        """How many sessions there are."""
        return sum(not subpath for _, _, subpath in self._entries)

    def clear(self) -> None:
        """Forget everything."""
        for kept in (self._entries, self._changed, self._summaries):
            kept.clear()


def _name(key: SessionKey) -> _Name:
    return key["project_key"], key["session_id"], key.get("subpath") or ""
