"""The calls of the service that a server offers: their names, the scope each needs, and its rule of ownership.

Parameters and results come from the rooms of the service. The gateway generates its methods from this table, and clients
their requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hitherto.service import ROOMS, Sessions

PREFIX = "store."
"""The prefix of the gateway methods for these calls."""
NOT_SENT = frozenset(("fence", "idempotency_key", "max_bytes"))
"""Parameters that are never sent: the server controls leases, idempotency keys and sizes."""


class RemoteCall(NamedTuple):
    """A call: `target` names its room and method. `about` is the gateway's rule of ownership; `omits` names parameters
    that are not offered.

    `needs` names parameters that require another scope: a trusted import also restores permissions. `final`: the session
    no longer exists afterwards.
    """

    target: str
    scope: str
    about: str
    omits: frozenset[str] = frozenset()
    needs: Mapping[str, str] = {}
    final: bool = False

    @property
    def room(self) -> str:
        """The name of the room in `Sessions`."""
        return self.target.partition(".")[0]

    @property
    def method(self) -> str:
        """The name of the method in its room."""
        return self.target.partition(".")[2]

    @property
    def function(self) -> Callable[..., Any]:
        """The method itself, of the room's class."""
        function: Callable[..., Any] = getattr(ROOMS[self.room], self.method)
        return function

    def of(self, sessions: Sessions) -> Callable[..., Any]:
        """The method of these sessions."""
        bound: Callable[..., Any] = getattr(getattr(sessions, self.room), self.method)
        return bound


CALLS: Mapping[str, RemoteCall] = {
    "get": RemoteCall("catalog.get", "read", "session"),
    "resolve": RemoteCall("catalog.resolve", "read", "own"),
    "find": RemoteCall("catalog.find", "read", "own"),
    "count": RemoteCall("catalog.count", "read", "own"),
    "search": RemoteCall("index.search", "read", "own"),
    "narrowed": RemoteCall("index.narrowed", "read", "own"),
    "search_facets": RemoteCall("index.facets", "read", "own"),
    "history": RemoteCall("entries.history", "read", "session"),
    "entry": RemoteCall("entries.entry", "read", "session"),
    "checkpoints": RemoteCall("timeline.checkpoints", "read", "session"),
    "episodes": RemoteCall("episodes.known", "read", "session"),
    "branches": RemoteCall("branches.known", "read", "session"),
    "session_changes": RemoteCall("edits.changes", "read", "session"),
    "trace": RemoteCall("edits.trace", "read", "own"),
    "touched": RemoteCall("edits.touched", "read", "own"),
    "recent_edits": RemoteCall("edits.recent", "read", "own"),
    "edit_counts": RemoteCall("edits.counts", "read", "own"),
    "raw": RemoteCall("transfer.raw", "raw", "session"),
    "stats": RemoteCall("statistics.stats", "read", "own"),
    "usage": RemoteCall("spending.usage", "read", "session"),
    "usage_report": RemoteCall("spending.report", "read", "own"),
    "numbers": RemoteCall("spending.numbers", "read", "own"),
    "facets": RemoteCall("statistics.facets", "read", "own"),
    "project_called": RemoteCall("projects.called", "read", "own"),
    "place": RemoteCall("projects.place", "write", "own"),
    "project_counts": RemoteCall("projects.counts", "read", "own"),
    "rename_project": RemoteCall("projects.rename", "write", "own"),
    "placeless": RemoteCall("projects.placeless", "read", "own"),
    "place_folder": RemoteCall("projects.place_folder", "write", "own"),
    "assign": RemoteCall("projects.assign", "write", "session"),
    "changes": RemoteCall("changes.since", "read", "own"),
    "newest_change": RemoteCall("changes.newest", "read", "own"),
    "create": RemoteCall(
        "catalog.create", "write", "own", omits=frozenset(("key", "identity", "meta", "session_id", "draft"))
    ),
    "append": RemoteCall("entries.append", "write", "session"),
    "rename": RemoteCall("catalog.rename", "write", "session"),
    "tag": RemoteCall("catalog.tag", "write", "session"),
    "archive": RemoteCall("catalog.archive", "write", "session"),
    "pin": RemoteCall("catalog.pin", "write", "session"),
    "move": RemoteCall("catalog.move", "write", "session"),
    "fork": RemoteCall("forks.fork", "write", "session", omits=frozenset(("new_id",))),
    "branch": RemoteCall("forks.branch", "write", "session"),
    "continuation": RemoteCall("turns.continuation", "write", "session"),
    "reset": RemoteCall("episodes.reset", "write", "session"),
    "rewind": RemoteCall("timeline.rewind", "write", "session"),
    "restore": RemoteCall("timeline.restore", "write", "session"),
    "erase": RemoteCall("entries.erase", "write", "session"),
    "delete": RemoteCall("catalog.delete", "write", "session", final=True),
    "already_there": RemoteCall("transfer.already_there", "read", "own"),
    "import_session": RemoteCall(
        "transfer.import_", "write", "own", omits=frozenset(("key",)), needs={"trusted": "commands"}
    ),
    "take_in": RemoteCall("transfer.sync", "write", "own"),
    "bereft": RemoteCall("transfer.bereft", "read", "own"),
    "mark_source": RemoteCall("transfer.mark_source", "write", "own"),
}
