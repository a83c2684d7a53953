"""Methods that the proxy answers, in two tables; the agent answers all others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from hitherto.acp.agent import extensions, manage, open
from hitherto.acp.agent.connection import check_cwd, check_directories, roots_of
from hitherto.acp.agent.open import FORK_AT
from hitherto.acp.protocol.initialize import CAPABILITIES, InitializeParams, answer_initialize
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
from hitherto.acp.proxy.agent_link import AgentLink, link_of
from hitherto.acp.proxy.agent_list import ensure_imported, ensure_noted, unknown_rows
from hitherto.acp.proxy.agent_process import VERSION, AgentProcess, Refusal
from hitherto.acp.proxy.connection import ProxyConnection
from hitherto.acp.proxy.frames import (
    Members,
    join_members,
    members_of,
    object_of,
    raw_json,
    text_of,
    value_of,
)
from hitherto.acp.proxy.recorder import parts_of
from hitherto.acp.proxy.session import OpenedBy, ProxiedSession, session_id_in, source_link
from hitherto.engines.capabilities import Reads
from hitherto.errors import HithertoError, InvalidInput, SessionNotFound
from hitherto.model import Json, Session
from hitherto.rpc import frames
from hitherto.rpc.peer import Method, Then
from hitherto.values.filters import normal_cwd

FOUND = "hitherto/behind"
"""The key in an answer's `_meta` that says how the agent's session was opened."""
STEERING = "_session/steering"
THEIRS = "agent:"
"""The prefix of cursors into the agent's own list."""
_END_OF_OURS = b'{"sessions":[]}'
T = TypeVar("T")


