"""`hitherto restore`."""

from __future__ import annotations

from pathlib import Path

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.terminal.entries import tell
from hitherto.cli.terminal.output import Output
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.settings import RAW_BUDGET
from hitherto.sources import local_sources
from hitherto.sources.handoff.restore import original, write_back
from hitherto.sources.shared.files import path_text


@command(
    "hitherto restore 019a8c0e CHECKPOINT",
    "hitherto restore 019a8c0e CHECKPOINT --since",
    "hitherto restore claude:550e",
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
            f"{RAW_BUDGET} has room for; `hitherto continue` writes a new one"
        )
    write_back(path, data)
    if out.json:
        out.document({"session": session_id, "path": path_text(path), "bytes": len(data)})
    else:
        out.line(path_text(path))


def _place(session: Session) -> Path:
    """Where the file was that a session was read from."""
    if session.source is None:
        raise InvalidInput("name a checkpoint: this session has no file of another agent to write back")
    path = next(
        (path for source in local_sources() if (path := source.restorable_path(session)) is not None), None
    )
    if path is None:
        raise InvalidInput(
            f"{session.id!r} was read from no file in a folder of {session.source} on this machine"
        )
    return path
