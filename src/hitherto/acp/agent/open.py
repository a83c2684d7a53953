"""Methods that open and close sessions."""

from __future__ import annotations

from hitherto.acp.agent.connection import Door, checked_cwd, checked_directories, roots_of
from hitherto.acp.agent.session import Attached
from hitherto.acp.protocol.mcp_servers import servers_of
from hitherto.acp.protocol.options import Chosen, modes, options
from hitherto.acp.protocol.params import NamedSession, NewSession, OpenSession
from hitherto.acp.protocol.session_rows import NOWHERE
from hitherto.errors import EntryNotFound, InvalidInput
from hitherto.model import LOCAL, Json, Session
from hitherto.rpc.errors import INVALID_PARAMS, Failure
from hitherto.rpc.peer import Then
from hitherto.service.catalog.projects import Placed, placed
from hitherto.values.filters import normal_cwd

FORK_AT = "hitherto/messageId"


async def new_session(door: Door, params: NewSession) -> Then:
    """`session/new`: stored at once, since clients start another process before the first prompt."""
    directories, servers = checked_directories(params.additional_directories), servers_of(params.mcp_servers)
    with door.room():
        session = await door.sessions.create(
            door.who, cwd=params.cwd, additional_directories=directories, **await placed_in(door, params.cwd)
        )
        attached = await door.attach(session, session.cwd, directories, servers)
    return Then({"sessionId": session.id, **state(door, attached.chosen)}, attached.begin)


async def load_session(door: Door, params: OpenSession) -> Then:
    """`session/load`: the whole conversation, then the answer."""
    async with door.gate(params.session_id):
        attached, fresh = await _opened(door, params)
        try:
            await attached.showing.replay(attached.session, door.peer.alone)
        except BaseException:  # cancelled, for one: then it is not open
            if fresh:
                await door.detach(params.session_id)
            raise
        return _answer(door, attached, fresh)


async def resume_session(door: Door, params: OpenSession) -> Then:
    """`session/resume`: open without telling what was said."""
    async with door.gate(params.session_id):
        attached, fresh = await _opened(door, params)
        if fresh:
            await attached.showing.skip()
        return _answer(door, attached, fresh)


async def fork_session(door: Door, params: OpenSession) -> Then:
    """`session/fork`: a new session that shares this one's history, all of it or up to a message."""
    directories, servers = checked_directories(params.additional_directories), servers_of(params.mcp_servers)
    at = params.meta.get(FORK_AT)
    if at is not None and not isinstance(at, str):
        raise InvalidInput(f"{FORK_AT} is the id of a message")
    with door.room():
        session = await forked(door, params, at)
        session = await door.sessions.catalog.set_directories(door.who, session.id, directories)
        attached = await door.attach(session, session.cwd, directories, servers)
    await attached.showing.skip()
    return Then({"sessionId": session.id, **state(door, attached.chosen)}, attached.begin)


async def forked(door: Door, params: OpenSession, at: str | None) -> Session:
    """The fork. What is listed as being in `/` because it has no folder gets none from that either."""
    source = await door.sessions.get(door.who, params.session_id)
    nowhere = source.cwd is None and normal_cwd(params.cwd) == NOWHERE
    try:
        return await door.sessions.fork(door.who, source.id, at=at, cwd=None if nowhere else params.cwd)
    except EntryNotFound as error:
        wrong = {"code": error.code, "sessionId": source.id, "messageId": at}
        raise Failure(INVALID_PARAMS, f"{FORK_AT}: {error.message}", wrong) from error


async def close_session(door: Door, params: NamedSession) -> Json:
    """`session/close`: end what runs and let go; the session stays in the list."""
    async with door.gate(params.session_id):
        if params.session_id not in door.attached:
            await door.sessions.get(door.who, params.session_id)
        await door.detach(params.session_id)
    return {}


async def placed_in(door: Door, cwd: str) -> Placed:
    """The project of a folder that the person at this machine names; into those of others nobody looks."""
    here = door.offer.local and door.who == LOCAL
    return await placed(door.sessions.projects, cwd if here else None)


def state(door: Door, chosen: Chosen) -> Json:
    """The modes and options of a session, as every method that opens one answers."""
    choosable = door.offer.choosable
    return {"modes": modes(chosen, choosable), "configOptions": options(chosen, choosable)}


async def _opened(door: Door, params: OpenSession) -> tuple[Attached, bool]:
    """The session, opened as the client says, and whether it is opened anew: one with a running turn is left alone.

    The folders that the client names are those that the session has from then on.
    """
    directories, servers = checked_directories(params.additional_directories), servers_of(params.mcp_servers)
    session: Session = await door.sessions.get(door.who, params.session_id)
    cwd = checked_cwd(session, params.cwd)
    known = door.attached.get(session.id)
    if known is not None and known.running:
        if not known.is_set_up(roots_of(session, cwd, directories), servers):
            known.expect_idle()
        return known, False
    if session.additional_directories != directories:
        session = await door.sessions.catalog.set_directories(door.who, session.id, directories)
    with door.room(session.id):
        return await door.attach(session, cwd, directories, servers), True


def _answer(door: Door, attached: Attached, fresh: bool) -> Then:
    return Then(state(door, attached.chosen), attached.begin if fresh else _nothing)


async def _nothing() -> None:
    pass
