"""What is answered here, in two tables; everything else is the agent's to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from hitherto.acp.agent import extensions, manage, open
from hitherto.acp.agent.connection import checked_cwd, checked_directories, roots_of
from hitherto.acp.agent.open import FORK_AT
from hitherto.acp.protocol.initialize import CAPABILITIES, InitializeParams, greeted
from hitherto.acp.protocol.params import (
    BatchGet,
    ListSessions,
    NamedSession,
    OpenSession,
    Search,
    SetTitle,
    Subscribe,
    Unsubscribe,
)
from hitherto.acp.protocol.session_rows import CONTINUED
from hitherto.acp.proxy import methods
from hitherto.acp.proxy.agent_link import kept_of
from hitherto.acp.proxy.agent_listing import adopted, noted, unknown_rows
from hitherto.acp.proxy.agent_process import VERSION, Life, Refusal
from hitherto.acp.proxy.connection import ProxyDoor
from hitherto.acp.proxy.frames import Members, joined, members_of, object_of, text_of, value_of, written
from hitherto.acp.proxy.recorder import parts_of
from hitherto.acp.proxy.session import Found, Proxied, named, origin_of
from hitherto.engines.model.capabilities import Reads
from hitherto.errors import HithertoError, InvalidInput, SessionNotFound
from hitherto.model import Json, Session
from hitherto.rpc import frames
from hitherto.rpc.peer import Method, Then
from hitherto.values.filters import normal_cwd

FOUND = "hitherto/behind"
"""The key of an answer's `_meta` that says how the agent's session was come by."""
THEIRS = "agent:"
"""What a cursor begins with that goes on in the agent's own list."""
_END_OF_OURS = b'{"sessions":[]}'
T = TypeVar("T")


class _Setting(msgspec.Struct, frozen=True, rename="camel"):
    """What is read of the parameters that a session is opened with. What MCP servers are is for the agent to say."""

    cwd: str
    session_id: str = ""
    additional_directories: tuple[str, ...] | None = None


