"""Every method, in two tables: what is asked, who answers, and what it wants to know."""

from __future__ import annotations

from hitherto.acp import extensions, keeping, opening, prompting
from hitherto.acp.door import Door
from hitherto.acp.greeting import InitializeParams, greeted
from hitherto.acp.shapes import (
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


async def initialize(door: Door, params: InitializeParams) -> Json:
    """`initialize`."""
    door.client, answer = greeted(params, door.offer.reads(), door.offer.about)
    return answer


async def authenticate(_: Door, params: Authenticate) -> Json:
    """`authenticate`: nobody has to, and no way to do so is offered."""
    raise InvalidInput(f"there is no way {params.method_id!r:.100} to authenticate: none is needed")


REQUESTS: dict[str, Method[Door]] = {
    "initialize": Method(initialize, InitializeParams),
    "authenticate": Method(authenticate, Authenticate),
    "session/new": Method(opening.new_session, NewSession, whole=True),
    "session/load": Method(opening.load_session, OpenSession),
    "session/resume": Method(opening.resume_session, OpenSession),
    "session/fork": Method(opening.fork_session, OpenSession, whole=True),
    "session/close": Method(opening.close_session, NamedSession),
    "session/list": Method(keeping.list_sessions, ListSessions),
    "session/delete": Method(keeping.delete_session, NamedSession),
    "session/archive": Method(keeping.archive_session, NamedSession),
    "session/unarchive": Method(keeping.unarchive_session, NamedSession),
    "session/set_title": Method(keeping.set_title, SetTitle),
    "session/status": Method(keeping.session_status, NamedSession),
    "session/prompt": Method(prompting.prompt, Prompt, waits=True),
    "session/set_mode": Method(prompting.set_mode, SetMode),
    "session/set_config_option": Method(prompting.set_option, SetOption),
    "_hitherto/session/search": Method(extensions.search, Search),
    "_hitherto/session/batch_get": Method(extensions.batch_get, BatchGet),
    "_hitherto/session/list/subscribe": Method(extensions.subscribe, Subscribe),
    "_hitherto/session/list/unsubscribe": Method(extensions.unsubscribe, Unsubscribe),
}

NOTIFICATIONS: dict[str, Method[Door]] = {
    "session/cancel": Method(prompting.cancel, NamedSession),
}
