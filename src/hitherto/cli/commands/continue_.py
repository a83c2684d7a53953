"""`hitherto continue`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from hitherto.cli.command import command, picked_argument
from hitherto.cli.commands.resume import replace_process
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources.handoff.continue_ import TARGETS, Continuation, Continued
from hitherto.sources.sync.ledger import Ledger

FIDELITY = {
    "native": "native: this session already belongs to {agent}",
    "replayed": "replayed: {messages} copied into a new {agent} session",
    "summarised": "summarised: a summary and the last {messages} copied into a new {agent} session",
}
"""How each kind of copy is described."""


@command(
    "hitherto continue claude:550e8400 --in codex",
    "hitherto continue 019a8c0e --in claude --cwd ~/app",
    "eval $(hitherto continue 019a8c0e --in codex)",
    picks="session",
)
@picked_argument
@click.option(
    "--in", "agent", type=click.Choice(sorted(TARGETS)), required=True, help="The agent to continue in."
)
@click.option(
    "--cwd",
    type=click.Path(file_okay=False, resolve_path=True),
    help="The folder to continue in. Default: the folder of the session.",
)
@click.option("--exec", "execute", is_flag=True, help="Run the command instead of printing it.")
async def run(
    sessions: Sessions, out: Output, *, session: str, agent: str, cwd: str | None, execute: bool
) -> None:
    """Continue a session in another agent.

    Writes a new transcript for that agent, with the conversation so far, and prints the command that opens it. Existing files
    of the agent are never changed. Stderr shows, before anything is written, what cannot be carried over, and then how
    complete the copy is: native, replayed or summarised.
    """
    settings = read_settings()
    ledger = Ledger(settings.data_dir / f"sources-{sessions.admin.store_id}.db")
    try:
        found = await named_session(sessions, session)
        going = Continuation(sessions, LOCAL, ledger, raw=settings.raw_budget > 0)
        done = await going.continue_session(found, agent, cwd, partial(_tell, out))
    finally:
        ledger.close()
    if not out.json:
        out.note(fidelity_sentence(done))
    if execute:
        replace_process(done.command, done.cwd)
    if out.json:
        out.document(done)
    else:
        out.line(done.shell)


def _tell(out: Output, left_behind: Sequence[str]) -> None:
    if not out.json:
        for sentence in left_behind:
            out.note(f"not carried over in full: {sentence}")


def fidelity_sentence(done: Continued) -> str:
    """How faithful it is."""
    messages = formats.counted(done.messages, "message")
    if done.tool_calls:
        messages += f" and {formats.counted(done.tool_calls, 'tool call')}"
    return FIDELITY[done.fidelity].format(agent=done.agent, messages=messages)
