"""`hitherto restore-backup`."""

from __future__ import annotations

import click

from hitherto import composition
from hitherto.cli.command import JSON_OPTION, STORE_OPTION, examples_text
from hitherto.cli.terminal.output import Output, progress
from hitherto.presentation import formats
from hitherto.settings import store_url

EXAMPLES = (
    "hitherto restore-backup ~/backups/hitherto.db",
    "hitherto restore-backup ~/backups/hitherto.db --store ~/sessions.db",
)


@click.command(epilog=examples_text(EXAMPLES))
@click.argument("backup", type=click.Path())
@click.option(
    "--include-deleted", is_flag=True, help="Bring back sessions that you deleted after the backup."
)
def run(backup: str, include_deleted: bool, store: str | None, as_json: bool) -> None:
    """Put a backup in place of the store. The replaced store is kept beside it, under a new name.

    BACKUP is a file that `hitherto backup` wrote; it stays as it is. Nothing changes if it is damaged, or while another
    process has the store open.

    Sessions that you deleted after the backup are deleted again, unless you use --include-deleted, and messages that you erased
    are erased again. The replaced store still has them, and so does the backup.
    """
    out = Output(as_json=as_json)
    with progress("Restoring", None):
        done = composition.restore_backup(store_url(store), backup, include_deleted=include_deleted)
    lost = done.lost
    if out.json:
        out.document({"store": done.store, "backup": done.backup, "replaced": done.replaced, "lost": lost})
        return
    out.line(f"Restored {done.store} from {done.backup}")
    if done.replaced is None:
        return
    out.line(f"The replaced store is {done.replaced}")
    if lost is None:
        out.note(
            "It cannot be read, so what you erased or deleted after the backup is not known and may be back."
        )
        return
    if lost.deleted or lost.erased:
        sessions, messages = formats.counted(lost.deleted, "session"), formats.counted(lost.erased, "message")
        out.line(f"Deleted {sessions} and erased {messages} again, as in the replaced store")
        out.note(f"Not reached: the replaced store {done.replaced}; the backup {done.backup}")
    for session_id in lost.unread:
        out.note(f"{session_id} is damaged in the backup: what was erased or deleted in it is still there")


run.params += [JSON_OPTION, STORE_OPTION]
