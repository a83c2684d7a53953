"""All methods in two tables: name, handler and parameters."""

from __future__ import annotations

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


REQUESTS: dict[str, Method[Connection]] = {
    "initialize": Method(initialize, InitializeParams),
    "authenticate": Method(authenticate, Authenticate),
    "session/new": Method(open.new_session, NewSession, whole=True),
    "session/load": Method(open.load_session, OpenSession),
    "session/resume": Method(open.resume_session, OpenSession),
    "session/fork": Method(open.fork_session, OpenSession, whole=True),
    "session/close": Method(open.close_session, NamedSession),
    "session/list": Method(manage.list_sessions, ListSessions),
    "session/delete": Method(manage.delete_session, NamedSession),
    "session/archive": Method(manage.archive_session, NamedSession),
    "session/unarchive": Method(manage.unarchive_session, NamedSession),
    "session/set_title": Method(manage.set_title, SetTitle),
    "session/status": Method(manage.session_status, NamedSession),
    "session/prompt": Method(prompt.prompt, Prompt, waits=True),
    "session/set_mode": Method(prompt.set_mode, SetMode),
    "session/set_config_option": Method(prompt.set_option, SetOption),
    "_hitherto/session/search": Method(extensions.search, Search),
    "_hitherto/session/batch_get": Method(extensions.batch_get, BatchGet),
    "_hitherto/session/list/subscribe": Method(extensions.subscribe, Subscribe),
    "_hitherto/session/list/unsubscribe": Method(extensions.unsubscribe, Unsubscribe),
}

NOTIFICATIONS: dict[str, Method[Connection]] = {
    "session/cancel": Method(prompt.cancel, NamedSession),
}
