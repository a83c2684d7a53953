"""`hitherto new`."""

from __future__ import annotations

import os

import click

from hitherto.cli.command import command
from hitherto.cli.options.values import folder
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.service.catalog.projects import project_of_folder


@command("hitherto new --title 'Fix the parser' --tag work", "id=$(hitherto new --no-cwd)", opens="make")
@click.option("--cwd", metavar="FOLDER", help="The folder of the session. Default: the current folder.")
@click.option("--no-cwd", is_flag=True, help="Create the session without a folder.")
@click.option("--title", help="The title. Default: made from the first prompt.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Add this tag. Can be repeated.")
@click.option("--agent", help="The name of the agent.")
@click.option("--channel", help="The name of the channel.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    cwd: str | None,
    no_cwd: bool,
    title: str | None,
    tags: tuple[str, ...],
    agent: str | None,
    channel: str | None,
) -> None:
    """Create an empty session and print its id."""
    if no_cwd and cwd is not None:
        raise click.UsageError("use either --cwd or --no-cwd, not both")
    where = None if no_cwd else os.getcwd() if cwd is None else folder(cwd)
    place = await project_of_folder(sessions.projects, where)
    made = await sessions.create(
        LOCAL, cwd=where, title=title, tags=tags, agent_id=agent, channel=channel, **place
    )
    if out.json:
        out.document(made)
    else:
        out.line(made.id)
