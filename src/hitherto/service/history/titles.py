"""Titles that were made from what was said: which of a session's titles rest on something that is still there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from hitherto.model import Entry, Json, Session, Text, decode_entry, plain_text
from hitherto.ports import Reader
from hitherto.values import spans as algebra
from hitherto.values.spans import Stretch
from hitherto.values.titles import title_from

EXAMINED = 1_000
"""How many entries are looked at, from the first on, for what a title was made from."""
AT_ONCE = 50


async def grounded_titles(tx: Reader, owner: str, view: Sequence[Stretch], session: Session) -> Json:
    """The fields of the session's titles, without those that need not come from what this view tells.

    A person's own title stays. Any other one must be what a prompt of the view gives: whether a model's or another
    agent's title tells of something else, nobody can know. In its place comes the title of the first prompt.
    """
    wanted = titles_of(session)
    found: set[str] = set()
    first: str | None = None
    if wanted:
        async for titles in _prompt_titles(tx, owner, view):
            first = first or titles[0]
            found.update(titles)
            if wanted <= found:
                break
    fields: Json = {"earlier_titles": tuple(title for title in session.earlier_titles if title in found)}
    if session.title is not None and session.title_by != "user" and session.title not in found:
        fields |= {"title": first, "title_by": "auto" if first else None}
    return fields


def titles_of(session: Session) -> set[str]:
    """The titles of a session, earlier ones too, that a person need not have given."""
    own = session.title if session.title_by != "user" else None
    return {*session.earlier_titles, *filter(None, [own])}


async def _prompt_titles(tx: Reader, owner: str, view: Sequence[Stretch]) -> AsyncIterator[list[str]]:
    """The titles that each prompt of a view gives: as a whole, then part by part, which some agents take."""
    for start in range(0, min(algebra.size(view), EXAMINED), AT_ONCE):
        for payload in await tx.payloads(owner, algebra.slice_of(view, start, start + AT_ONCE)):
            if titles := _titles_of_prompt(decode_entry(payload)):
                yield titles


def _titles_of_prompt(entry: Entry) -> list[str]:
    if entry.role != "user":
        return []
    texts = [plain_text(entry), *(part.text for part in entry.parts if isinstance(part, Text))]
    return list(filter(None, map(title_from, texts)))
