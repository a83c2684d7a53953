"""`hitherto prompt`."""

from __future__ import annotations

import sys

import click
import msgspec

from hitherto import composition
from hitherto.cli.command import command, complete_session
from hitherto.cli.options.turn import TurnOptions, turn_options
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.entries import Styled
from hitherto.cli.terminal.input import ask_line, cancelling, read_text
from hitherto.cli.terminal.output import Output, clean
from hitherto.cli.turns import prompt
from hitherto.cli.turns.display import Streams, UpdatePrinter
from hitherto.cli.turns.permission import asking
from hitherto.errors import EngineError
from hitherto.model import LOCAL, Session
from hitherto.service import Sessions
from hitherto.updates import NAMES, Ask, Emit, Outcome


@command(
    "hitherto prompt 'What does this project do?'",
    "git diff | hitherto prompt --append-system 'Review this change.'",
    "hitherto prompt --session 019a8c0e --mode acceptEdits 'Now fix it.'",
    "hitherto prompt --json 'Name a colour.' | jq -r .text",
    opens="make",
)
@click.argument("text", required=False)
@click.option(
    "--session",
    metavar="SESSION",
    shell_complete=complete_session,
    help="Continue this session instead of starting a new one.",
)
@turn_options
@click.option(
    "--stream-json", is_flag=True, help="Print each step as a line of JSON, and the result as the last line."
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Show thoughts and tool calls on stderr, even without a terminal."
)
async def run(
    sessions: Sessions,
    out: Output,
    *,
    text: str | None,
    session: str | None,
    options: TurnOptions,
    stream_json: bool,
    verbose: bool,
) -> int:
    """Run one prompt and print the answer to stdout as it arrives.

    Without TEXT, or with `-`, the prompt is read from stdin. On a terminal, thoughts, tool calls and the session id
    appear on stderr, and you are asked before a tool changes anything. ^C cancels the turn and keeps what was said so far.
    """
    engine, said = sessions.engine or composition.engine(), await read_text(text)
    prompt.prompt_text(said)
    session_id = None if session is None else await prompt.resolve_session(sessions, session, options)
    await prompt.require_model(engine, options.choices)
    going = (
        await prompt.create_session(sessions, options)
        if session_id is None
        else await prompt.writable_session(sessions, out, session_id)
    )
    stage = Streams(asides=verbose or sys.stderr.isatty(), answer=not (out.json or stream_json))
    emit = _printing(out) if stream_json else UpdatePrinter(stage)
    opening = sessions.opened(
        LOCAL,
        going.id,
        engine,
        mcp_servers=options.servers,
        improve_titles=False,
        report=prompt.reporting(emit),
    )
    async with opening as opened:
        try:
            outcome = await prompt.run_prompt(opened, said, options.choices, _ask(stage), emit, cancelling)
        except EngineError:
            out.note(f"The turn failed. What was said so far is kept in session {going.id}.")
            raise
    stage.line(Styled(f"session {clean(going.id)}"))
    return _end(out, going, outcome, stream_json=stream_json)


def _ask(stage: Streams) -> Ask | None:
    """Asks on the terminal; None without one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return asking(ask_line, stage.line)


def _printing(out: Output) -> Emit:
    """Prints each update as a line of JSON."""
    return lambda update: out.document({"update": NAMES[type(update)], **msgspec.to_builtins(update)})


def _end(out: Output, session: Session, outcome: Outcome, *, stream_json: bool) -> int:
    """Report how the turn ended. An incomplete answer is a failure."""
    if stream_json:
        out.document({"update": "ended", **prompt.document(session.id, outcome)})
    elif out.json:
        out.document(prompt.document(session.id, outcome))
    stopped = prompt.STOPPED.get(outcome.stop_reason)
    if stopped is None:
        return exit_codes.OK
    out.note(stopped)
    return exit_codes.INTERRUPTED if outcome.stop_reason == "cancelled" else exit_codes.ENGINE