class _Prompt(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    prompt: list[Any]


_settings = msgspec.json.Decoder(_Setting)
_prompts = msgspec.json.Decoder(_Prompt)
_greetings = msgspec.json.Decoder(InitializeParams)


async def initialize(door: ProxyDoor, params: Members) -> bytes:
    """`initialize`: the agent is started, and asked first."""
    read = frames.decoded(_greetings, Raw(joined(params)))
    client, _ = greeted(read, Reads(), door.offer.about)
    door.agent.greeting = methods.asked(params)
    life = await door.agent.ready()
    door.client = client
    return joined(methods.answered(life.greeting))


# Opening and closing


async def new_session(door: ProxyDoor, params: Members) -> Then:
    """`session/new`: the agent makes one, and ours is made for it."""
    given = frames.decoded(_settings, Raw(joined(params)))
    sessions, directories = door.sessions, checked_directories(given.additional_directories)
    placed = await open.placed_in(door, given.cwd)
    with door.room(), door.relay.opening():
        life = await door.agent.ready()
        result = await life.ask("session/new", params)
        behind = named(result, door.agent.name)
        session = await sessions.create(
            door.who, cwd=given.cwd, additional_directories=directories, agent_id=door.agent.name, **placed
        )
        proxied = await door.attach(session, session.cwd, directories, ())
        proxied.setting, proxied.opened_with = params, result
        await proxied.sit(life, behind, known=None, waiting=True)
    return _made(session, result, proxied)


async def load_session(door: ProxyDoor, params: Members) -> Then:
    """`session/load`: the conversation as it was kept here, then the answer. What the agent would replay is left out: it
    knows at most what passed through it, often less, under other ids each time."""
    return await _open(door, params, replay=True)


async def resume_session(door: ProxyDoor, params: Members) -> Then:
    """`session/resume`: the same without telling what was said."""
    return await _open(door, params, replay=False)


async def _open(door: ProxyDoor, params: Members, *, replay: bool) -> Then:
    given = frames.decoded(_settings, Raw(joined(params)))
    async with door.gate(given.session_id):
        _, told = await adopted(door, given.session_id, _setting(params))
        proxied, fresh = await _attached(door, given)
        try:
            found = await proxied.open_behind(_setting(params), told) if fresh else None
            if replay:
                await proxied.showing.replay(proxied.session, door.peer.alone)
            elif fresh:
                await proxied.showing.skip()
        except BaseException:  # cancelled, for one: then it is not open
            if fresh:
                await door.detach(given.session_id)
            raise
        return Then(_state(proxied, found), proxied.begin if fresh else _nothing)


async def _attached(door: ProxyDoor, given: _Setting) -> tuple[Proxied, bool]:
    """The session, opened as the editor says, and whether it is opened anew: one with a running turn is left alone."""
    directories = checked_directories(given.additional_directories)
    session = await door.sessions.get(door.who, given.session_id)
    cwd = checked_cwd(session, given.cwd)
    known = door.proxied(session.id)
    if known is not None and known.running:
        if not known.is_set_up(roots_of(session, cwd, directories), ()):
            known.expect_idle()
        return known, False
    if session.additional_directories != directories:
        session = await door.sessions.catalog.set_directories(door.who, session.id, directories)
    with door.room(session.id):
        return await door.attach(session, cwd, directories, ()), True


async def fork_session(door: ProxyDoor, params: Members) -> Then:
    """`session/fork`: ours is forked; behind it stands the agent's own fork, or a session that is told what was said."""
    given = frames.decoded(_settings, Raw(joined(params)))
    directories = checked_directories(given.additional_directories)
    at = value_of(object_of(params, "_meta").get(FORK_AT))
    if at is not None and not isinstance(at, str):
        raise InvalidInput(f"{FORK_AT} is the id of a message")
    with door.room(), door.relay.opening():
        life = await door.agent.ready()
        source, _ = await adopted(door, given.session_id, _setting(params))
        behind, known, result = await _forked_behind(door, life, source, params, at)
        wanted = OpenSession(session_id=source.id, cwd=given.cwd)
        session = await open.forked(door, wanted, at)
        session = await door.sessions.catalog.set_directories(door.who, session.id, directories)
        proxied = await door.attach(session, session.cwd, directories, ())
        proxied.setting, proxied.opened_with = _setting(params), result
        seat = await proxied.sit(life, behind, known=known, waiting=True)
        seat.titles = False
    await proxied.showing.skip()
    return _made(session, result, proxied)


async def _forked_behind(
    door: ProxyDoor, life: Life, source: Session, params: Members, at: str | None
) -> tuple[str, str | None, Members]:
    """The agent's session for a fork, how much of ours it knows, and what the agent answered."""
    kept = kept_of(source, door.agent.name) or await origin_of(door, source)
    if kept is not None and at is None and life.can("sessionCapabilities", "fork"):
        with suppress(Refusal):
            result = await life.ask("session/fork", {**params, "sessionId": written(kept.id)})
            behind = named(result, door.agent.name)
            door.relay.forget(behind)
            return behind, kept.known, result
    result = await life.ask("session/new", {"mcpServers": Raw(b"[]"), **_setting(params)})
    return named(result, door.agent.name), None, result


async def close_session(door: ProxyDoor, params: Members) -> Json:
    """`session/close`."""
    await _also(door, params, "session/close", "close")
    return await open.close_session(door, _read(NamedSession, params))


# Prompts


async def prompt(door: ProxyDoor, params: Members) -> bytes:
    """`session/prompt`: kept, answered by the agent, and what it said kept before the editor has the answer."""
    given = frames.decoded(_prompts, Raw(joined(params)))
    proxied = await door.reached(given.session_id)
    result = await proxied.relayed(parts_of(given.prompt), params)
    if proxied.target != proxied.session.id:
        meta = {**object_of(result, "_meta"), CONTINUED: written(proxied.target)}
        result = {**result, "_meta": Raw(joined(meta))}
    return joined(result)


async def cancel(door: ProxyDoor, params: Members) -> None:
    """`session/cancel`: for the agent, if the turn is this editor's; else for whichever process it runs in."""
    proxied = door.proxied(text_of(params, "sessionId"))
    if proxied is None:
        return
    if proxied.running:
        await proxied.call_off()
    else:
        await door.sessions.leases.request_end(door.who, proxied.target)


# Sessions that need not be open


async def delete_session(door: ProxyDoor, params: Members) -> Json:
    """`session/delete`: here, and in the agent."""
    with suppress(SessionNotFound):  # what the agent cannot delete is not listed again either
        await noted(door, text_of(params, "sessionId") or "")
    await _also(door, params, "session/delete", "delete")
    return await manage.delete_session(door, _read(NamedSession, params))


async def set_title(door: ProxyDoor, params: Members) -> Json:
    """`session/set_title`: the user's, which none of the agent's replaces."""
    given = _read(SetTitle, params)
    await noted(door, given.session_id)
    answer = await manage.set_title(door, given)
    seat = door.seat(text_of(params, "sessionId"))
    if seat is not None:
        seat.titles = False
    await _also(door, params, "session/set_title", "title")
    return answer


async def archive_session(door: ProxyDoor, params: NamedSession) -> Json:
    """`session/archive`."""
    await noted(door, params.session_id)
    return await manage.archive_session(door, params)


async def session_status(door: ProxyDoor, params: NamedSession) -> Json:
    """`session/status`: nobody has a session open that only the agent has."""
    if not await door.sessions.catalog.known(door.who, [params.session_id]) and door.agent.own(
        params.session_id
    ):
        return {"status": "saved"}
    return await manage.session_status(door, params)


async def list_sessions(door: ProxyDoor, params: ListSessions) -> bytes:
    """`session/list`: ours, and behind the last of them those that only the agent has."""
    cursor = params.cursor or ""
    theirs = cursor.removeprefix(THEIRS) if cursor.startswith(THEIRS) else None
    answer = _END_OF_OURS if theirs is not None else await manage.list_sessions(door, params)
    listed = members_of(answer) or {}
    if "nextCursor" in listed or params.archived == "only" or _is_narrowed(params):
        return answer
    cwd = None if params.cwd is None else normal_cwd(params.cwd)
    rows, more = await unknown_rows(door, cwd, theirs or None)
    result: Json = {"sessions": [*value_of(listed["sessions"]), *rows]}
    return frames.encode(result if more is None else {**result, "nextCursor": THEIRS + more})


def _is_narrowed(params: ListSessions) -> bool:
    """Whether something is asked for that the agent's list does not tell."""
    return any(given is not None for given in (params.project, params.search, params.created_after))


async def _also(door: ProxyDoor, params: Members, method: str, capability: str) -> None:
    """Let the agent do the same with its session, if it runs and can; ours does not depend on it."""
    life = door.agent.alive
    if life is None or not life.can("sessionCapabilities", capability):
        return
    with suppress(HithertoError, Refusal):
        session = await door.sessions.get(door.who, text_of(params, "sessionId") or "")
        kept = kept_of(session, door.agent.name) or await origin_of(door, session)
        if kept is not None:
            await life.ask(method, {**params, "sessionId": written(kept.id)})


# Answers


def _read(shape: type[T], params: Members) -> T:
    """The parameters in the shape of a method of ours."""
    read: T = frames.decoded(msgspec.json.Decoder(shape), Raw(joined(params)))
    return read


def _ours(handle: Callable[[Any, Any], Awaitable[Any]], shape: type[Any]) -> Method[ProxyDoor]:
    """A method that the agent has no part in."""
    return Method(handle, shape)


def _setting(params: Members) -> Members:
    """What a session is opened with, without its id."""
    return {name: raw for name, raw in params.items() if name != "sessionId"}


def _made(session: Session, result: Members, proxied: Proxied) -> Then:
    return Then(joined({**result, "sessionId": written(session.id)}), proxied.begin)


def _state(proxied: Proxied, found: Found | None) -> bytes:
    """What the agent answered, as the answer to what the editor asked."""
    result = {name: raw for name, raw in proxied.opened_with.items() if name != "sessionId"}
    if found is not None:
        meta = {**object_of(result, "_meta"), FOUND: written(found)}
        result["_meta"] = Raw(joined(meta))
    return joined(result)


async def _nothing() -> None:
    pass


REQUESTS: dict[str, Method[ProxyDoor]] = {
    "initialize": Method(initialize, Members),
    "session/new": Method(new_session, Members, whole=True),
    "session/load": Method(load_session, Members),
    "session/resume": Method(resume_session, Members),
    "session/fork": Method(fork_session, Members, whole=True),
    "session/close": Method(close_session, Members),
    "session/prompt": Method(prompt, Members, waits=True),
    "session/delete": Method(delete_session, Members),
    "session/set_title": Method(set_title, Members),
    "session/list": _ours(list_sessions, ListSessions),
    "session/archive": _ours(archive_session, NamedSession),
    "session/unarchive": _ours(manage.unarchive_session, NamedSession),
    "session/status": _ours(session_status, NamedSession),
    "_hitherto/session/search": _ours(extensions.search, Search),
    "_hitherto/session/batch_get": _ours(extensions.batch_get, BatchGet),
    "_hitherto/session/list/subscribe": _ours(extensions.subscribe, Subscribe),
    "_hitherto/session/list/unsubscribe": _ours(extensions.unsubscribe, Unsubscribe),
}

NOTIFICATIONS: dict[str, Method[ProxyDoor]] = {"session/cancel": Method(cancel, Members)}


ADDED = ("list", "resume", "close", "delete", "fork", "archive", "title", "status")
"""Capabilities of sessions that the editor gets whether the agent has them or not."""


def asked(params: Members) -> Members:
    """The editor's greeting as the agent gets it: in the version that is spoken here, and else as it is."""
    version = value_of(params.get("protocolVersion"))
    newer = isinstance(version, int) and version > VERSION
    return {**params, "protocolVersion": written(VERSION)} if newer else params


def answered(greeting: Members) -> Members:
    """The agent's greeting as the editor gets it."""
    able = object_of(greeting, "agentCapabilities")
    sessions = object_of(able, "sessionCapabilities")
    for name in ADDED:
        if value_of(sessions.get(name)) is None:
            sessions[name] = Raw(b"{}")
    meta = {
        **object_of(able, "_meta"),
        **{name: written(value) for name, value in CAPABILITIES["_meta"].items()},
    }
    able |= {
        "loadSession": Raw(b"true"),
        "sessionCapabilities": Raw(joined(sessions)),
        "_meta": Raw(joined(meta)),
    }
    return {**greeting, "agentCapabilities": Raw(joined(able))}
