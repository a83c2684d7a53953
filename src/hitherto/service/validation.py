"""What a value must be like before it is kept, whoever brings it: a caller, an export, another program."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.filters import normal_cwd
from hitherto.limits import (
    EARLIER_CWDS,
    EARLIER_TITLES,
    ENTRY_SUM,
    FACT_CHARS,
    NESTED_PARTS,
    checked_length,
    checked_number,
)
from hitherto.model import OWN, Checkpoint, Entry, Fact, Json, Part, Session, ToolResult
from hitherto.service.catalog.sessions import (
    CLAIMED,
    checked_directories,
    checked_identity,
    checked_meta,
    checked_tags,
    checked_title,
)
from hitherto.service.records import MICROS, checked_name, checked_required

OURS = frozenset(("bytes", "compaction", "erased", "imported", "replay", "said_as", "tokens_estimated"))
"""Keys of an entry's meta that this program acts on and writes itself."""
SOURCES = frozenset(("compact_summary", "error", "meta", "synthetic"))
"""Those that it acts on and that what is read from another program's files may have."""


def said(metas: Iterable[Json], refused: frozenset[str]) -> None:
    """Raise if what a caller says comes with words about it that only the program may say."""
    for meta in metas:
        if names := sorted(refused & meta.keys()):
            raise InvalidInput(f"meta cannot have the key {names[0]}: it is for the program to say")


def checked_entry(entry: Entry) -> Entry:
    """The entry, if its numbers are ones that every store can hold and add up."""
    checked_number(entry.at, "the time of an entry")
    if nesting(entry.parts) > NESTED_PARTS:
        raise InvalidInput(f"results of tools may be nested {NESTED_PARTS} deep at most")
    if not 0 <= checked_number(entry.tokens or 0, "tokens") <= ENTRY_SUM:
        raise InvalidInput(f"an entry has 0 to {ENTRY_SUM} tokens, not {entry.tokens}")
    cost = entry.usage.cost if entry.usage else None
    # Written so that it refuses what is not a number.
    if cost is not None and not 0 <= cost * MICROS <= ENTRY_SUM:
        raise InvalidInput(f"an entry costs 0 to {ENTRY_SUM // MICROS} dollars, not {cost}")
    return entry


def nesting(parts: Sequence[Part]) -> int:
    """How deep results stand in results."""
    deep, level = 0, [part for part in parts if isinstance(part, ToolResult)]
    while level and deep <= NESTED_PARTS:
        deep += 1
        level = [inner for part in level for inner in part.content if isinstance(inner, ToolResult)]
    return deep


def checked_session(session: Session) -> Session:
    """A session that comes from outside, with its values spelled as `create` spells them."""
    if checked_number(session.revision, "a revision") < 1:
        raise InvalidInput("a session's revision is at least 1")
    for at in (session.created_at, session.updated_at, session.last_compaction or 0):
        checked_number(at, "a time")
    names = {
        name: checked_name(getattr(session, name), what)
        for name, what in (
            ("key", "a session key"),
            ("agent_id", "an agent id"),
            ("channel", "a channel"),
            ("source", "a source"),
            ("project", "a project"),
            ("branch", "a branch"),
            ("parent", "a session id"),
            ("parent_entry", "an entry id"),
        )
    }
    earlier = (checked_title(title) for title in session.earlier_titles)
    return replace(
        session,
        id=checked_required(session.id, "a session id"),
        cwd=None if session.cwd is None else normal_cwd(session.cwd),
        earlier_cwds=tuple(map(normal_cwd, session.earlier_cwds[-EARLIER_CWDS:])),
        additional_directories=checked_directories(session.additional_directories),
        title=checked_title(session.title),
        earlier_titles=tuple(filter(None, earlier))[-EARLIER_TITLES:],
        tags=checked_tags(session.tags),
        identity=checked_identity(session.identity),
        # What was permitted in another store is not permitted in this one.
        meta=checked_meta(
            {
                name: value
                for name, value in session.meta.items()
                if not name.startswith(OWN) or name == CLAIMED
            }
        ),
        read_at=None,
        **names,
    )


def checked_checkpoint(checkpoint: Checkpoint, known: Container[str]) -> Checkpoint:
    """The checkpoint, if its id is free."""
    checked_required(checkpoint.id, "a checkpoint id")
    checked_required(checkpoint.reason, "a reason")
    for number in (checkpoint.at, checkpoint.message_count, checkpoint.token_count or 0):
        checked_number(number, "a number of a checkpoint")
    if checkpoint.id in known:
        raise InvalidInput(f"there are two checkpoints {checkpoint.id!r}")
    return checkpoint


def checked_fact(fact: Fact) -> Fact:
    """The fact, if its names and its time are ones that every store can keep."""
    checked_required(fact.id, "a fact's id")
    checked_required(fact.kind, "a fact's kind")
    checked_number(fact.at, "the time of a fact")
    checked_length(fact.text, FACT_CHARS, "a fact")
    for entry_id in fact.entries:
        checked_required(entry_id, "an entry id")
    for name in ("agent_id", "identity_id", "subject", "invalidated_by"):
        checked_name(getattr(fact, name), f"the {name} of a fact")
    # Written so that it refuses what is not a number.
    if fact.confidence is not None and not 0 <= fact.confidence <= 1:
        raise InvalidInput(f"a fact's confidence is between 0 and 1, not {fact.confidence}")
    return fact if fact.cwd is None else replace(fact, cwd=normal_cwd(fact.cwd))
