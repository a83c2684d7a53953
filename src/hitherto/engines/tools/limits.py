"""The published limits of the tools: nothing that a model asks for costs or gives back more than this."""

from __future__ import annotations

TEXT_BYTES = 10 * 1024 * 1024
"""The largest text file that is read, edited or written."""
IMAGE_BYTES = 3_750_000
"""The largest image that is shown: five megabytes in base64, which is what providers take."""
READ_LINES = 2_000
READ_BYTES = 100_000
LINE_CHARS = 2_000
DIFF_BYTES = 256 * 1024
"""The most that the old and the new text may have together for a change to be given as a diff."""

LISTED = 1_000
PATTERN_CHARS = 1_000
ALTERNATIVES = 64
"""The most patterns that the braces of one may stand for."""
WALK_ENTRIES = 200_000
WALK_DEPTH = 64

HITS = 200
HIT_CHARS = 300
SEARCHED_FILE_BYTES = 4 * 1024 * 1024
SEARCH_SECONDS = 20.0
SEARCH_MEMORY = 1024 * 1024 * 1024

COMMAND_CHARS = 100_000
COMMAND_SECONDS = 120
COMMAND_SECONDS_MOST = 600
COMMAND_BYTES = 64 * 1024

PLAN_STEPS = 100
STEP_CHARS = 1_000

RESULT_BYTES = 100_000
"""The most that a list, or what a search has found, may have all together."""
TITLE_CHARS = 120
