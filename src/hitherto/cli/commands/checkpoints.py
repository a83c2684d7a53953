"""`hitherto checkpoints`."""

from __future__ import annotations

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto checkpoints 019a8c0e", opens="read")
@session_argument
async def run(sessions: Sessions, out: Output, *, session: str) -> None:
    """List the checkpoints of a session, oldest first.

    A checkpoint is an earlier state that `hitherto restore` can bring back and `hitherto fork --checkpoint` can branch
    from. In a pipe, each line has these tab-separated fields: id, time, reason, number of messages, tokens.
    """
    found = await sessions.checkpoints(LOCAL, await named_session(sessions, session))
    if out.json:
        out.document({"checkpoints": found})
        return
    if not out.terminal:
        for each in found:
            out.row(each.id, formats.utc(each.at), each.reason, each.message_count, each.token_count)
        return
    if not found:
        out.note("This session has no checkpoints.")
        return
    rows = (
        (each.id, formats.local(each.at), each.reason, str(each.message_count), str(each.token_count or ""))
        for each in found
    )
    out.table(("ID", "CREATED", "REASON", "MESSAGES", "TOKENS"), rows)
