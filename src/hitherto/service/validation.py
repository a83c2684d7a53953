"""Checks of every value before it is stored, wherever it comes from: a caller, an export, another program."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from msgspec.structs import replace

from hitherto.errors import InvalidInput, TooLarge
from hitherto.limits import (
    DIRECTORIES,
    EARLIER_CWDS,
    EARLIER_TITLES,
    ENTRIES_PER_APPEND,
    ENTRY_SUM,
    FACT_CHARS,
    META_BYTES,
    NAME_CHARS,
    NESTED_PARTS,
    TAG_CHARS,
    TAGS,
    TITLE_CHARS,
    checked_length,
    checked_number,
    checked_size,
    is_storable,
)
from hitherto.model import (
    EPISODE,
    OWN,
    RESERVED,
    ROLES,
    Checkpoint,
    Draft,
    Entry,
    Fact,
    Identity,
    Json,
    Origin,
    Part,
    Principal,
    Session,
    ToolResult,
    decode_json,
    encode,
)
from hitherto.values.filters import normal_cwd
from hitherto.values.titles import clean_title

MICROS = 1_000_000
CLAIMED = f"{OWN}claimed"
"""Stands in a session's meta if its folders were named by somebody without rights on this machine: a label, no more."""
OURS = frozenset(
    ("bytes", "compaction", EPISODE, "erased", "imported", "replay", "said_as", "tokens_estimated")
)
"""Keys of an entry's meta that this program acts on and writes itself."""
SOURCES = frozenset(("body", "compact_summary", "error", "meta", "synthetic"))
"""Those that it acts on and that what is read from another program's files may have."""


def checked_owner(who: Principal) -> str:
    """The owner, if it is a name that stores can keep."""
    if not is_clean(who.owner) or not who.owner:
        raise InvalidInput("an owner must be a non-empty text")
    return who.owner


def checked_name(text: str | None, what: str) -> str | None:
    """A short text such as an id, a tag or a channel, or None."""
    if text is None:
        return None
    if not isinstance(text, str) or not text:
        raise InvalidInput(f"{what} must be a non-empty text")
    checked_length(text, NAME_CHARS, what)
    if not is_clean(text):
        raise InvalidInput(f"{what} cannot contain NUL or lone surrogates")
    return text


def checked_required(text: str, what: str) -> str:
    """A short text that must be there."""
    return checked_name(text or "", what) or ""


def is_clean(text: object) -> bool:
    """Whether this is a text that every store can compare: no NUL, no lone surrogates, not too long."""
    return isinstance(text, str) and len(text) <= NAME_CHARS and is_storable(text)


def checked_title(title: str | None) -> str | None:
    """A title in one line, or None."""
    if title is None:
        return None
    if not isinstance(title, str):
        raise InvalidInput("a title must be a text")
    checked_length(title, TITLE_CHARS, "a title")
    return clean_title(title) or None


def checked_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags in order, each once."""
    if isinstance(tags, str):
        raise InvalidInput("tags must be a list of texts")
    for tag in tags:
        if not is_clean(tag) or not tag.strip() or tag != tag.strip():
            raise InvalidInput(f"a tag cannot be empty, nor begin or end with a space: {tag!r}")
        checked_length(tag, TAG_CHARS, "a tag")
    if len(set(tags)) > TAGS:
        raise TooLarge(f"a session may have at most {TAGS} tags")
    return tuple(sorted(set(tags)))


def checked_directories(directories: Sequence[str]) -> tuple[str, ...]:
    """Additional roots, each an absolute path."""
    if len(directories) > DIRECTORIES:
        raise TooLarge(f"a session may have at most {DIRECTORIES} additional directories")
    return tuple(normal_cwd(directory) for directory in directories)


def checked_identity(identity: Identity | None) -> Identity | None:
    """The identity, if its names are ones that every store can keep."""
    if identity is not None:
        for name in (identity.role, identity.identity_id, identity.source_channel):
            checked_name(name, "an identity's name")
    return identity


def checked_meta(meta: Json) -> Json:
    """Free metadata: JSON, bounded in size; a copy, as it will be read back."""
    try:
        data = encode(meta)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"meta must be JSON: {error}") from None
    if len(data) > META_BYTES:
        raise TooLarge(f"meta may have at most {META_BYTES} bytes, this one has {len(data)}")
    kept: Json = decode_json(data)
    return kept


def foreign_keys(meta: Json) -> Json:
    """Metadata that a caller gives, if it leaves the program's own keys alone."""
    for name in meta if isinstance(meta, dict) else ():
        if isinstance(name, str) and name.startswith(RESERVED):
            raise InvalidInput(
                f"meta keys that begin with {' or '.join(RESERVED)} cannot be set: {name[:100]!r}"
            )
    return meta


