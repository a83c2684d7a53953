"""`hitherto doctor`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.output import Output, progress
from hitherto.service import Sessions


@command("hitherto doctor", "hitherto doctor --no-repair --json", opens="read")
@click.option("--no-repair", is_flag=True, help="Only check; change nothing.")
async def run(sessions: Sessions, out: Output, *, no_repair: bool) -> int:
    """Check the store, rebuild derived data such as the search index, and remove unreachable data.

    Prints what was checked, what was repaired and which problems remain. The exit code is 5 if a problem remains that
    Hitherto cannot repair.
    """
    with progress("Checking", None):
        health = await sessions.admin.check(repair=not no_repair)
    if out.json:
        out.document(health)
    else:
        for kind, found in (
            ("checked", health.checked),
            ("repaired", health.repaired),
            ("problem", health.problems),
        ):
            for each in found:
                out.row(kind, each)
    return exit_codes.STORE if health.problems else exit_codes.OK
