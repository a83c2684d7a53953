"""`hitherto chat`."""

from __future__ import annotations

import click

from hitherto import composition
from hitherto.cli.command import command, complete_session
from hitherto.cli.commands.show import print_page
from hitherto.cli.options.session_ids import short_id
from hitherto.cli.options.turn import TurnOptions, turn_options
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.line_reader import Interrupted, LineReader
from hitherto.cli.terminal.output import Output, clean_lines
from hitherto.cli.turns import prompt, slash_commands
from hitherto.cli.turns.conversation import ChatSession
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
    opens="make",
)
@click.argument("session", required=False, shell_complete=complete_session)
@turn_options
async def run(sessions: Sessions, out: Output, *, session: str | None, options: TurnOptions) -> int:
    """Chat in the terminal, in a new session or in SESSION. Each line is a prompt; lines that start with / are commands.

    End a line with a backslash to continue it on the next line. ^C cancels the running turn and keeps what was said so
    far. ^D, or ^C twice at an empty prompt, leaves. Type /help for the commands. Without a terminal, each line of stdin is
    a prompt, and tools that would need your permission are refused.
    """
    lines = LineReader()
    with lines.hearing():
        async with ChatSession(
            sessions, out, lines, options, sessions.engine or composition.engine()
        ) as chat:
            if session is not None:
                session_id = await prompt.resolve_session(sessions, session, options)
                chat.session = await prompt.writable_session(sessions, out, session_id)
            if lines.interactive:
                await _greet(chat)
            code = await _converse(chat)
            if lines.interactive and chat.session is not None:
                chat.aside(f"Continue with: hitherto chat {await short_id(sessions, chat.session.id)}")
            return code


async def _greet(chat: ChatSession) -> None:
    """Show the last messages, the folder and the model."""
    if chat.session is not None:
        page = await chat.sessions.history(LOCAL, chat.session.id, last=True, limit=SHOWN)
        used = await chat.sessions.usage(LOCAL, chat.session.id)
        print_page(chat.out, chat.session, page, used)
        for entry in page.entries:
            if entry.role == "user" and (said := clean_lines(plain_text(entry))):
                chat.lines.remember(said)
    folder = chat.options.folder if chat.session is None else chat.session.cwd
    own = read_settings().model if chat.sessions.engine is None else "the server's model"
    model = chat.choices.model or own
    chat.aside(
        f"{'New session' if chat.session is None else 'Continuing'}"
        f"{f' in {formats.short_folder(folder)}' if folder else ''}"
        f"{f' with {model}' if model else '. No model is set; choose one with /model NAME'}."
        " Type /help for commands, ^D to leave."
    )


async def _converse(chat: ChatSession) -> int:
    """Run line by line until the user leaves. Without a terminal, the exit code is that of the first failure."""
    failed = exit_codes.OK
    try:
        while not chat.over and (text := await _typed(chat)) is not None:
            code = await _done(chat, text)
            failed = failed or code
    except Interrupted:
        return exit_codes.INTERRUPTED
    return exit_codes.OK if chat.lines.interactive else failed


async def _done(chat: ChatSession, text: str) -> int:
    """Run a command or a prompt; returns its exit code."""
    try:
        if (found := slash_commands.command(text)) is not None:
            await found(chat)
        elif text.strip():
            return await chat.turn(text)
    except HithertoError as error:
        return exit_codes.report(error)
    return exit_codes.OK


async def _typed(chat: ChatSession) -> str | None:
    """What is typed next, over several lines if they end with a backslash. Raises `Interrupted` to leave."""
    lines: list[str] = []
    warned = not chat.lines.interactive
    while True:
        try:
            line = await chat.line(MORE if lines else PROMPT, kept=True)
        except Interrupted as interrupt:
            if interrupt.empty and not lines:
                if warned:
                    raise
                warned = True
                chat.aside("Press ^C again or ^D to leave.")
            lines.clear()
            continue
        if line is None:
            return "\n".join(lines) or None
        if not line.endswith("\\"):
            return "\n".join((*lines, line))
        lines.append(line[:-1])