class _Setting(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of opening a session that the proxy reads. The agent checks MCP servers."""

    cwd: str
    session_id: str = ""
    additional_directories: tuple[str, ...] | None = None


class _Prompt(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    prompt: list[Any]


_settings = msgspec.json.Decoder(_Setting)
_prompts = msgspec.json.Decoder(_Prompt)
_greetings = msgspec.json.Decoder(InitializeParams)


async def initialize(connection: ProxyConnection, params: Members) -> bytes:
    """`initialize`: starts the agent, and joins its answer with our capabilities."""
    read = frames.decode_params(_greetings, Raw(join_members(params)))
    client, _ = answer_initialize(read, Reads(), connection.offer.about)
    connection.agent.greeting = greeting_for_agent(params)
    process = await connection.agent.ready()
    connection.client = client
    return join_members(greeting_for_editor(process.greeting))


# Opening and closing


async def new_session(connection: ProxyConnection, params: Members) -> Then:
    """`session/new`: the agent creates a session, and we create ours for it."""
    given = frames.decode_params(_settings, Raw(join_members(params)))
    sessions, directories = connection.sessions, check_directories(given.additional_directories)
    placed = await open.folder_project(connection, given.cwd)
    with connection.reserve(), connection.relay.opening():
        process = await connection.agent.ready()
        result = await process.call("session/new", params)
        agent_session_id = session_id_in(result, connection.agent.name)
        session = await sessions.create(
            connection.who,
            cwd=await connection.folder(given.cwd),
            additional_directories=directories,
            agent_id=connection.agent.name,
            draft=True,
            **placed,
        )
        proxied = await connection.attach(session, session.cwd, directories, ())
        proxied.setting, proxied.opened_with = params, result
        await proxied.bind(process, agent_session_id, known=None, waiting=True)
    return _creation_answer(session, result, proxied)


async def load_session(connection: ProxyConnection, params: Members) -> Then:
    """`session/load`: replay from the store, then answer. The agent's own replay is dropped: it knows at most what passed
    through it, often less, under different ids each time."""
    return await _open(connection, params, replay=True)


async def resume_session(connection: ProxyConnection, params: Members) -> Then:
    """`session/resume`: the same without the replay."""
    return await _open(connection, params, replay=False)


async def _open(connection: ProxyConnection, params: Members, *, replay: bool) -> Then:
    given = frames.decode_params(_settings, Raw(join_members(params)))
    async with connection.session_lock(given.session_id):
        _, answered = await ensure_imported(connection, given.session_id, _setting(params))
        proxied, fresh = await _attach(connection, given, _setting(params))
        try:
            found = await proxied.open_agent_session(_setting(params), answered) if fresh else None
            if replay:
                await proxied.display.replay(proxied.session, connection.peer.alone)
            elif fresh:
                await proxied.display.skip()
        except BaseException:  # cancelled, for one: then it is not open
            if fresh:
                await connection.detach(given.session_id)
            raise
        return Then(_state(proxied, found), proxied.begin_known if fresh else proxied.display.show_info)


async def _attach(
    connection: ProxyConnection, given: _Setting, setting: Members
) -> tuple[ProxiedSession, bool]:
    """The session, opened with these parameters, and whether it was reopened: one with a running turn is not, nor one whose
    session of the agent can be used as it is."""
    directories = check_directories(given.additional_directories)
    session = await connection.sessions.get(connection.who, given.session_id)
    cwd = await check_cwd(connection, session, given.cwd)
    known = connection.proxied(session.id)
    if known is not None and known.is_busy:
        if not known.is_set_up(roots_of(session, cwd, directories), ()):
            known.expect_idle()
        return known, False
    if session.additional_directories != directories:
        session = await connection.sessions.catalog.set_directories(connection.who, session.id, directories)
    if known is not None and known.goes_on(setting):
        return known, False
    with connection.reserve(session.id):
        return await connection.attach(session, cwd, directories, ()), True


async def fork_session(connection: ProxyConnection, params: Members) -> Then:
    """`session/fork`: fork ours; the agent forks its own, or gets a new session and then the conversation."""
    given = frames.decode_params(_settings, Raw(join_members(params)))
    directories = check_directories(given.additional_directories)
    meta = object_of(params, "_meta")
    at = value_of(meta.get(FORK_AT))
    if at is not None and not isinstance(at, str):
        raise InvalidInput(f"{FORK_AT} must be the id of a message")
    theirs = _fork_of_agent(meta)
    with connection.reserve(), connection.relay.opening():
        process = await connection.agent.ready()
        await ensure_imported(connection, given.session_id, _setting(params))
        source = await open.shown_session(connection, given.session_id)
        wanted = OpenSession(session_id=source.id, cwd=given.cwd)
        at = await open.entry_shown_as(connection, source.id, at or theirs)
        link = link_of(source, connection.agent.name) or await source_link(connection, source)
        forkable = link if at is None or theirs is not None else None
        agent_session_id, known, result = await _fork_in_agent(connection, process, forkable, params)
        session = await open.make_fork(connection, wanted, at)
        session = await connection.sessions.catalog.set_directories(connection.who, session.id, directories)
        proxied = await connection.attach(session, session.cwd, directories, ())
        proxied.setting, proxied.link = _setting(params), link
        agent_session = await proxied.bind(
            process, agent_session_id, known=at if known and at else known, waiting=True
        )
        agent_session.accepts_titles = False
        proxied.opened_with = result = await proxied.restore(agent_session, result)
    await proxied.display.skip()
    return _creation_answer(session, result, proxied)


async def _fork_in_agent(
    connection: ProxyConnection, process: AgentProcess, link: AgentLink | None, params: Members
) -> tuple[str, str | None, Members]:
    """The agent's session for a fork, the last entry it knows, and the agent's answer. Without a link it is a new one."""
    if link is not None and process.supports("sessionCapabilities", "fork"):
        with suppress(Refusal):
            result = await process.call("session/fork", {**params, "sessionId": raw_json(link.id)})
            agent_session_id = session_id_in(result, connection.agent.name)
            connection.relay.forget(agent_session_id)
            return agent_session_id, link.known, result
    result = await process.call("session/new", {"mcpServers": Raw(b"[]"), **_setting(params)})
    return session_id_in(result, connection.agent.name), None, result


def _fork_of_agent(meta: Members) -> str | None:
    """The message at which the agent itself is asked to fork, as some agents take it."""
    match value_of(meta.get("jetbrains.air.fork")) or value_of(object_of(meta, "jetbrains").get("air")):
        case {"messageId": str(at)} | {"fork": {"messageId": str(at)}}:
            return at
    return None


async def close_session(connection: ProxyConnection, params: Members) -> Json:
    """`session/close`."""
    await _forward_if_supported(connection, params, "session/close", "close")
    return await open.close_session(connection, _read(NamedSession, params))


# Prompts


async def prompt(connection: ProxyConnection, params: Members) -> bytes:
    """`session/prompt`: stored, answered by the agent, and its answer stored before the editor gets it."""
    given = frames.decode_params(_prompts, Raw(join_members(params)))
    proxied = await connection.ensure_open(given.session_id)
    result = await proxied.run_prompt(parts_of(given.prompt), params)
    if proxied.target != proxied.session.id:
        meta = {**object_of(result, "_meta"), CONTINUED: raw_json(proxied.target)}
        result = {**result, "_meta": Raw(join_members(meta))}
    return join_members(result)


async def set_mode(connection: ProxyConnection, params: Members) -> bytes:
    """`session/set_mode`: done by the agent, and remembered."""
    return await _choose(connection, "session/set_mode", params)


async def set_option(connection: ProxyConnection, params: Members) -> bytes:
    """`session/set_config_option`: done by the agent, and remembered."""
    return await _choose(connection, "session/set_config_option", params)


async def _choose(connection: ProxyConnection, method: str, params: Members) -> bytes:
    proxied = await _proxied_or_not(connection, params)
    if proxied is None:
        return join_members(await (await connection.agent.ready()).call(method, params))
    return join_members(await proxied.choose(method, params))


async def steer(connection: ProxyConnection, params: Members) -> bytes:
    """`_session/steering`: what the user says while the agent answers is stored where it was said."""
    proxied = await _proxied_or_not(connection, params)
    if proxied is None:
        return join_members(await (await connection.agent.ready()).call(STEERING, params))
    agent_session = await proxied.ensure_bound()
    proxied.hear(parts_of(value_of(params.get("prompt"))))
    of = {"sessionId": raw_json(agent_session.agent_session_id)}
    return join_members(await agent_session.process.call(STEERING, {**params, **of}))


async def _proxied_or_not(connection: ProxyConnection, params: Members) -> ProxiedSession | None:
    """The session; None if it is none of ours, such as a subagent's, of which only the agent knows."""
    try:
        return await connection.ensure_open(text_of(params, "sessionId") or "")
    except SessionNotFound:
        return None


async def cancel(connection: ProxyConnection, params: Members) -> None:
    """`session/cancel`: sent to the agent if the turn is this editor's, else to the process that runs it."""
    proxied = connection.proxied(text_of(params, "sessionId"))
    if proxied is None:
        return
    if proxied.is_busy:
        await proxied.cancel_prompt()
    else:
        await connection.sessions.leases.request_end(connection.who, proxied.target)


# Sessions that need not be open


async def delete_session(connection: ProxyConnection, params: Members) -> Json:
    """`session/delete`: here, and in the agent."""
    with suppress(SessionNotFound):  # so that it is not listed again, even if the agent cannot delete it
        await ensure_noted(connection, text_of(params, "sessionId") or "")
    await _forward_if_supported(connection, params, "session/delete", "delete")
    return await manage.delete_session(connection, _read(NamedSession, params))


async def set_title(connection: ProxyConnection, params: Members) -> Json:
    """`session/set_title`: the user's title, which no title of the agent replaces."""
    given = _read(SetTitle, params)
    await ensure_noted(connection, given.session_id)
    answer = await manage.set_title(connection, given)
    agent_session = connection.agent_session(text_of(params, "sessionId"))
    if agent_session is not None:
        agent_session.accepts_titles = False
    await _forward_if_supported(connection, params, "session/set_title", "title")
    return answer


async def archive_session(connection: ProxyConnection, params: NamedSession) -> Json:
    """`session/archive`."""
    await ensure_noted(connection, params.session_id)
    return await manage.archive_session(connection, params)


async def session_status(connection: ProxyConnection, params: NamedSession) -> Json:
    """`session/status`: a session that only the agent has is `saved`."""
    if not await connection.sessions.catalog.known(
        connection.who, [params.session_id]
    ) and connection.agent.own_id_of(params.session_id):
        return {"status": "saved"}
    return await manage.session_status(connection, params)


async def list_sessions(connection: ProxyConnection, params: ListSessions) -> bytes:
    """`session/list`: ours, and after them those that only the agent has."""
    cursor = params.cursor or ""
    theirs = cursor.removeprefix(THEIRS) if cursor.startswith(THEIRS) else None
    answer = _END_OF_OURS if theirs is not None else await manage.list_sessions(connection, params)
    listed = members_of(answer) or {}
    if "nextCursor" in listed or params.archived == "only" or _is_narrowed(params):
        return answer
    cwd = None if params.cwd is None else normal_cwd(params.cwd)
    rows, more = await unknown_rows(connection, cwd, theirs or None)
    result: Json = {"sessions": [*value_of(listed["sessions"]), *rows]}
    return frames.encode(result if more is None else {**result, "nextCursor": THEIRS + more})


def _is_narrowed(params: ListSessions) -> bool:
    """Whether a filter is set that the agent's list does not support."""
    return any(given is not None for given in (params.project, params.search, params.created_after))


async def _forward_if_supported(
    connection: ProxyConnection, params: Members, method: str, capability: str
) -> None:
    """Have the agent do the same with its session, if it runs and supports it. Failures are ignored."""
    process = connection.agent.running
    if process is None or not process.supports("sessionCapabilities", capability):
        return
    with suppress(HithertoError, Refusal):
        session = await connection.sessions.get(connection.who, text_of(params, "sessionId") or "")
        link = link_of(session, connection.agent.name) or await source_link(connection, session)
        if link is not None:
            await process.call(method, {**params, "sessionId": raw_json(link.id)})


# Answers


def _read(shape: type[T], params: Members) -> T:
    """The parameters as a struct of one of our methods."""
    read: T = frames.decode_params(msgspec.json.Decoder(shape), Raw(join_members(params)))
    return read


def _own_method(handle: Callable[[Any, Any], Awaitable[Any]], shape: type[Any]) -> Method[ProxyConnection]:
    """A method that does not involve the agent."""
    return Method(handle, shape)


def _setting(params: Members) -> Members:
    """The parameters of opening a session, without its id."""
    return {name: raw for name, raw in params.items() if name != "sessionId"}


def _creation_answer(session: Session, result: Members, proxied: ProxiedSession) -> Then:
    return Then(join_members({**result, "sessionId": raw_json(session.id)}), proxied.begin)


def _state(proxied: ProxiedSession, found: OpenedBy | None) -> bytes:
    """The agent's answer as the answer to the editor."""
    result = {name: raw for name, raw in proxied.current_answer().items() if name != "sessionId"}
    if found is not None:
        meta = {**object_of(result, "_meta"), FOUND: raw_json(found)}
        result["_meta"] = Raw(join_members(meta))
    return join_members(result)


REQUESTS: dict[str, Method[ProxyConnection]] = {
    "initialize": Method(initialize, Members),
    "session/new": Method(new_session, Members, whole=True),
    "session/load": Method(load_session, Members),
    "session/resume": Method(resume_session, Members),
    "session/fork": Method(fork_session, Members, whole=True),
    "session/close": Method(close_session, Members),
    "session/prompt": Method(prompt, Members, waits=True),
    "session/set_mode": Method(set_mode, Members, waits=True),
    "session/set_config_option": Method(set_option, Members, waits=True),
    STEERING: Method(steer, Members, waits=True),
    "session/delete": Method(delete_session, Members),
    "session/set_title": Method(set_title, Members),
    "session/list": _own_method(list_sessions, ListSessions),
    "session/archive": _own_method(archive_session, NamedSession),
    "session/unarchive": _own_method(manage.unarchive_session, NamedSession),
    "session/status": _own_method(session_status, NamedSession),
    "_hitherto/session/search": _own_method(extensions.search, Search),
    "_hitherto/session/batch_get": _own_method(extensions.batch_get, BatchGet),
    "_hitherto/session/list/subscribe": _own_method(extensions.subscribe, Subscribe),
    "_hitherto/session/list/unsubscribe": _own_method(extensions.unsubscribe, Unsubscribe),
}

NOTIFICATIONS: dict[str, Method[ProxyConnection]] = {"session/cancel": Method(cancel, Members)}


ADDED = ("list", "resume", "close", "delete", "fork", "archive", "title", "status")
"""Session capabilities that the editor gets whether the agent has them or not."""


def greeting_for_agent(params: Members) -> Members:
    """The editor's `initialize` for the agent: at most in our version, otherwise unchanged."""
    version = value_of(params.get("protocolVersion"))
    newer = isinstance(version, int) and version > VERSION
    return {**params, "protocolVersion": raw_json(VERSION)} if newer else params


def greeting_for_editor(greeting: Members) -> Members:
    """The agent's answer to `initialize` for the editor."""
    able = object_of(greeting, "agentCapabilities")
    sessions = object_of(able, "sessionCapabilities")
    for name in ADDED:
        if value_of(sessions.get(name)) is None:
            sessions[name] = Raw(b"{}")
    meta = {
        **object_of(able, "_meta"),
        **{name: raw_json(value) for name, value in CAPABILITIES["_meta"].items()},
    }
    able |= {
        "loadSession": Raw(b"true"),
        "sessionCapabilities": Raw(join_members(sessions)),
        "_meta": Raw(join_members(meta)),
    }
    return {**greeting, "agentCapabilities": Raw(join_members(able))}
