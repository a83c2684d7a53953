"""`hitherto prune`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.options.values import duration, size
from hitherto.cli.terminal.output import Output, progress
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Policy, PrunedSession, Sessions


@command(
    "hitherto prune --older-than 90d",
    "hitherto prune --keep 1000 --apply",
    "hitherto prune --max-size 2GB --agent coder --delete --apply",
)
@click.option(
    "--older-than",
    metavar="AGE",
    callback=duration,
    help="Select sessions that were not active for this long: 90d, 4w.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    metavar="N",
    help="Select all but the N most recently active sessions.",
)
@click.option(
    "--max-size",
    metavar="SIZE",
    callback=size,
    help="Select the oldest sessions beyond this total size: 500MB, 2GB.",
)
@click.option("--agent", help="Consider only sessions with this agent.")
@click.option("--delete", is_flag=True, help="Delete permanently instead of archiving.")
@click.option(
    "--apply", is_flag=True, help="Carry it out. Without this option, only show what would be done."
)
async def run(
    sessions: Sessions,
    out: Output,
    *,
    older_than: int | None,
    keep: int | None,
    max_size: int | None,
    agent: str | None,
    delete: bool,
    apply: bool,
) -> None:
    """Archive or delete old sessions by age, count or size. A session is selected if any of these options applies.

    Pinned, leased and recently read sessions are never selected. In a pipe, each line has these tab-separated fields: id,
    time of the last activity, bytes, reason, title.
    """
    policy = Policy(
        older_than_ms=older_than, keep_newest=keep, keep_bytes=max_size, agent_id=agent, delete=delete
    )
    with progress("Pruning", None, hidden=not apply) as _:
        found = await sessions.admin.prune(LOCAL, policy, dry_run=not apply)
    if out.json:
        doomed = [{"id": each.session.id, "reason": each.reason, "session": each.session} for each in found]
        out.document({"applied": apply, "action": "delete" if delete else "archive", "sessions": doomed})
        return
    await _print(sessions, out, found)
    out.note(_summary(len(found), delete=delete, apply=apply))


async def _print(sessions: Sessions, out: Output, found: list[PrunedSession]) -> None:
    if not out.terminal:
        for each in found:
            session = each.session
            out.row(session.id, formats.utc(session.updated_at), session.bytes, each.reason, session.title)
        return
    if not found:
        return
    short = await short_ids(sessions, (each.session.id for each in found))
    rows = (
        (
            short[each.session.id],
            formats.local(each.session.updated_at),
            formats.size(each.session.bytes),
            each.reason,
            formats.title(each.session),
        )
        for each in found
    )
    out.table(("ID", "ACTIVE", "SIZE", "REASON", "TITLE"), rows)


def _summary(count: int, *, delete: bool, apply: bool) -> str:
    number = formats.counted(count, "session")
    if apply:
        return f"{number} {'deleted' if delete else 'archived'}."
    return f"{number} would be {'deleted' if delete else 'archived'}. Add --apply to do it."
