"""The tools of a session that act on this machine."""

from __future__ import annotations

import asyncio

from hitherto.engine import Host
from hitherto.engines.tool_calls import Tool
from hitherto.engines.tools.edit_file import edit_file, write_file
from hitherto.engines.tools.list_files import list_files
from hitherto.engines.tools.local_host import LocalHost
from hitherto.engines.tools.read_file import read_file
from hitherto.engines.tools.roots import Roots
from hitherto.engines.tools.run_command import run_command
from hitherto.engines.tools.search_files import search_files
from hitherto.engines.tools.update_plan import update_plan


def local_tools(roots: tuple[str, ...], host: Host | None) -> tuple[Tool, ...]:
    """The tools of a session. Without roots there is nothing to act on, and only the plan is left.

    Reading, writing and running go through `host` if one is given, such as an editor, after the path was found to be
    within the roots; otherwise this machine is the host.
    """
    if not roots:
        return (update_plan(),)
    within = Roots(roots)
    acting = host or LocalHost(within)
    turn = asyncio.Lock()
    return (
        read_file(within, acting),
        write_file(within, acting, turn),
        edit_file(within, acting, turn),
        list_files(within),
        search_files(within),
        run_command(within, acting),
        update_plan(),
    )
