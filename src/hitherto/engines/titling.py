"""A title for a conversation: what a model is asked, and what is taken of its answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hitherto.model import Entry, plain_text
from hitherto.titles import clean_title

LONGEST = 60
EXCERPT = 2_000
SHOWN = frozenset({"user", "assistant"})

REQUEST = """\
Give the conversation below a title of three to seven words, in its own language, that names what it is about. Answer \
with the title alone: no quotes, no full stop.

<conversation>
{conversation}
</conversation>"""

_LABEL = re.compile(r"^\W*title\W*:\s*", re.IGNORECASE)
_AROUND = " \t\"'`*#_.“”„«»‘’"


def title_request(history: Sequence[Entry]) -> str | None:
    """What to ask for a title of this beginning; None if nothing was said yet."""
    said = [(entry.role, plain_text(entry).strip()) for entry in history if entry.role in SHOWN]
    lines = [f"{role}: {text[:EXCERPT]}" for role, text in said if text]
    return REQUEST.format(conversation="\n\n".join(lines[:4])) if lines else None


def title_in(answer: str) -> str | None:
    """The title in a model's answer, at most `LONGEST` characters; None if there is none."""
    line = next((line for line in answer.splitlines() if any(map(str.isalnum, line))), "")
    title = clean_title(_LABEL.sub("", line)).strip(_AROUND)
    if len(title) > LONGEST:
        title = title[: LONGEST - 1].rpartition(" ")[0] or title[: LONGEST - 1]
        title = title.rstrip(" ,;:.-–—") + "…"
    return title if any(map(str.isalnum, title)) else None
