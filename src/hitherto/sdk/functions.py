"""The functions of the session API: a session made, resumed, or prompted once."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any, Unpack

from msgspec.structs import replace

from hitherto.errors import InvalidInput
from hitherto.ids import uuid7
from hitherto.sdk.blocks import Prompt, prompt_parts
from hitherto.sdk.messages import SDKMessage, SDKResultMessage
from hitherto.sdk.options import Given, Options, SDKSessionOptions, read_options
from hitherto.sdk.resume import create, resume
from hitherto.sdk.session import SDKSession
from hitherto.settings import read_settings


def create_session(options: Given = None, /, **more: Unpack[SDKSessionOptions]) -> SDKSession:
    """A new session. It comes at once, with its id; everything is opened at its first use."""
    return _new_session(read_options(options, more))


def resume_session(
    session_id: str, options: Given = None, /, **more: Unpack[SDKSessionOptions]
) -> SDKSession:
    """Resume a session: by an id of ours, or by the UUID of a transcript of Claude Code's.

    A session of another agent continues as a fork with its whole conversation, the same one each time;
    `resumed_from` says so. A given `title` or `cwd` becomes the session's. An id that nobody knows is a `SessionNotFound` at the first use.
    """
    read = read_options(options, more)
    if not isinstance(session_id, str) or not session_id:
        raise InvalidInput(f"session_id must be a non-empty string, not {session_id!r:.100}")
    if read.additional_directories:
        raise InvalidInput(
            "additional_directories can be given only to a new session; a resumed session keeps its own"
        )
    return SDKSession(session_id, partial(resume, given=session_id, options=read), read)


async def prompt(
    message: Prompt, options: Given = None, /, **more: Unpack[SDKSessionOptions]
) -> SDKResultMessage:
    """Say one thing in a new session, and wait for the result."""
    async with _new_session(read_options(options, more), improve_titles=False) as session:
        return await session.prompt(message)


def query(
    prompt: Prompt | Mapping[str, Any], options: Given = None, **more: Unpack[SDKSessionOptions]
) -> AsyncGenerator[SDKMessage, None]:
    """Say one thing in a new session, and follow what happens, up to the result.

    Here the model may be left to the setting HITHERTO_MODEL. A mapping has `prompt` and, if need be, `options`.
    """
    message: Any = prompt
    if isinstance(prompt, Mapping):
        if strange := set(prompt) - {"prompt", "options"}:
            raise InvalidInput(f"query takes only prompt and options, not {', '.join(map(str, strange))}")
        message, options = prompt.get("prompt", ""), prompt.get("options", options)
    read = read_options(options, more, model_required=False)
    if read.engine is None:
        read = replace(read, model=read_settings(model=read.model).model)
    prompt_parts(message)  # raises at once, not when somebody begins to read
    return _stream_once(message, read)


async def _stream_once(message: Prompt, options: Options) -> AsyncGenerator[SDKMessage, None]:
    async with _new_session(options, improve_titles=False) as session:
        await session.send(message)
        async for each in session.stream():
            yield each


def _new_session(options: Options, *, improve_titles: bool = True) -> SDKSession:
    session_id = uuid7()
    options = replace(options, cwd=options.cwd or os.getcwd())
    begin = partial(create, session_id=session_id, options=options)
    return SDKSession(session_id, begin, options, improve_titles=improve_titles)


unstable_v2_create_session = create_session
unstable_v2_resume_session = resume_session
unstable_v2_prompt = prompt
