"""`hitherto admin`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, examples_text
from hitherto.cli.terminal.output import Output
from hitherto.service import Sessions


@command(
    "hitherto admin distribute --store postgresql://hitherto@coordinator.example.org/hitherto", opens="make"
)
async def distribute(sessions: Sessions, out: Output) -> None:
    """Distribute a new, empty store over the nodes of Citus, by owner.

    All sessions of an owner are on one node. Run this once, before there is data; the database needs the extension Citus.
    """
    tables = await sessions.admin.distribute()
    if out.json:
        out.document({"distributed": tables})
    elif tables:
        out.note(f"{len(tables)} tables are distributed by owner.")
    else:
        out.note("The store is distributed already.")


run = click.Group(
    "admin",
    {"distribute": distribute},
    help="Set up the database of a store.",
    no_args_is_help=False,
    epilog=examples_text(
        ("hitherto admin distribute --store postgresql://hitherto@coordinator.example.org/hitherto",)
    ),
)
