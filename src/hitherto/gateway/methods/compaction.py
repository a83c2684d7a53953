"""Making a session's context smaller, and going back."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Named, Overwriting, key_of
from hitherto.gateway.methods.turns import chosen
from hitherto.limits import EPISODES_PAGE
from hitherto.model import Checkpoint, Episode, Session, Shrunk
from hitherto.service import Sessions

CheckpointLimit = Annotated[int, Meta(ge=1, le=1_000)]
EpisodeLimit = Annotated[int, Meta(ge=1, le=EPISODES_PAGE)]


class ListCheckpoints(Named, frozen=True, kw_only=True):
    """How many of the newest."""

    limit: CheckpointLimit = 100


class Restore(Overwriting, frozen=True, kw_only=True):
    """With `since`, what was said after the checkpoint follows it."""

    checkpoint_id: str
    since: bool = False


class Compacted(Answer, frozen=True, kw_only=True):
    """What came of it; if nothing was changed, `reason` says why. `estimated`: not all tokens were counted.

    `fallback` says why the built-in summariser did it and not the model.
    """

    session_key: str
    compacted: bool
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    facts_extracted: int
    estimated: bool
    reason: str | UnsetType = UNSET
    checkpoint_id: str | UnsetType = UNSET
    fallback: str | UnsetType = UNSET


class CheckpointInfo(Answer, frozen=True, kw_only=True):
    """What the session was once, and why it was kept."""

    checkpoint_id: str
    created_at: int
    reason: str
    message_count: int
    token_count: int | None


class Checkpoints(Answer, frozen=True, kw_only=True):
    """The newest checkpoints, oldest first."""

    session_key: str
    checkpoints: tuple[CheckpointInfo, ...]
    total: int


class EpisodesOf(Named, frozen=True, kw_only=True):
    """How many of the newest."""

    limit: EpisodeLimit = 100


class EpisodeInfo(Answer, frozen=True, kw_only=True):
    """A part of a session, from one reset to the next. The present one has no `ended_at`, `reason` and `checkpoint_id`.

    `checkpoint_id` is its state when it ended; `heading_id` the message that it begins with, which the first one does not have.
    """

    number: int
    began_at: int
    ended_at: int | None
    reason: str | None
    message_count: int
    checkpoint_id: str | None
    heading_id: str | None
    first_message_id: str | None
    text: str


class Episodes(Answer, frozen=True, kw_only=True):
    """The newest episodes, oldest first; the last is the present one."""

    session_key: str
    episodes: tuple[EpisodeInfo, ...]
    total: int


class Restored(Answer, frozen=True, kw_only=True):
    """The session as it is now."""

    session_key: str
    checkpoint_id: str
    message_count: int
    revision: int
    updated: bool


async def compact(call: Call[Overwriting]) -> Compacted:
    """Replace older messages with a summary, for the model only, and keep their facts in memory.

    The server's model writes it for a token that may `run`, else the built-in summariser.
    """
    engine, session = call.context.engine, call.session
    # It takes as long as a model does. What comes meanwhile is behind what is summarised, wherever it is stored.
    call.let_others_pass()

    async def shrink(sessions: Sessions) -> Shrunk:
        if engine is None or "run" not in call.context.token.scopes:
            return await sessions.compaction.shrink(call.who, session.id)
        async with sessions.opened(call.who, session.id, engine, roots=(), local=False) as opened:
            return await opened.compact(choices=chosen(call))

    def answer(done: Shrunk) -> Compacted:
        return Compacted(
            session_key=key_of(session),
            compacted=done.compacted,
            messages_before=done.messages_before,
            messages_after=done.messages_after,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            facts_extracted=done.facts_extracted,
            estimated=done.estimated,
            reason=done.reason or UNSET,
            checkpoint_id=done.checkpoint or UNSET,
            fallback=done.fallback or UNSET,
        )

    return await call.once(shrink, answer)


async def list_checkpoints(call: Call[ListCheckpoints]) -> Checkpoints:
    """List the checkpoints of a session: its state before each compaction, reset, rewind and restore."""
    known = await call.sessions.checkpoints(call.who, call.session.id)
    shown = tuple(map(_kept, known[-call.params.limit :]))
    return Checkpoints(session_key=key_of(call.session), checkpoints=shown, total=len(known))


async def list_episodes(call: Call[EpisodesOf]) -> Episodes:
    """List the episodes of a session: what was said from one reset to the next."""
    known = await call.sessions.episodes.known(call.who, call.session.id, limit=call.params.limit)
    shown = tuple(map(_episode, known))
    return Episodes(session_key=key_of(call.session), episodes=shown, total=known[-1].number)


async def restore(call: Call[Restore]) -> Restored:
    """Restore a checkpoint exactly. The current state is saved as a checkpoint first."""
    given = call.params

    def answer(session: Session) -> Restored:
        return Restored(
            session_key=key_of(session),
            checkpoint_id=given.checkpoint_id,
            message_count=session.message_count,
            revision=session.revision,
            updated=True,
        )

    return await call.once(
        lambda sessions: sessions.restore(call.who, call.session.id, given.checkpoint_id, since=given.since),
        answer,
    )


def _kept(checkpoint: Checkpoint) -> CheckpointInfo:
    return CheckpointInfo(
        checkpoint_id=checkpoint.id,
        created_at=checkpoint.at,
        reason=checkpoint.reason,
        message_count=checkpoint.message_count,
        token_count=checkpoint.token_count,
    )


def _episode(episode: Episode) -> EpisodeInfo:
    return EpisodeInfo(
        number=episode.number,
        began_at=episode.began_at,
        ended_at=episode.ended_at,
        reason=episode.reason,
        message_count=episode.message_count,
        checkpoint_id=episode.checkpoint,
        heading_id=episode.heading,
        first_message_id=episode.first,
        text=episode.text,
    )
