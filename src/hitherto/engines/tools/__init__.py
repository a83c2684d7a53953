"""The tools that act on this machine: files within the roots of a session, commands, and a plan."""

from __future__ import annotations

import asyncio

from hitherto.engine import Host
from hitherto.engines.toolbox import Tool
from hitherto.engines.tools.commands import run_command
from hitherto.engines.tools.editing import edit_file, write_file
from hitherto.engines.tools.listing import list_files
from hitherto.engines.tools.planning import update_plan
from hitherto.engines.tools.reading import read_file
from hitherto.engines.tools.roots import Roots
from hitherto.engines.tools.searching import search_files


def local_tools(roots: tuple[str, ...], host: Host | None) -> tuple[Tool, ...]:
    """The tools of a session. Without roots there is nothing to act on, and only the plan is left.

    What is read, written and run goes through `host` if one is given, such as an editor, after the path was found to
    be within the roots; otherwise this machine is the host.
    """
    # It stands on the modules of this package.
    from hitherto.engines.local import LocalHost

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
