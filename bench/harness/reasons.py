"""Why a promise is not kept yet, as far as that is known; shown on the page where the figure misses it."""

from __future__ import annotations

from bench.parts.append import FASTER, GROUPED, HALF_OF_RAW
from bench.parts.history import BYTES
from bench.parts.list import PROMISE as FLAT
from bench.parts.load import HALF
from bench.parts.sync import first, near
from bench.workloads.transcripts import FILES, SMALL

_COMMIT = (
    "Raw changes one page for each message; Hitherto changes 5.7 in the same durable commit (the entry, its id, its document"
    " number, the session with its counters, its place in the change feed), and a slice counts only when the search index,"
    " which the peers do not have, is up to date: about 45 µs of CPU for a message."
)

_FIRST = (
    "Half the speed would leave as much as the bare run takes, 5 to 10 µs for an entry, for all that it does not do: an entry"
    " made of its records (10 to 40 µs, in Python), checked and stored with its id, totals and document number (15 µs), read"
    " again and brought into the words that every store has in common before it is indexed (16 µs beside FTS5's own 7), and the"
    " file packed. Reading is done in other processes, and what is left to the one that writes is more than twice the bare run."
)
_NEAR = (
    "`stat` itself is a call of 2.5 µs; finding a file in its folder and making one `stat` of it takes 4 in the interpreter."
    " What it is called, its stamp, and comparing that with the last one, come on top; in a database, a row with all that may"
    " change, and how many messages there are."
)

REASONS = {
    BYTES: (
        "Every entry that is read is compared with its checksum, which a bare column does not have: about as long as SQLite takes"
        " to give out the row. What a disk has altered was served as if it had been said so before."
    ),
    FASTER: _COMMIT,
    HALF_OF_RAW: f"{_COMMIT} The faster the disk syncs, the more that weighs: here a raw commit takes about 0.15 ms.",
    GROUPED: (
        "Eight writers share a commit, but not the interpreter: about 90 µs of CPU for an append and 45 for the index leave"
        " two cores little to win over one bare commit of about 0.15 ms."
    ),
    FLAT: (
        "`created_before` alone: lists are in the order of last activity, and sessions made before a moment but active after"
        " it can stand anywhere above. A page looks at 5,000 rows, is then short and has a cursor; the figure counts all"
        " pages until 50 sessions are found. A title that few sessions have: the full-text index meets the owner's postings"
        " once for each hit, and those grow with the store."
    ),
    **{first(each.title): _FIRST for each in FILES},
    **{near(each.title): _NEAR for each in SMALL},
    near("Codex"): (
        f"{_NEAR} Its rollouts lie in a folder for each day, and the names of threads in a database, of which every row is read:"
        " a new name is a change."
    ),
    HALF: (
        "Of some 340 µs of the server's CPU for an append, 160 are the store's; the rest is the socket, JSON and the event loop,"
        " in one interpreter with it. The measuring clients share the two cores: on a quiet machine it has come to 0.42 to 0.51."
    ),
}
"""Promise → reason."""
