"""`hitherto move`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.values import folder
from hitherto.cli.terminal.entries import tell
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto move 019a8c0e ~/projects/parser", "hitherto move --folder ~/old/parser ~/projects/parser")
@session_argument
@click.argument("target", metavar="FOLDER")
@click.option("--folder", "whole", is_flag=True, help="SESSION is a folder: all its sessions move along.")
async def run(sessions: Sessions, out: Output, *, session: str, target: str, whole: bool) -> None:
    """Say that a session's folder is now elsewhere; with --folder OLD NEW, that of all sessions there.

    No file is touched.
    """
    new = folder(target)
    if not whole:
        tell(out, "Moved", await sessions.move(LOCAL, await sessions.resolve(LOCAL, session), new))
        return
    moved = await sessions.catalog.move_folder(LOCAL, folder(session), new)
    if out.json:
        out.document({"moved": moved, "from": folder(session), "to": new})
    else:
        out.line(f"Moved {formats.counted(moved, 'session')} to {new}")
