"""`hitherto watch`."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from hitherto.cli.command import command, complete_session
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output, clean
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL, Change
from hitherto.presentation import formats
from hitherto.service import Sessions


@command("hitherto watch", "hitherto watch 019a8c0e --json", "hitherto watch --after 0", opens="read")
@click.argument("session", required=False, shell_complete=complete_session)
@click.option(
    "--after",
    metavar="POSITION",
    help="Start after this position, as printed with each change; 0 is the beginning. Default: only new changes.",
)
async def run(sessions: Sessions, out: Output, *, session: str | None, after: str | None) -> None:
    """Print changes as they happen, of one session or of all, until ^C.

    In a pipe, each line has these tab-separated fields: position, kind, session, revision. Changes of a session that follow
    each other quickly may arrive as one, the newest.
    """
    session_id = None if session is None else await named_session(sessions, session)
    with _while_pipe_is_read():
        async for change in sessions.watch(LOCAL, session_id=session_id, after=after):
            await _print(sessions, out, change)


async def _print(sessions: Sessions, out: Output, change: Change) -> None:
    if out.json:
        out.document(change)
    elif out.terminal:
        await _draw(sessions, out, change)
    else:
        out.row(change.position, change.kind, change.session, change.revision)


async def _draw(sessions: Sessions, out: Output, change: Change) -> None:
    from rich.text import Text

    try:
        title = formats.title(await sessions.get(LOCAL, change.session))
    except SessionNotFound:
        title = "(deleted)"
    out.draw(
        Text.assemble(
            (f"{clean(change.kind):<9}", "cyan"), f" {clean(change.session)}  ", (clean(title), "bold")
        )
    )


@contextmanager
def _while_pipe_is_read() -> Iterator[None]:
    """Raise `BrokenPipeError` when the reader of the pipe leaves, without waiting for the next write to fail."""
    if not _is_pipe():
        yield
        return
    loop, task, left = asyncio.get_running_loop(), asyncio.current_task(), asyncio.Event()

    def leave() -> None:
        loop.remove_reader(sys.stdout)
        left.set()
        if task is not None:
            task.cancel()

    loop.add_reader(
        sys.stdout, leave
    )  # this end has nothing to read: it wakes only when the other end is closed
    try:
        yield
    except asyncio.CancelledError:
        if left.is_set():
            raise BrokenPipeError from None
        raise
    finally:
        loop.remove_reader(sys.stdout)


def _is_pipe() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except OSError:
        return False
