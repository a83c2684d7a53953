"""All methods in two tables: name, handler and parameters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from hitherto.acp.agent import extensions, manage, open, prompt
from hitherto.acp.agent.connection import Connection
from hitherto.acp.protocol.initialize import InitializeParams, answer_initialize
from hitherto.acp.protocol.params import (
    Authenticate,
    BatchGet,
    ListSessions,
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
from hitherto.errors import InvalidInput
from hitherto.model import Json
from hitherto.rpc.peer import Method


async def initialize(connection: Connection, params: InitializeParams) -> Json:
    """`initialize`."""
    connection.client, answer = answer_initialize(params, connection.offer.reads(), connection.offer.about)
    return answer


async def authenticate(_: Connection, params: Authenticate) -> Json:
    """`authenticate`: not required, and no method is offered."""
    raise InvalidInput(f"unknown auth method {params.method_id!r:.100} (authentication is not required)")


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
