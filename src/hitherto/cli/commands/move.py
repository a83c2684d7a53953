"""`hitherto move`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.options.values import folder
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto move 019a8c0e ~/projects/parser", "hitherto move --folder ~/old/parser ~/projects/parser")
@session_argument
@click.argument("target", metavar="FOLDER")
@click.option(
    "--folder",
    "whole",
    is_flag=True,
    help="Move all sessions of a folder: SESSION is the old folder, FOLDER the new one.",
)
async def run(sessions: Sessions, out: Output, *, session: str, target: str, whole: bool) -> None:
    """Update the folder of a session after you moved it on disk; with --folder OLD NEW, of all sessions in it.

    This changes only what Hitherto stores. It moves no files.
    """
    new = folder(target)
    if not whole:
        report_change(out, "Moved", await sessions.move(LOCAL, await named_session(sessions, session), new))
        return
    # A server is not told that the old name leads to the new one: its folders are not those of this machine.
    moved = await sessions.catalog.move_folder(LOCAL, folder(session), new, is_gone=sessions.is_here)
    if out.json:
        out.document({"moved": moved, "from": folder(session), "to": new})
    else:
        out.line(f"Moved {formats.counted(moved, 'session')} to {new}")
