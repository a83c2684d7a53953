"""The calls of the service that a server answers: their names, which scope each needs, and whose sessions it is about.

`Sessions` says what each takes and gives: this table is all that there is besides. The gateway makes its methods from it,
and whoever talks to a server its requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PREFIX = "store."
"""What the gateway's methods of these calls begin with."""
NOWHERE = frozenset(("fence", "idempotency_key", "max_bytes"))
"""Parameters that are not given over the wire: leases are the server's, and so are keys and sizes of requests."""


class Offered(NamedTuple):
    """A call. `about` is the gateway's rule of ownership; `omits` names parameters that are not offered.

    `needs` names parameters that take a further scope: who restores a whole copy restores what it permits, too.
    `final`: the session is gone afterwards.
    """

    scope: str
    about: str
    omits: frozenset[str] = frozenset()
    needs: Mapping[str, str] = {}
    final: bool = False


CALLS: Mapping[str, Offered] = {
    "get": Offered("read", "session"),
    "resolve": Offered("read", "own"),
    "find": Offered("read", "own"),
    "search": Offered("read", "own"),
    "history": Offered("read", "session"),
    "entry": Offered("read", "session"),
    "checkpoints": Offered("read", "session"),
    "raw": Offered("raw", "session"),
    "stats": Offered("read", "own"),
    "facets": Offered("read", "own"),
    "project_called": Offered("read", "own"),
    "place": Offered("write", "own"),
    "placeless": Offered("read", "own"),
    "place_folder": Offered("write", "own"),
    "assign": Offered("write", "session"),
    "changes": Offered("read", "own"),
    "newest_change": Offered("read", "own"),
    "create": Offered("write", "own", omits=frozenset(("key", "identity", "meta", "session_id"))),
    "append": Offered("write", "session"),
    "rename": Offered("write", "session"),
    "tag": Offered("write", "session"),
    "archive": Offered("write", "session"),
    "pin": Offered("write", "session"),
    "move": Offered("write", "session"),
    "fork": Offered("write", "session", omits=frozenset(("new_id",))),
    "branch": Offered("write", "session"),
    "continuation": Offered("write", "session"),
    "rewind": Offered("write", "session"),
    "restore": Offered("write", "session"),
    "erase": Offered("write", "session"),
    "delete": Offered("write", "session", final=True),
    "already_there": Offered("read", "own"),
    "import_session": Offered("write", "own", omits=frozenset(("key",)), needs={"trusted": "commands"}),
    "take_in": Offered("write", "own"),
    "mark_source": Offered("write", "own"),
}
