"""A session as a row of the list: what is shown of it, ready for a template. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from markupsafe import Markup, escape

from recollect.cleaning import clean
from recollect.gateway.page import wording
from recollect.gateway.page.addresses import NATIVE, SOURCES
from recollect.gateway.page.templates import named
from recollect.gateway.shapes import tokens_of
from recollect.model import Hit, Session

UNTITLED = "A session without a title"
STATUSES = {"running": "running", "waiting": "waiting for an answer", "failed": "failed"}


class Row(NamedTuple):
    """What a row shows. `found` is what was searched for, with marks."""

    session: Session
    title: str
    origin: str
    status: str | None
    tokens: int | None
    age: str
    address: str
    found: Markup | None = None
    more: int = 0


def row(session: Session, now: int) -> Row:
    """The row of a session."""
    return Row(
        session=session,
        title=clean(session.title or "").strip() or UNTITLED,
        origin=_origin(session),
        status=STATUSES.get(session.status),
        tokens=tokens_of(session) or None,
        age=wording.age(session.updated_at, now),
        address=address(session.id),
    )


def hit_row(hit: Hit, now: int) -> Row:
    """The row of a session in which something was found."""
    shown = row(hit.session, now)
    if hit.entry is None:
        return shown
    return shown._replace(
        found=Markup("").join(_marked(hit)), more=hit.more, address=address(hit.session.id, hit.entry)
    )


def address(session_id: str, entry: str | None = None) -> str:
    """Where a session is read, at a message if one is named."""
    place = f"/s/{named(session_id)}"
    return place if entry is None else f"{place}?at={named(entry)}#m-{named(entry)}"


def _origin(session: Session) -> str:
    if session.source is not None:
        return SOURCES.get(session.source, session.source)
    return session.agent_id or SOURCES[NATIVE]


def _marked(hit: Hit) -> Iterator[Markup]:
    """The snippet, what was looked for set off. Cleaned piece by piece, because that moves the marks."""
    done = 0
    for start, stop in hit.marks:
        yield escape(clean(hit.snippet[done:start]))
        yield Markup("<mark>{}</mark>").format(clean(hit.snippet[start:stop]))
        done = stop
    yield escape(clean(hit.snippet[done:]))
