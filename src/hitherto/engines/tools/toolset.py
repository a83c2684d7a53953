"""The tools of a session: those that act on this machine, and the plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hitherto.engine import ClientHost, Host
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, make_tool, text_output
from hitherto.engines.tools.edit_file import edit_file, write_file
from hitherto.engines.tools.limits import PLAN_STEPS, STEP_CHARS
from hitherto.engines.tools.list_files import list_files
from hitherto.engines.tools.local_host import LocalHost
from hitherto.engines.tools.read_file import read_file
from hitherto.engines.tools.roots import ClientRoots, Roots
from hitherto.engines.tools.run_command import run_command
from hitherto.engines.tools.search_files import search_files
from hitherto.model import Plan


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


def client_tools(roots: tuple[str, ...], host: Host | None) -> tuple[Tool, ...]:
    """The tools of a client who is not on this machine: they act on the client's own, as far as it offers that, and nothing
    of this one is touched."""
    if not roots or not isinstance(host, ClientHost):
        return (update_plan(),)
    within, turn = ClientRoots(roots), asyncio.Lock()
    offered: tuple[tuple[bool, Callable[[], Tool]], ...] = (
        (host.reads_files, lambda: read_file(within, host)),
        (host.writes_files, lambda: write_file(within, host, turn)),
        (host.reads_files and host.writes_files, lambda: edit_file(within, host, turn)),
        (host.runs_commands, lambda: run_command(within, host)),
        (True, update_plan),
    )
    return tuple(make() for is_offered, make in offered if is_offered)


class Step(Input, frozen=True):
    """A step of a plan, with the words of the Agent Client Protocol."""

    content: Annotated[str, Meta(min_length=1, max_length=STEP_CHARS)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class UpdatePlan(Input, frozen=True):
    """Show the user your plan for work of several steps, and keep it up to date: give all steps each time."""

    steps: Annotated[tuple[Step, ...], Meta(max_length=PLAN_STEPS)]


def update_plan() -> Tool:
    """Touches nothing; the plan stands beside the result."""

    async def run(args: UpdatePlan, _: Show) -> ToolOutput:
        plan = Plan(steps=tuple(msgspec.to_builtins(step) for step in args.steps))
        return text_output("The plan is shown.", extra=(plan,))

    return make_tool(UpdatePlan, run, name="update_plan", kind="think", title=lambda _: "Update the plan")
