"""`hitherto restore-backup`."""

from __future__ import annotations

import click

from hitherto import wiring
from hitherto.cli.command import JSON_OPTION, STORE_OPTION, examples_text
from hitherto.cli.terminal.output import Output, progress
from hitherto.settings import store_url

EXAMPLES = (
    "hitherto restore-backup ~/backups/hitherto.db",
    "hitherto restore-backup ~/backups/hitherto.db --store ~/sessions.db",
)


@click.command(epilog=examples_text(EXAMPLES))
@click.argument("backup", type=click.Path())
def run(backup: str, store: str | None, as_json: bool) -> None:
    """Put a backup in place of the store. The replaced store is kept beside it, under a new name.

    BACKUP is a file that `hitherto backup` wrote; it stays as it is. Nothing changes if it is damaged, or while another
    process has the store open.
    """
    out = Output(as_json=as_json)
    with progress("Restoring", None):
        done = wiring.restore_backup(store_url(store), backup)
    if out.json:
        out.document({"store": done.store, "backup": done.backup, "replaced": done.replaced})
        return
    out.line(f"Restored {done.store} from {done.backup}")
    if done.replaced is not None:
        out.line(f"The replaced store is {done.replaced}")


run.params += [JSON_OPTION, STORE_OPTION]
