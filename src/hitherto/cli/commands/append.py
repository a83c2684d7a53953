"""`hitherto append`."""

from __future__ import annotations

import click

from hitherto.cli.command import command, session_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.input import read_text
from hitherto.cli.terminal.output import Output
from hitherto.errors import InvalidInput
from hitherto.model import LOCAL, ROLES, Draft, Role, Text
from hitherto.service import Sessions


@command(
    "hitherto append 019a8c0e 'Why does the build fail?'",
    "make 2>&1 | hitherto append 019a8c0e --role tool",
)
@session_argument
@click.argument("text", required=False)
@click.option(
    "--role", type=click.Choice(ROLES), default="user", show_default=True, help="The role of the message."
)
async def run(sessions: Sessions, out: Output, *, session: str, text: str | None, role: Role) -> None:
    """Add a message to a session and print the message id.

    Without TEXT, or with `-`, the message is read from stdin, without its last newline. No model is asked: use `hitherto
    prompt --session` to get an answer. While a turn runs, the message waits for its end.
    """
    session_id = await named_session(sessions, session)
    said = await read_text(text)
    if not said:
        raise InvalidInput("the message is empty: pass a text or pipe one to stdin")
    appended = await sessions.append(LOCAL, session_id, Draft(role=role, parts=(Text(text=said),)))
    if out.json:
        done = {"session": session_id, "entries": appended.entries, "revision": appended.revision}
        out.document(done if appended.place is None else {**done, "place": appended.place})
    else:
        out.line(appended.entries[0])
