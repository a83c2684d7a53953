"""A session as a row of the list: what is shown of it, ready for a template. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from markupsafe import Markup, escape

from hitherto.clean_text import clean
from hitherto.edits.changes import EditCounts
from hitherto.gateway.page.list_query import source_label
from hitherto.gateway.page.templates import named
from hitherto.model import Hit, Session, agent_of
from hitherto.presentation import formats, usage
from hitherto.values.usage.sessions import SessionUsage

UNTITLED = "Untitled session"
STATUSES = {
    "running": "running",
    "waiting": "waiting for permission",
    "failed": "failed",
    "interrupted": "interrupted",
}
FULL = 0.8
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_SIGNS = re.compile(r"\*\*|`+|(?<=\n)(?:#{1,6}|>|[-*+])\s+|\A(?:#{1,6}|>)\s+")
TONES = 6
SIGNS = {"claude": ("CC", 4), "codex": ("Cx", 2), "gemini": ("G", 3), None: ("h", 0)}
"""Signs of agents: letters and a tone; those of any other come from its name."""


class Sign(NamedTuple):
    """An agent in two letters, and the tone that they are shown in."""

    letters: str
    tone: int


def sign(agent: str | None) -> Sign:
    """The sign of an agent: the same one always."""
    if agent in SIGNS:
        return Sign(*SIGNS[agent])
    words = clean(source_label(agent)).split() or ["?"]
    letters = words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]
    return Sign(letters, crc32(str(agent).encode("utf-8", "replace")) % TONES)


class Context(NamedTuple):
    """How much of the model's window the context of a session fills: `tokens` has `≈` before it if it is estimated."""

    tokens: str
    share: float
    words: str

    @property
    def is_full(self) -> bool:
        """Whether there is little room left."""
        return self.share > FULL


class Row(NamedTuple):
    """What a row shows. `messages` are those of the conversation, None if they are not counted yet; `used` says what the
    session used, if it was counted; `sign` stands for its agent; `changes` counts what it changed in files, `agents` the subagents that it started. `found` is the snippet of a search hit with
    marks; `depth` is its level among forks."""

    session: Session
    title: str
    origin: str
    sign: Sign
    status: str | None
    failed: bool
    messages: int | None
    used: SessionUsage | None
    context: Context | None
    unread: bool
    age: str
    address: str
    found: Markup | None = None
    more: int = 0
    depth: int = 0
    changes: EditCounts | None = None
    agents: int = 0

    @property
    def words(self) -> str:
        """What there is no room for in the row: its messages, and its context."""
        said = "" if self.messages is None else formats.counted(self.messages, "message")
        return " · ".join(filter(None, (said, self.context and f"context {self.context.words}")))


def row(session: Session, now: int, used: SessionUsage | None = None) -> Row:
    """The row of a session."""
    failed = session.status == "idle" and used is not None and used.failed
    said = session.message_count if session.last_compaction is None else None
    return Row(
        session=session,
        title=clean(session.title or "").strip() or UNTITLED,
        origin=source_label(agent_of(session)),
        sign=sign(agent_of(session)),
        status=STATUSES.get("failed" if failed else session.status),
        failed=failed,
        messages=said if used is None else used.messages,
        used=used,
        context=None if used is None or not used.messages else _context(used),
        unread=session.read_at is not None and session.read_at < session.updated_at,
        age=formats.age(session.updated_at, now),
        address=address(session.id),
    )


def hit_row(hit: Hit, now: int, used: SessionUsage | None) -> Row:
    """The row of a session in which something was found."""
    shown = row(hit.session, now, used)
    if hit.entry is None:
        return shown
    return shown._replace(
        found=Markup("").join(_marked(hit)),
        more=hit.more,
        address=address(hit.session.id, hit.entry, hit.branch),
    )


def address(session_id: str, entry: str | None = None, branch: str | None = None) -> str:
    """The address of a session, or of a message in it or in a branch of it."""
    place = f"/s/{named(session_id)}"
    if entry is None:
        return place
    start = f"{place}?" if branch is None else f"/checkpoint?session={named(session_id)}&id={named(branch)}&"
    return f"{start}at={named(entry)}#m-{named(entry)}"


def _context(used: SessionUsage) -> Context:
    about = "≈" if used.context_estimated else ""
    return Context(
        tokens=f"{about}{formats.count(used.context_tokens)}",
        share=min(used.context_tokens / used.window, 1.0),
        words=usage.context(used),
    )


def _marked(hit: Hit) -> Iterator[Markup]:
    """The snippet with its hits marked. It is cleaned piece by piece, because cleaning moves the marks."""
    done = 0
    for start, stop in hit.marks:
        yield escape(_plain(hit.snippet[done:start]))
        yield Markup("<mark>{}</mark>").format(clean(hit.snippet[start:stop]))
        done = stop
    yield escape(_plain(hit.snippet[done:]))


def _plain(text: str) -> str:
    """Text without the signs of Markdown that mean something around words: what is left reads as it would be shown."""
    return _SIGNS.sub("", _LINK.sub(r"\1", clean(text)))
