"""`hitherto chat`."""

from __future__ import annotations

import click

from hitherto import wiring
from hitherto.cli.command import command, complete_session
from hitherto.cli.commands.show import print_page
from hitherto.cli.options.session_ids import short_id
from hitherto.cli.options.turn import Chosen, choosing
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.line_reader import Interrupted, LineReader
from hitherto.cli.terminal.output import Output, clean_lines
from hitherto.cli.turns import prompt, slash_commands
from hitherto.cli.turns.conversation import Talk
from hitherto.errors import HithertoError
from hitherto.model import LOCAL, plain_text
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings

SHOWN = 10
PROMPT = "> "
MORE = "… "


@command(
    "hitherto chat",
    "hitherto chat 019a8c0e",
    "hitherto chat --model anthropic:claude-sonnet-5 --mode acceptEdits",
    "hitherto chat < prompts.txt",
)
@click.argument("session", required=False, shell_complete=complete_session)
@choosing
async def run(sessions: Sessions, out: Output, *, session: str | None, chosen: Chosen) -> int:
    """Chat in the terminal, in a new session or in SESSION. Each line is a prompt; lines that start with / are commands.

    End a line with a backslash to continue it on the next line. ^C cancels the running turn and keeps what was said so
    far. ^D, or ^C twice at an empty prompt, leaves. Type /help for the commands. Without a terminal, each line of stdin is
    a prompt, and tools that would need your permission are refused.
    """
    lines = LineReader()
    with lines.hearing():
        async with Talk(sessions, out, lines, chosen, sessions.engine or wiring.engine()) as talk:
            if session is not None:
                named = await prompt.named(sessions, session, chosen)
                talk.session = await prompt.going_on(sessions, out, named)
            if lines.interactive:
                await _greet(talk)
            code = await _converse(talk)
            if lines.interactive and talk.session is not None:
                talk.aside(f"Continue with: hitherto chat {await short_id(sessions, talk.session.id)}")
            return code


async def _greet(talk: Talk) -> None:
    """Show the last messages, the folder and the model."""
    if talk.session is not None:
        page = await talk.sessions.history(LOCAL, talk.session.id, last=True, limit=SHOWN)
        print_page(talk.out, talk.session, page)
        for entry in page.entries:
            if entry.role == "user" and (said := clean_lines(plain_text(entry))):
                talk.lines.remember(said)
    folder = talk.chosen.folder if talk.session is None else talk.session.cwd
    own = read_settings().model if talk.sessions.engine is None else "the server's model"
    model = talk.choices.model or own
    talk.aside(
        f"{'New session' if talk.session is None else 'Continuing'}"
        f"{f' in {formats.short_folder(folder)}' if folder else ''}"
        f"{f' with {model}' if model else '. No model is set; choose one with /model NAME'}."
        " Type /help for commands, ^D to leave."
    )


async def _converse(talk: Talk) -> int:
    """Run line by line until the user leaves. Without a terminal, the exit code is that of the first failure."""
    failed = exit_codes.OK
    try:
        while not talk.over and (text := await _typed(talk)) is not None:
            code = await _done(talk, text)
            failed = failed or code
    except Interrupted:
        return exit_codes.INTERRUPTED
    return exit_codes.OK if talk.lines.interactive else failed


async def _done(talk: Talk, text: str) -> int:
    """Run a command or a prompt; returns its exit code."""
    try:
        if (found := slash_commands.command(text)) is not None:
            await found(talk)
        elif text.strip():
            return await talk.turn(text)
    except HithertoError as error:
        return exit_codes.report(error)
    return exit_codes.OK


async def _typed(talk: Talk) -> str | None:
    """What is typed next, over several lines if they end with a backslash. Raises `Interrupted` to leave."""
    lines: list[str] = []
    warned = not talk.lines.interactive
    while True:
        try:
            line = await talk.line(MORE if lines else PROMPT)
        except Interrupted as interrupt:
            if interrupt.empty and not lines:
                if warned:
                    raise
                warned = True
                talk.aside("Press ^C again or ^D to leave.")
            lines.clear()
            continue
        if line is None:
            return "\n".join(lines) or None
        if not line.endswith("\\"):
            return "\n".join((*lines, line))
        lines.append(line[:-1])
