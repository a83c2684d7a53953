"""All methods in two tables: name, handler and parameters."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from hitherto.acp.agent import extensions, manage, open, prompt
from hitherto.acp.agent.connection import Connection
from hitherto.acp.protocol.initialize import ENVIRONMENT, InitializeParams, answer_initialize
from hitherto.acp.protocol.params import (
    Authenticate,
    BatchGet,
    ListSessions,
    Logout,
    NamedSession,
    NewSession,
    OpenSession,
    Prompt,
    Search,
    SetMode,
    SetOption,
    SetTitle,
    Subscribe,
    Unsubscribe,
)
from hitherto.acp.sign_in import PROVIDERS, forget_sign_in, use_sign_in
from hitherto.errors import InvalidInput, SignInRequired
from hitherto.model import Json
from hitherto.rpc.errors import METHOD_NOT_FOUND, Failure
from hitherto.rpc.peer import Method
from hitherto.settings import read_settings


async def initialize(connection: Connection, params: InitializeParams) -> Json:
    """`initialize`."""
    offer = connection.offer
    connection.client, answer = answer_initialize(params, offer.reads(), offer.about, signs_in=offer.signs_in)
    return answer


async def authenticate(connection: Connection, params: Authenticate) -> Json:
    """`authenticate`: with the keys of the environment, or what was kept when the user signed in; -32000 if there are none."""
    if not connection.offer.signs_in or params.method_id != ENVIRONMENT:
        raise InvalidInput(f"unknown auth method {params.method_id!r:.100}")
    settings = read_settings()
    kept = await asyncio.to_thread(use_sign_in, settings.data_dir)
    if kept is None and not any(variable in os.environ for variable, _ in PROVIDERS.values()):
        raise SignInRequired("no key of a model provider is set")
    return {}


async def logout(connection: Connection, _: Logout) -> Json:
    """`logout`: forgets what was kept when the user signed in; keys of the environment stay."""
    if not connection.offer.signs_in:
        raise Failure(METHOD_NOT_FOUND, "Method not found: logout", {"method": "logout"})
    await asyncio.to_thread(forget_sign_in, read_settings().data_dir)
    return {}


class _Named(Protocol):
    @property
    def session_id(self) -> str: ...


N = TypeVar("N", bound=_Named)
R = TypeVar("R")


def in_order(handle: Callable[[Connection, N], Awaitable[R]]) -> Callable[[Connection, N], Awaitable[R]]:
    """A method that changes a session: it waits for what the client sent to the same session before."""

    async def handle_in_order(connection: Connection, params: N) -> R:
        async with connection.by_session.turn(params.session_id):
            return await handle(connection, params)

    return handle_in_order


REQUESTS: dict[str, Method[Connection]] = {
    "initialize": Method(initialize, InitializeParams),
    "authenticate": Method(authenticate, Authenticate),
    "logout": Method(logout, Logout),
    "session/new": Method(open.new_session, NewSession, whole=True),
    "session/load": Method(open.load_session, OpenSession),
    "session/resume": Method(open.resume_session, OpenSession),
    "session/fork": Method(in_order(open.fork_session), OpenSession, whole=True),
    "session/close": Method(open.close_session, NamedSession),
    "session/list": Method(manage.list_sessions, ListSessions),
    "session/delete": Method(in_order(manage.delete_session), NamedSession),
    "session/archive": Method(in_order(manage.archive_session), NamedSession),
    "session/unarchive": Method(in_order(manage.unarchive_session), NamedSession),
    "session/set_title": Method(in_order(manage.set_title), SetTitle),
    "session/status": Method(manage.session_status, NamedSession),
    "session/prompt": Method(prompt.prompt, Prompt, waits=True),
    "session/set_mode": Method(in_order(prompt.set_mode), SetMode),
    "session/set_config_option": Method(in_order(prompt.set_option), SetOption),
    "_hitherto/session/search": Method(extensions.search, Search),
    "_hitherto/session/batch_get": Method(extensions.batch_get, BatchGet),
    "_hitherto/session/list/subscribe": Method(extensions.subscribe, Subscribe),
    "_hitherto/session/list/unsubscribe": Method(extensions.unsubscribe, Unsubscribe),
}

NOTIFICATIONS: dict[str, Method[Connection]] = {
    "session/cancel": Method(prompt.cancel, NamedSession),
}
