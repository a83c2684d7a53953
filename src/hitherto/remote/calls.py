"""The calls of the service that a server answers: their names, which scope each needs, and whose sessions it is about.

The rooms of the service say what each takes and gives: this table is all that there is besides. The gateway makes its
methods from it, and whoever talks to a server its requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hitherto.service import ROOMS, Sessions

PREFIX = "store."
"""What the gateway's methods of these calls begin with."""
NOWHERE = frozenset(("fence", "idempotency_key", "max_bytes"))
"""Parameters that are not given over the wire: leases are the server's, and so are keys and sizes of requests."""


class Offered(NamedTuple):
    """A call: `target` names its room and its method there. `about` is the gateway's rule of ownership; `omits` names
    parameters that are not offered.

    `needs` names parameters that take a further scope: who restores a whole copy restores what it permits, too.
    `final`: the session is gone afterwards.
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


CALLS: Mapping[str, Offered] = {
    "get": Offered("catalog.get", "read", "session"),
    "resolve": Offered("catalog.resolve", "read", "own"),
    "find": Offered("catalog.find", "read", "own"),
    "search": Offered("index.search", "read", "own"),
    "history": Offered("entries.history", "read", "session"),
    "entry": Offered("entries.entry", "read", "session"),
    "checkpoints": Offered("timeline.checkpoints", "read", "session"),
    "raw": Offered("transfer.raw", "raw", "session"),
    "stats": Offered("statistics.stats", "read", "own"),
    "facets": Offered("statistics.facets", "read", "own"),
    "project_called": Offered("projects.called", "read", "own"),
    "place": Offered("projects.place", "write", "own"),
    "placeless": Offered("projects.placeless", "read", "own"),
    "place_folder": Offered("projects.place_folder", "write", "own"),
    "assign": Offered("projects.assign", "write", "session"),
    "changes": Offered("changes.since", "read", "own"),
    "newest_change": Offered("changes.newest", "read", "own"),
    "create": Offered(
        "catalog.create", "write", "own", omits=frozenset(("key", "identity", "meta", "session_id"))
    ),
    "append": Offered("entries.append", "write", "session"),
    "rename": Offered("catalog.rename", "write", "session"),
    "tag": Offered("catalog.tag", "write", "session"),
    "archive": Offered("catalog.archive", "write", "session"),
    "pin": Offered("catalog.pin", "write", "session"),
    "move": Offered("catalog.move", "write", "session"),
    "fork": Offered("forks.fork", "write", "session", omits=frozenset(("new_id",))),
    "branch": Offered("forks.branch", "write", "session"),
    "continuation": Offered("turns.continuation", "write", "session"),
    "rewind": Offered("timeline.rewind", "write", "session"),
    "restore": Offered("timeline.restore", "write", "session"),
    "erase": Offered("entries.erase", "write", "session"),
    "delete": Offered("catalog.delete", "write", "session", final=True),
    "already_there": Offered("transfer.already_there", "read", "own"),
    "import_session": Offered(
        "transfer.import_", "write", "own", omits=frozenset(("key",)), needs={"trusted": "commands"}
    ),
    "take_in": Offered("transfer.sync", "write", "own"),
    "mark_source": Offered("transfer.mark_source", "write", "own"),
}
