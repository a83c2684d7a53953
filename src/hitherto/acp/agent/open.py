"""Methods that open and close sessions."""

from __future__ import annotations

from hitherto.acp.agent.connection import Connection, check_cwd, check_directories, roots_of
from hitherto.acp.agent.display import PAGE, PAGE_BYTES
from hitherto.acp.agent.session import AttachedSession
from hitherto.acp.protocol.entry_bytes import read_stored, value_of
from hitherto.acp.protocol.kept_updates import is_answer_to, is_shown_as
from hitherto.acp.protocol.mcp_servers import servers_of
from hitherto.acp.protocol.options import ChosenOptions, instructed, modes, options
from hitherto.acp.protocol.params import NamedSession, NewSession, OpenSession, SystemPrompt
from hitherto.acp.protocol.session_rows import NOWHERE
from hitherto.errors import EntryNotFound, InvalidInput
from hitherto.model import Json, Session
from hitherto.rpc.errors import INVALID_PARAMS, Failure
from hitherto.rpc.peer import Then
from hitherto.service.catalog.projects import ProjectFields, project_of_folder
from hitherto.values.filters import normal_cwd

FORK_AT = "hitherto/messageId"


async def new_session(connection: Connection, params: NewSession) -> Then:
    """`session/new`: stored at once, since clients start another process before the first prompt; listed when something is
    said in it."""
    directories, servers = check_directories(params.additional_directories), servers_of(params.mcp_servers)
    check_instructions(params.system_prompt)
    with connection.reserve():
        session = await connection.sessions.create(
            connection.who,
            cwd=await connection.folder(params.cwd),
            additional_directories=directories,
            draft=True,
            **await folder_project(connection, params.cwd),
        )
        attached = await connection.attach(session, normal_cwd(params.cwd), directories, servers)
        await attached.display.instruct(params.system_prompt)
    return Then({"sessionId": session.id, **session_state(connection, attached.chosen)}, attached.begin)


async def load_session(connection: Connection, params: OpenSession) -> Then:
    """`session/load`: the whole conversation, then the answer, when the tool servers are ready."""
    async with connection.session_lock(params.session_id):
        attached, fresh = await _open_session(connection, params)
        try:
            await attached.display.replay(attached.session, connection.peer.alone)
            await attached.servers_started()
        except BaseException:  # cancelled, for one: then it is not open
            if fresh:
                await connection.detach(params.session_id)
            raise
        return _answer(connection, attached, fresh)


async def resume_session(connection: Connection, params: OpenSession) -> Then:
    """`session/resume`: open without a replay."""
    async with connection.session_lock(params.session_id):
        attached, fresh = await _open_session(connection, params)
        try:
            if fresh:
                await attached.display.skip()
            await attached.servers_started()
        except BaseException:
            if fresh:
                await connection.detach(params.session_id)
            raise
        return _answer(connection, attached, fresh)


async def fork_session(connection: Connection, params: OpenSession) -> Then:
    """`session/fork`: a new session that shares this one's history, all of it or up to a message."""
    directories, servers = check_directories(params.additional_directories), servers_of(params.mcp_servers)
    check_instructions(params.system_prompt)
    at = params.meta.get(FORK_AT)
    if at is not None and not isinstance(at, str):
        raise InvalidInput(f"{FORK_AT} must be the id of a message")
    with connection.reserve():
        session = await make_fork(connection, params, at)
        session = await connection.sessions.catalog.set_directories(connection.who, session.id, directories)
        attached = await connection.attach(session, session.cwd, directories, servers)
        await attached.display.instruct(params.system_prompt)
    await attached.display.skip()
    return Then({"sessionId": session.id, **session_state(connection, attached.chosen)}, attached.begin)


async def make_fork(connection: Connection, params: OpenSession, at: str | None) -> Session:
    """Fork a session. A session without a folder, listed with `/`, stays without one."""
    source = await shown_session(connection, params.session_id)
    nowhere = source.cwd is None and normal_cwd(params.cwd) == NOWHERE
    at = await entry_shown_as(connection, source.id, at)
    try:
        return await connection.sessions.fork(
            connection.who, source.id, at=at, cwd=None if nowhere else await connection.folder(params.cwd)
        )
    except EntryNotFound as error:
        wrong = {"code": error.code, "sessionId": source.id, "messageId": at}
        raise Failure(INVALID_PARAMS, f"{FORK_AT}: {error.message}", wrong) from error


async def shown_session(connection: Connection, session_id: str) -> Session:
    """The session that clients see under this id: itself, or the one that continues it here."""
    continued = await connection.sessions.turns.continued(connection.who, session_id)
    return continued or await connection.sessions.get(connection.who, session_id)


async def entry_shown_as(connection: Connection, session_id: str, shown: str | None) -> str | None:
    """The entry that clients know by this id, of a message or a tool call: its own, or the one that another agent gave it. The
    last, if it is part of several. An id that is unknown comes back as it is."""
    if shown is None:
        return None
    before, prompt = None, False
    while True:
        page = await connection.sessions.history(
            connection.who,
            session_id,
            view="conversation",
            last=before is None,
            before=before,
            limit=PAGE,
            max_bytes=PAGE_BYTES,
        )
        for payload in reversed(page.raw):
            prompt = prompt or is_answer_to(payload, shown)
            if is_shown_as(payload, shown) or (prompt and read_stored(payload).role == "user"):
                return str(value_of(read_stored(payload).id))
        if page.previous is None:
            return shown
        before = page.previous


async def close_session(connection: Connection, params: NamedSession) -> Json:
    """`session/close`: end the running turn and close; the session stays in the list."""
    async with connection.session_lock(params.session_id):
        if params.session_id not in connection.attached:
            await connection.sessions.get(connection.who, params.session_id)
        await connection.detach(params.session_id)
    return {}


async def folder_project(connection: Connection, cwd: str) -> ProjectFields:
    """The project of a folder, for a user of this machine only: folders named by remote callers are never read."""
    return await project_of_folder(connection.sessions.projects, cwd if connection.is_here else None)


def session_state(connection: Connection, chosen: ChosenOptions) -> Json:
    """The modes and options of a session, as every method that opens one answers."""
    available_options = connection.offer.available_options
    return {"modes": modes(chosen, available_options), "configOptions": options(chosen, available_options)}


async def _open_session(connection: Connection, params: OpenSession) -> tuple[AttachedSession, bool]:
    """The session, opened as the client says, and whether it is opened anew: one with a running turn is left alone.

    The folders that the client names are those that the session has from then on.
    """
    directories, servers = check_directories(params.additional_directories), servers_of(params.mcp_servers)
    check_instructions(params.system_prompt)
    session: Session = await connection.sessions.get(connection.who, params.session_id)
    cwd = await check_cwd(connection, session, params.cwd)
    known = connection.attached.get(session.id)
    if known is not None and known.running:
        if not known.is_set_up(roots_of(session, cwd, directories), servers):
            known.expect_idle()
        return known, False
    if session.additional_directories != directories:
        session = await connection.sessions.catalog.set_directories(connection.who, session.id, directories)
    with connection.reserve(session.id):
        attached = await connection.attach(session, cwd, directories, servers)
    await attached.display.instruct(params.system_prompt)
    return attached, True


def check_instructions(given: SystemPrompt | None) -> None:
    """Raise `InvalidInput` for instructions that cannot be used, before anything is made or opened."""
    if given is not None:
        instructed(ChosenOptions(), given)


def _answer(connection: Connection, attached: AttachedSession, fresh: bool) -> Then:
    after = attached.begin_known if fresh else attached.display.show_info
    return Then(session_state(connection, attached.chosen), after)
