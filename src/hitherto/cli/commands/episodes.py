"""`hitherto episodes`."""

from __future__ import annotations

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto episodes 019a8c0e", opens="read")
@session_argument
async def run(sessions: Sessions, out: Output, *, session: str) -> None:
    """List the episodes of a session, oldest first: what was said from one reset to the next.

    The last one is the present one. `hitherto show` shows them all, `hitherto fork --checkpoint` branches from
    the end of one. In a pipe, each line has these tab-separated fields: number, beginning, end, reason of the end, number of
    messages, checkpoint, first prompt.
    """
    found = await sessions.episodes.known(LOCAL, await named_session(sessions, session))
    if out.json:
        out.document({"episodes": found})
        return
    time = formats.local if out.terminal else formats.utc
    rows = (
        (
            str(each.number),
            time(each.began_at),
            "" if each.ended_at is None else time(each.ended_at),
            each.reason or "",
            str(each.message_count),
            each.checkpoint or "",
            each.text,
        )
        for each in found
    )
    if out.terminal:
        out.table(("NUMBER", "BEGAN", "ENDED", "REASON", "MESSAGES", "CHECKPOINT", "FIRST PROMPT"), rows)
        return
    for row in rows:
        out.row(*row)
