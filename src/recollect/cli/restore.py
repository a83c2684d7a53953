"""`recollect restore`."""

from __future__ import annotations

from pathlib import Path

import click

from recollect.cli.changing import tell
from recollect.cli.command import command, session_argument
from recollect.cli.output import Output
from recollect.errors import InvalidInput
from recollect.model import LOCAL, Session
from recollect.service import Sessions
from recollect.settings import RAW_BUDGET
from recollect.sources import sources_here
from recollect.sources.paths import shown
from recollect.sources.restoring import original, write_back


@command(
    "recollect restore 019a8c0e CHECKPOINT",
    "recollect restore 019a8c0e CHECKPOINT --since",
    "recollect restore claude:550e",
)
@session_argument
@click.argument("checkpoint", required=False)
@click.option("--since", is_flag=True, help="Followed by all that was said after it.")
async def run(sessions: Sessions, out: Output, *, session: str, checkpoint: str | None, since: bool) -> None:
    """Go back to a checkpoint, exactly; the present state becomes a checkpoint first.

    Without a checkpoint: write the transcript of a session that was read from another agent, and whose file is gone,
    back into that agent's folder, byte for byte as it was read. A file that is there is never touched.
    """
    session_id = await sessions.resolve(LOCAL, session)
    if checkpoint is not None:
        tell(out, "Restored", await sessions.restore(LOCAL, session_id, checkpoint, since=since))
        return
    path = _place(await sessions.get(LOCAL, session_id))
    data = await original(sessions, LOCAL, session_id)
    if not data:
        raise InvalidInput(
            f"the file of {session_id!r} is not kept here: of files, the newest are kept as they were, as many as "
            f"{RAW_BUDGET} has room for; `recollect continue` writes a new one"
        )
    write_back(path, data)
    if out.json:
        out.document({"session": session_id, "path": shown(path), "bytes": len(data)})
    else:
        out.line(shown(path))


def _place(session: Session) -> Path:
    """Where the file was that a session was read from."""
    if session.source is None:
        raise InvalidInput("name a checkpoint: this session has no file of another agent to write back")
    path = next((path for source in sources_here() if (path := source.home_of(session)) is not None), None)
    if path is None:
        raise InvalidInput(
            f"{session.id!r} was read from no file in a folder of {session.source} on this machine"
        )
    return path
