"""`hitherto delete`."""

from __future__ import annotations

from hitherto.cli.command import command, sessions_argument
from hitherto.cli.options.beyond import clear_notes, unreached
from hitherto.cli.options.session_ids import full_ids
from hitherto.cli.terminal.input import confirm, yes_option
from hitherto.cli.terminal.output import Output, progress
from hitherto.model import LOCAL, Session
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto delete 019a8c0e", "hitherto delete --yes 019a8c0e 019a8c11")
@sessions_argument
@yes_option
async def run(sessions: Sessions, out: Output, *, session_names: tuple[str, ...], yes: bool) -> None:
    """Permanently delete sessions. Their forks stay complete.

    Asks for confirmation. Without a terminal, --yes is required.
    """
    doomed = [
        await sessions.get(LOCAL, each) for each in await full_ids(sessions, session_names, words=False)
    ]
    await confirm(_question(doomed), yes=yes)
    with progress("Deleting", len(doomed), hidden=len(doomed) == 1) as advance:
        for session in doomed:
            messages = await sessions.delete(LOCAL, session.id)
            advance(1)
            if out.json:
                out.document({"deleted": session.id, "messages": messages})
            else:
                out.line(f"Deleted {session.id}: {formats.counted(messages, 'message')}")
    await clear_notes(sessions)
    out.note(f"Not reached: {'; '.join(await unreached(sessions, doomed))}")


def _question(doomed: list[Session]) -> str:
    messages = formats.counted(sum(session.message_count for session in doomed), "message")
    if len(doomed) == 1:
        return f"Delete {formats.title(doomed[0])!r} ({messages}) permanently?"
    return f"Delete {len(doomed)} sessions ({messages}) permanently?"