def checked_drafts(drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The messages, if there is at least one, not too many, and each can be an entry."""
    if not drafts:
        raise InvalidInput("append needs at least one message")
    if len(drafts) > ENTRIES_PER_APPEND:
        raise TooLarge(f"append takes 1 to {ENTRIES_PER_APPEND} messages, not {len(drafts)}")
    for draft in drafts:
        if not isinstance(draft, Draft) or draft.role not in ROLES:
            raise InvalidInput(f"a message needs a role, one of {', '.join(ROLES)}")
        if not isinstance(draft.meta, dict) or not isinstance(draft.parts, tuple | list):
            raise InvalidInput("a message needs a list of parts, and its meta must be an object")
        if "erased" in draft.meta:
            raise InvalidInput("meta cannot have the key erased: it is reserved for erased messages")
    return drafts


def checked_entry(entry: Entry) -> Entry:
    """The entry, if its numbers are ones that every store can hold and add up."""
    checked_number(entry.at, "the time of an entry")
    if nesting(entry.parts) > NESTED_PARTS:
        raise InvalidInput(f"tool results may be nested at most {NESTED_PARTS} deep")
    if not 0 <= checked_number(entry.tokens or 0, "tokens") <= ENTRY_SUM:
        raise InvalidInput(f"an entry has 0 to {ENTRY_SUM} tokens, not {entry.tokens}")
    if entry.origin is not None:
        _check_origin(entry.origin)
    cost = entry.usage.cost if entry.usage else None
    # Written so that it refuses what is not a number.
    if cost is not None and not 0 <= cost * MICROS <= ENTRY_SUM:
        raise InvalidInput(f"an entry costs 0 to {ENTRY_SUM // MICROS} dollars, not {cost}")
    return entry


def _check_origin(origin: Origin) -> None:
    if origin.sender is not None:
        checked_required(origin.sender.id, "a sender's id")
        checked_name(origin.sender.name, "a sender's name")
    checked_name(origin.reply_to, "the message that is replied to")
    checked_size(encode(origin.metadata), META_BYTES, "the metadata of a message")


def nesting(parts: Sequence[Part]) -> int:
    """How deep results stand in results."""
    deep, level = 0, [part for part in parts if isinstance(part, ToolResult)]
    while level and deep <= NESTED_PARTS:
        deep += 1
        level = [inner for part in level for inner in part.content if isinstance(inner, ToolResult)]
    return deep


def check_meta_keys(metas: Iterable[Json], refused: frozenset[str]) -> None:
    """Raise if a caller's metadata has a key that is reserved for the program."""
    for meta in metas:
        if names := sorted(refused & meta.keys()):
            raise InvalidInput(f"meta cannot have the key {names[0]}: it is reserved")


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


def checked_checkpoint(checkpoint: Checkpoint, known: Container[str]) -> Checkpoint:
    """The checkpoint, if its id is free."""
    checked_required(checkpoint.id, "a checkpoint id")
    checked_required(checkpoint.reason, "a reason")
    for number in (checkpoint.at, checkpoint.message_count, checkpoint.token_count or 0):
        checked_number(number, "a number of a checkpoint")
    if checkpoint.id in known:
        raise InvalidInput(f"the checkpoint id {checkpoint.id!r} occurs twice")
    return checkpoint


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
