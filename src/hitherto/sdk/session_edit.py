"""Naming, tagging, forking and deleting a session: in the store, in Claude Code's own files, or in both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypedDict, Unpack

from hitherto import claude
from hitherto.claude.edit import required_title, visible_tag
from hitherto.claude.fork import ForkSessionResult
from hitherto.errors import EntryNotFound, InvalidInput
from hitherto.model import LOCAL
from hitherto.sdk.known_session import Directory, KnownSession, opened_store, read_arguments, require_known
from hitherto.sdk.session_list import TAG
from hitherto.service import Sessions


class SessionMutationOptions(TypedDict, total=False):
    """What a function that changes a session may be given."""

    dir: Directory
    store: str | None


class ForkSessionOptions(TypedDict, total=False):
    """What `fork_session` may be given."""

    dir: Directory
    up_to_message_id: str | None
    title: str | None
    store: str | None


async def rename_session(
    session_id: str,
    title: str,
    options: Mapping[str, Any] | None = None,
    /,
    **more: Unpack[SessionMutationOptions],
) -> None:
    """Set the title of a session. `SessionNotFound` if nobody knows it, `InvalidInput` if the title is empty."""
    given = read_arguments(options, more, "dir")
    named = _checked(partial(required_title, title))
    async with _known(session_id, given) as (sessions, known):
        if known.file is not None:
            await asyncio.to_thread(claude.rename_session, known.file.stem, named, given.get("dir"))
        if sessions is not None and known.stored is not None:
            await sessions.rename(LOCAL, known.stored.id, named)


async def tag_session(
    session_id: str,
    tag: str | None,
    options: Mapping[str, Any] | None = None,
    /,
    **more: Unpack[SessionMutationOptions],
) -> None:
    """Set the tag of a session in place of the one that was set before; None removes it. Other tags stay. `SessionNotFound`
    if nobody knows the session, `InvalidInput` if the tag has nothing to see."""
    given = read_arguments(options, more, "dir")
    clean = _checked(partial(visible_tag, tag))
    async with _known(session_id, given) as (sessions, known):
        if known.file is not None:
            await asyncio.to_thread(claude.tag_session, known.file.stem, clean or None, given.get("dir"))
        elif sessions is not None and known.stored is not None:
            before = known.stored.meta.get(TAG)
            await sessions.tag(
                LOCAL, known.stored.id, add=[clean] if clean else [], remove=[before] if before else []
            )
            await sessions.catalog.set_own_meta(LOCAL, known.stored.id, {TAG: clean or None})


async def delete_session(
    session_id: str, options: Mapping[str, Any] | None = None, /, **more: Unpack[SessionMutationOptions]
) -> None:
    """Delete a session for good, its transcript too. `SessionNotFound` if nobody knows it."""
    given = read_arguments(options, more, "dir")
    async with _known(session_id, given) as (sessions, known):
        if known.file is not None:
            await asyncio.to_thread(claude.delete_session, known.file.stem, given.get("dir"))
        if sessions is not None and known.stored is not None:
            await sessions.delete(LOCAL, known.stored.id)


async def fork_session(
    session_id: str, options: Mapping[str, Any] | None = None, /, **more: Unpack[ForkSessionOptions]
) -> ForkSessionResult:
    """A new session with the conversation of this one; with `up_to_message_id`, up to and including that message.

    A transcript of Claude Code's is forked into one beside it. `SessionNotFound` if nobody knows the session,
    `InvalidInput` if it has no such message.
    """
    given = read_arguments(options, more, "dir", "up_to_message_id", "title")
    until, title = given.get("up_to_message_id"), given.get("title")
    async with _known(session_id, given) as (sessions, known):
        if known.file is not None:
            fork = partial(claude.fork_session, known.file.stem, given.get("dir"), until, title)
            return await asyncio.to_thread(_checked, fork)
        if sessions is None or known.stored is None:
            raise InvalidInput(f"session {session_id!r} cannot be forked")
        named = title or f"{known.stored.title or 'Forked session'} (fork)"
        try:
            made = await sessions.fork(LOCAL, known.stored.id, at=until, title=named)
        except EntryNotFound as error:
            raise InvalidInput(f"message {until} not found in session {session_id}") from error
        return ForkSessionResult(session_id=made.id)


@asynccontextmanager
async def _known(
    session_id: str, given: Mapping[str, Any]
) -> AsyncIterator[tuple[Sessions | None, KnownSession]]:
    async with opened_store(given.get("store"), "change") as sessions:
        yield sessions, await require_known(sessions, session_id, given.get("dir"))


def _checked(work: partial[Any]) -> Any:
    """What a function of Claude Code's returns; its `ValueError` is an `InvalidInput` here."""
    try:
        return work()
    except ValueError as error:
        raise InvalidInput(str(error)) from None
