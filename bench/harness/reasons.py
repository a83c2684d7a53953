"""Why a target is missed, as far as known; the page shows it with the figure."""

from __future__ import annotations

from bench.parts.agentsview import TREES, faster, smaller
from bench.parts.append import FASTER, GROUPED, SHARE_OF_RAW
from bench.parts.history import BYTES
from bench.parts.list import PROMISE as FLAT
from bench.parts.load import HALF
from bench.parts.postgres import APPEND as POSTGRES_APPEND
from bench.parts.postgres import LAST as POSTGRES_LAST
from bench.parts.postgres import LIST as POSTGRES_LIST
from bench.parts.sync import first, near
from bench.workloads.transcripts import FILES, SMALL

_COMMIT = (
    "Raw changes one page for each message; Hitherto changes 5.7 in the same durable commit (the entry, its id, its document"
    " number, the session with its counters, its place in the change feed), of which each takes 5 to 7 µs of CPU. A slice also"
    " includes updating the search index, which the peers do not have: about 35 µs of CPU for a message, half of it FTS5's own."
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
_BESIDE_AGENTSVIEW = (
    "Two interpreters start for the sync, of which one reads, and a third for the search. Of the CPU that is left, half makes words"
    " of what tools answered and puts them into the index, in full up to 64,000 characters each; in transcripts that edit, two"
    " thirds mark the lines and runs of words that were written, by which a line of today is found again."
)
_KEPT = (
    "Each entry is kept as the exact bytes of its JSON, which nothing packs, beside the packed file that it was read from: what"
    " tools answered, and both sides of an edit, are kept twice."
)

REASONS = {
    **{faster(title): _BESIDE_AGENTSVIEW for title in TREES},
    **{smaller(title): _KEPT for title in TREES},
    BYTES: (
        "The checksum of every entry is verified, which a bare column does not have: this takes about as long as SQLite takes to"
        " return the row. Without it, data that the disk altered would be served as genuine."
    ),
    FASTER: _COMMIT,
    SHARE_OF_RAW: f"{_COMMIT} The faster the disk syncs, the more that weighs: here a raw commit takes about 0.15 ms.",
    GROUPED: (
        "Eight writers share a commit and one interpreter: with about 60 µs of CPU for an append and 35 µs for the index, two"
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
    POSTGRES_APPEND: (
        "One statement and one round trip, as raw. The server takes about 0.25 ms more CPU than for a bare row: a tenth of a"
        " millisecond to parse the words of a message and to put them into the index, the rest for four more indexes of the entry,"
        " the session's row with its counters, its day and its place in the change feed. The client takes about 0.3 ms more: it"
        " validates the message, splits it into words and makes checksums, on an event loop where raw blocks."
    ),
    POSTGRES_LAST: (
        "One statement and one round trip, as raw; it also has the session's row and its spans, and every one of them and of the"
        " messages is compared with its checksum before it is decoded."
    ),
    POSTGRES_LIST: (
        "One statement and one round trip, as raw; a row has 49 columns, where raw has 3. All of them are sent and compared with"
        " those of the last page, or with their checksum."
    ),
    HALF: (
        "Of about 340 µs of server CPU for an append, the store takes 160 µs; the socket, JSON and the event loop take the rest,"
        " in the same interpreter. The measuring clients share the two cores: on a quiet machine it has reached 0.42 to 0.51."
    ),
}
"""Promise → reason."""
