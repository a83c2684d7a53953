"""What titles and facts were made from: which of them rest on something that is still said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from hitherto.errors import EntryNotFound
from hitherto.model import Entry, Json, Session, Text, decode_entry, plain_text
from hitherto.ports import Reader, Record, Writer
from hitherto.service.history.places import find_place, load_everything, payload_at
from hitherto.values import spans as algebra
from hitherto.values import words
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
        async for titles in _each_prompt(tx, owner, view):
            first = first or titles[0]
            found.update(titles)
            if wanted <= found:
                break
    fields: Json = {"earlier_titles": tuple(title for title in session.earlier_titles if title in found)}
    if session.title is not None and session.title_by != "user" and session.title not in found:
        fields |= {"title": first, "title_by": "auto" if first else None}
    return fields


async def forget_unfounded(tx: Writer, record: Record, gone: Entry) -> None:
    """Forget the session's facts that rest on this entry, which was erased.

    A fact stays, without it, if the other entries that it rests on say every word of it.
    """
    owner, lost, unfounded = record.owner, _tokens(plain_text(gone)), list[str]()
    for fact in await tx.facts(owner, record.session.id):
        if gone.id not in fact.entries:
            continue
        left = [each for each in fact.entries if each != gone.id]
        said = await _said_by(tx, record, left)
        if left and _tokens(fact.text) <= said and _tokens(fact.subject or "") & lost <= said:
            await tx.put_facts(owner, [replace(fact, entries=tuple(left))])
        else:
            unfounded.append(fact.id)
    if unfounded:
        await tx.forget_facts(owner, unfounded)


async def _said_by(tx: Reader, record: Record, entry_ids: Sequence[str]) -> set[str]:
    """The words of these entries of a session, as far as they are there."""
    said: set[str] = set()
    view = await load_everything(tx, record) if entry_ids else []
    for entry_id in entry_ids:
        with suppress(EntryNotFound):
            payload = await payload_at(tx, record.owner, await find_place(tx, record, view, entry_id))
            said |= _tokens(plain_text(decode_entry(payload)))
    return said


def _tokens(text: str) -> set[str]:
    return set(words.tokens(words.searchable(text)))


def titles_of(session: Session) -> set[str]:
    """The titles of a session, earlier ones too, that a person need not have given."""
    own = session.title if session.title_by != "user" else None
    return {*session.earlier_titles, *filter(None, [own])}


async def _each_prompt(tx: Reader, owner: str, view: Sequence[Stretch]) -> AsyncIterator[list[str]]:
    """The titles that each prompt of a view gives: as a whole, then part by part, which some agents take."""
    for start in range(0, min(algebra.size(view), EXAMINED), AT_ONCE):
        for payload in await tx.payloads(owner, algebra.slice_of(view, start, start + AT_ONCE)):
            if titles := titles_of_prompt(decode_entry(payload)):
                yield titles


def titles_of_prompt(entry: Entry) -> list[str]:
    if entry.role != "user":
        return []
    texts = [plain_text(entry), *(part.text for part in entry.parts if isinstance(part, Text))]
    return list(filter(None, map(title_from, texts)))
