"""Why a promise is not kept yet, as far as that is known; shown on the page where the figure misses it."""

from __future__ import annotations

from bench.parts.appending import FASTER, GROUPED, HALF_OF_RAW
from bench.parts.claude_sync import FIRST
from bench.parts.listing import PROMISE as FLAT
from bench.parts.loading import HALF

_COMMIT = (
    "Raw changes one page for each message; Recollect changes 5.7 in the same durable commit (the entry, its id, its document"
    " number, the session with its counters, its place in the change feed), and a slice counts only when the search index,"
    " which the peers do not have, is up to date: about 45 µs of CPU for a message."
)

REASONS = {
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
    FIRST: (
        "Half the speed would leave as much CPU as the bare run takes for all that it does not do. Compressing the exact bytes of"
        " each file takes nearly that much alone, at zstd's level 1 as at 3; making entries of the records, looking for damage,"
        " storing every entry with its totals and committing each session come on top."
    ),
    HALF: (
        "Of some 340 µs of the server's CPU for an append, 160 are the store's; the rest is the socket, JSON and the event loop,"
        " in one interpreter with it. The measuring clients share the two cores: on a quiet machine it has come to 0.42 to 0.51."
    ),
}
"""Promise → reason."""
