"""Why a target is missed, as far as known; the page shows it with the figure."""

from __future__ import annotations

from bench.parts.append import FASTER, GROUPED, HALF_OF_RAW
from bench.parts.history import BYTES
from bench.parts.list import PROMISE as FLAT
from bench.parts.load import HALF
from bench.parts.sync import first, near
from bench.workloads.transcripts import FILES, SMALL

_COMMIT = (
    "Raw changes one page for each message; Hitherto changes 5.7 in the same durable commit (the entry, its id, its document"
    " number, the session with its counters, its place in the change feed). A slice also includes updating the search index,"
    " which the peers do not have: about 45 µs of CPU for a message."
)

_FIRST = (
    "Half the speed would leave 5 to 10 µs for an entry, as much as the bare run takes, for everything that it does not do:"
    " making the entry from its records (10 to 40 µs, in Python), validating and storing it with its id, totals and document"
    " number (15 µs), splitting it into the words that all stores share before indexing (16 µs, besides FTS5's own 7), and"
    " compressing the file. Other processes read, but the work of the writing process alone is more than twice the bare run."
)
_NEAR = (
    "`stat` itself takes 2.5 µs; finding a file in its folder and one `stat` take 4 µs in Python. Its name, its stamp and the"
    " comparison with the last stamp come on top; in a database, a row with everything that may change, and the number of"
    " messages."
)

REASONS = {
    BYTES: (
        "The checksum of every entry is verified, which a bare column does not have: this takes about as long as SQLite takes to"
        " return the row. Without it, data that the disk altered would be served as genuine."
    ),
    FASTER: _COMMIT,
    HALF_OF_RAW: f"{_COMMIT} The faster the disk syncs, the more that weighs: here a raw commit takes about 0.15 ms.",
    GROUPED: (
        "Eight writers share a commit and one interpreter: with about 90 µs of CPU for an append and 45 µs for the index, two"
        " cores gain little over one bare commit of about 0.15 ms."
    ),
    FLAT: (
        "`created_before` alone: lists are in the order of last activity, so sessions that were created before a moment can be"
        " anywhere in them. A page examines at most 5,000 rows; it may then be short, with a cursor for the rest, and the"
        " figure counts all pages until 50 sessions are found. A title that few sessions have: the full-text index reads the"
        " owner's postings once for each hit, and those grow with the store."
    ),
    **{first(each.title): _FIRST for each in FILES},
    **{near(each.title): _NEAR for each in SMALL},
    near("Codex"): (
        f"{_NEAR} Codex has a folder of rollouts for each day, and a database with the names of threads. Every row of it is"
        " read, since a new name is a change."
    ),
    HALF: (
        "Of about 340 µs of server CPU for an append, the store takes 160 µs; the socket, JSON and the event loop take the rest,"
        " in the same interpreter. The measuring clients share the two cores: on a quiet machine it has reached 0.42 to 0.51."
    ),
}
"""Promise → reason."""
