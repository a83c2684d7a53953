"""The facts about a session in the formats for reading. Pure."""

from __future__ import annotations

from hitherto.clean_text import clean
from hitherto.exports.format import About
from hitherto.exports.lines import Replaced
from hitherto.presentation.formats import exact_moment


def session_title(about: About) -> str:
    """The session's title in one line."""
    return clean(about.session.title or "") or "Untitled session"


def session_facts(about: About) -> list[tuple[str, str]]:
    """The facts about a session, above its messages."""
    session = about.session
    rows = [
        ("Session", session.id),
        ("Folder", session.cwd or ""),
        ("Tags", ", ".join(session.tags)),
        ("Started", exact_moment(session.created_at)),
        ("Last message", exact_moment(session.updated_at)),
        ("Messages", str(about.message_count)),
        ("Exported", exact_moment(about.exported_at)),
    ]
    return [(name, clean(value)) for name, value in rows if value]


def replacement(each: Replaced) -> str:
    """One row of the list of replacements."""
    place = f"entry {each.entry}" if each.entry is not None else each.where or "the session"
    return clean(f"{each.kind}: {each.count} in {place}")
