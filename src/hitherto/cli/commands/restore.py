"""`hitherto restore`."""

from __future__ import annotations

from pathlib import Path

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.entries import report_change
from hitherto.cli.terminal.output import Output
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.settings import RAW_BUDGET
from hitherto.sources import local_sources
from hitherto.sources.handoff.restore import (
    Restorable,
    files_beside,
    original,
    subagents_of,
    write_back,
)
from hitherto.sources.shared.files import path_text


@command(
    "hitherto restore 019a8c0e CHECKPOINT",
    "hitherto restore 019a8c0e CHECKPOINT --since",
    "hitherto restore claude:550e",
)
@session_argument
@click.argument("checkpoint", required=False)
@click.option("--since", is_flag=True, help="Append everything that was said after the checkpoint.")
@click.option(
    "--with-subagents", is_flag=True, help="Restore the transcripts of the session's subagents as well."
)
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str,
    checkpoint: str | None,
    since: bool,
    with_subagents: bool,
) -> None:
    """Restore a session to a checkpoint. The current state becomes a checkpoint first, so nothing is lost.

    Without CHECKPOINT, restore the transcript of a synced session that its agent has deleted: the file is written back to
    the agent's folder, byte for byte, with the outputs of tools that were kept beside it. Existing files are never changed.
    """
    session_id = await named_session(sessions, session)
    if checkpoint is not None:
        report_change(out, "Restored", await sessions.restore(LOCAL, session_id, checkpoint, since=since))
        return
    found = await sessions.get(LOCAL, session_id)
    whole = [found, *(await subagents_of(sessions, LOCAL, session_id) if with_subagents else ())]
    files = [file for each in whole for file in await _files(sessions, each, required=each is found)]
    for file in files:
        # Of what stood beside the transcript, some may still be there.
        if file.path == files[0].path or not file.path.exists():
            write_back(*file)
    if out.json:
        written = [path_text(file.path) for file in files]
        size = len(files[0].data)
        out.document({"session": session_id, "path": written[0], "bytes": size, "files": written})
    else:
        out.line(path_text(files[0].path))


async def _files(sessions: Sessions, session: Session, *, required: bool) -> list[Restorable]:
    """The transcript of a session and the files beside it."""
    path = _original_path(session)
    data = await original(sessions, LOCAL, session.id)
    if not data:
        if not required:
            return []
        raise InvalidInput(
            f"there is no raw copy of {session.id!r}: only the newest files within {RAW_BUDGET} are kept; "
            f"`hitherto continue {session.id} --in AGENT` writes a new transcript"
        )
    return [Restorable(path, data), *await files_beside(sessions, LOCAL, session.id, path)]


def _original_path(session: Session) -> Path:
    """The path of the file that a session was synced from."""
    if session.source is None:
        raise InvalidInput(
            "give a checkpoint: this session was not synced from another agent, so there is no transcript to restore"
        )
    path = next(
        (path for source in local_sources() if (path := source.restorable_path(session)) is not None), None
    )
    if path is None:
        raise InvalidInput(
            f"{session.id!r} was not read from a file in a {session.source} folder on this machine"
        )
    return path
