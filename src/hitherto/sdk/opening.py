"""All that an open session stands on: its store, the session in it, and what answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from hitherto import wiring
from hitherto.engine import Notice
from hitherto.model import LOCAL, Session
from hitherto.sdk.messages import SDKSystemMessage
from hitherto.sdk.options import Options
from hitherto.sdk.resuming import Begun
from hitherto.service import Sessions
from hitherto.service.catalogue import folders_of
from hitherto.service.turns import OpenSession

Begin = Callable[[Sessions], Awaitable[Begun]]
"""Makes or finds the session."""


class Open(NamedTuple):
    """An open session; `init` is what each of its turns begins with."""

    turns: OpenSession
    init: SDKSystemMessage


@asynccontextmanager
async def opening(
    begin: Begin, options: Options, *, report: Callable[[Notice], None], improve_titles: bool
) -> AsyncIterator[Open]:
    """Open everything, and close it with the block."""
    async with wiring.open(options.store) as sessions:
        begun = await begin(sessions)
        for told in begun.notices:
            report(told)
        async with sessions.opened(
            LOCAL,
            begun.session.id,
            options.engine or wiring.engine(options.model),
            mcp_servers=options.mcp_servers,
            improve_titles=improve_titles,
            report=report,
        ) as turns:
            yield Open(turns, _init(begun, options))


def _init(begun: Begun, options: Options) -> SDKSystemMessage:
    return SDKSystemMessage(
        session_id=begun.session.id,
        model=options.model,
        cwd=begun.session.cwd,
        tools=_tools(begun.session) if options.engine is None else (),
        mcp_servers=tuple({"name": each.name, "type": _kind(each)} for each in options.mcp_servers),
        permission_mode=options.permission_mode,
        forked_from=begun.resumed_from,
    )


def _tools(session: Session) -> tuple[str, ...]:
    """The tools that a model has on this machine; those of servers are known when these are ready."""
    from hitherto.engines.tools import local_tools  # here: another engine has its own

    return tuple(tool.name for tool in local_tools(folders_of(session), None))


def _kind(server: msgspec.Struct) -> str:
    return str(server.__struct_config__.tag)
