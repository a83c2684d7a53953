"""`hitherto backup`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal.files import make_private, unused_path
from hitherto.cli.terminal.output import Output, progress
from hitherto.service import Sessions


@command("hitherto backup ~/backups/hitherto.db", "hitherto list --store ~/backups/hitherto.db", opens="read")
@click.argument("target")
async def run(sessions: Sessions, out: Output, *, target: str) -> None:
    """Copy the whole store to a new file, even while it is in use.

    TARGET must not exist yet. The copy is a complete store: open it with `--store TARGET`.
    """
    path = unused_path(target)
    with progress("Copying", None):
        await sessions.admin.backup(path)
    size = make_private(path)
    if out.json:
        out.document({"file": path, "bytes": size})
    else:
        out.line(f"Copied to {path}")
