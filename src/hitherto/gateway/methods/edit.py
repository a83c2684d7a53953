"""Changing a session: what was said in it, and what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from hitherto import model
from hitherto.errors import AlreadyExists, InvalidInput, SessionNotFound
from hitherto.gateway.dispatch.content import NewMessage, drafts_of
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import MODEL, Answer, NamedWriting, Overwriting, key_of
from hitherto.gateway.methods.create import Title, addressed
from hitherto.limits import ENTRIES_PER_APPEND
from hitherto.model import Draft, QueueMode, Session
from hitherto.service import Sessions
from hitherto.service.history.inbox import QUEUE_MODE

Messages = Annotated[tuple[NewMessage, ...], Meta(min_length=1, max_length=ENTRIES_PER_APPEND)]


class Append(Overwriting, frozen=True, kw_only=True):
    """With `create`, a session for the key is made if there is none."""

    messages: Messages
    create: bool = False


class ResetSession(Overwriting, frozen=True, kw_only=True):
    """With `recap`, the context begins with a short recap of what was there; without, as the server is set."""

    recap: bool | None = None


class Erase(NamedWriting, frozen=True, kw_only=True):
    """Which message."""

    message_id: str


class SetTopic(Overwriting, frozen=True, kw_only=True):
    """null takes the title away."""

    topic: Title | None


class Patch(Overwriting, frozen=True, kw_only=True):
    """What is given is changed; null takes away. `label` is the title; `metadata` is merged, key by key."""

    label: Title | UnsetType | None = UNSET
    status: Literal["idle", "archived"] | None = None
    archived: bool | None = None
    pinned: bool | None = None
    tags: tuple[str, ...] | None = None
    model: str | UnsetType | None = UNSET
    queue_mode: QueueMode | UnsetType | None = UNSET
    metadata: dict[str, Any] | None = None


class Appended(Answer, frozen=True, kw_only=True):
    """The session after that, and the ids of the messages. `place` is their place in the inbox if they wait for a running
    turn; else it is null."""

    session_key: str
    session_id: str
    revision: int
    message_count: int
    message_ids: tuple[str, ...]
    place: int | None


class Erased(Answer, frozen=True, kw_only=True):
    """The message has no content any more; its place in the history stays."""

    session_key: str
    message_id: str
    erased: bool


class Updated(Answer, frozen=True, kw_only=True):
    """The revision after that."""

    session_key: str
    revision: int
    updated: bool


class Reset(Answer, frozen=True, kw_only=True):
    """How many messages left the context; they are in a checkpoint."""

    session_key: str
    events_retired: int
    reset: bool


class Deleted(Answer, frozen=True, kw_only=True):
    """How many messages the session had."""

    session_key: str
    messages_removed: int
    deleted: bool


class RuntimeDeleted(Answer, frozen=True, kw_only=True):
    """How many messages the session had."""

    session_key: str
    events_retired: int
    deleted: bool


async def append(call: Call[Append]) -> Appended:
    """Append messages to a session, all or none. They are durable when the response arrives; while a turn runs they wait
    behind it in the inbox."""
    drafts, session = drafts_of(call.params.messages), call.found
    given: dict[str, Any] = {
        "idempotency_key": call.params.idempotency_key,
        "expected_revision": call.params.expected_revision,
    }
    done: model.Appended | None = None
    if session is None:
        session, done = await _begun(call, drafts, given)
    if done is None:
        home = call.context.sessions.at(session.key or session.id)
        done = await home.append(call.who, session.id, drafts, **given)
    return Appended(
        session_key=key_of(session),
        session_id=session.id,
        revision=done.revision,
        message_count=done.message_count,
        message_ids=done.entries,
        place=done.place,
    )


async def erase(call: Call[Erase]) -> Erased:
    """Blank one message for good, here and in every fork that shares it, with everything derived from it."""
    done = Erased(session_key=key_of(call.session), message_id=call.params.message_id, erased=True)
    return await call.once(
        lambda sessions: sessions.erase(call.who, call.session.id, call.params.message_id), lambda _: done
    )


async def set_topic(call: Call[SetTopic]) -> Updated:
    """Give the session a title."""
    return await _amended(call, title=call.params.topic)


async def patch(call: Call[Patch]) -> Updated:
    """Change fields of a session, all or none."""
    given = call.params
    if given.status is not None and given.archived not in (None, given.status == "archived"):
        raise InvalidInput("status and archived contradict each other")
    archived = given.archived if given.status is None else given.status == "archived"
    meta = dict(given.metadata or {})
    if given.model is not UNSET:
        meta[MODEL] = given.model and call.context.offered(given.model)
    if given.queue_mode is not UNSET:
        meta[QUEUE_MODE] = given.queue_mode
    return await _amended(
        call, title=given.label, tags=given.tags, archived=archived, pinned=given.pinned, meta=meta or None
    )


async def reset(call: Call[ResetSession]) -> Reset:
    """Start the session anew. What was there becomes an episode of its conversation, and its facts are kept in memory."""
    before, recap = call.session, call.params.recap

    def answer(_: Session) -> Reset:
        return Reset(session_key=key_of(before), events_retired=before.message_count, reset=True)

    return await call.once(lambda sessions: sessions.reset(call.who, before.id, recap=recap), answer)


async def delete(call: Call[Overwriting]) -> Deleted:
    """Delete a session and all its messages for good."""

    def answer(messages: int) -> Deleted:
        return Deleted(deleted=True, session_key=key_of(call.session), messages_removed=messages)

    return await call.once(lambda sessions: sessions.delete(call.who, call.session.id), answer)


async def delete_runtime(call: Call[Overwriting]) -> RuntimeDeleted:
    """Delete a session and all its messages for good."""

    def answer(messages: int) -> RuntimeDeleted:
        return RuntimeDeleted(deleted=True, session_key=key_of(call.session), events_retired=messages)

    return await call.once(lambda sessions: sessions.delete(call.who, call.session.id), answer)


async def _begun(
    call: Call[Append], drafts: Sequence[Draft], given: dict[str, Any]
) -> tuple[Session, model.Appended | None]:
    """The session of the key, which was not there, with this said in it; if somebody else was quicker, only theirs."""
    name = call.params.session_key
    if name is None:
        raise SessionNotFound(call.params.session_id or "")
    home, address = call.context.sessions.at(name), addressed(call, name)
    try:
        return await home.channels.begin_with(call.who, address, drafts, **given)
    except AlreadyExists as refused:  # the session, or one of the messages twice
        try:
            return await home.channels.resolve(call.who, name), None
        except SessionNotFound:
            raise refused from None


async def _amended(call: Call[Any], **changes: Any) -> Updated:
    def answer(session: Session) -> Updated:
        return Updated(session_key=key_of(session), revision=session.revision, updated=True)

    def amend(sessions: Sessions) -> Any:
        return sessions.channels.amend(call.who, call.session.id, **changes)

    return await call.once(amend, answer)
