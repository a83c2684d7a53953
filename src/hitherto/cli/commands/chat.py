"""`hitherto chat`."""

from __future__ import annotations

import click

from hitherto import wiring
from hitherto.cli.command import command, complete_session
from hitherto.cli.commands.show import print_page
from hitherto.cli.options.session_ids import short_id
from hitherto.cli.options.turn import Chosen, choosing
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.line_editor import Interrupted, Typist, while_typing
from hitherto.cli.terminal.output import Output, clean
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
    runner=while_typing,
)
@click.argument("session", required=False, shell_complete=complete_session)
@choosing
async def run(sessions: Sessions, out: Output, typist: Typist, *, session: str | None, chosen: Chosen) -> int:
    """Talk in a session, a new one or SESSION; each line is a prompt, and what begins with / is a command.

    A line that ends with a backslash goes on in the next one. ^C cancels the running turn and keeps what was said;
    twice at an empty prompt, or ^D, leaves. `/help` lists the commands. Without a terminal the prompts are the lines of
    stdin, and what would be asked is refused.
    """
    async with Talk(sessions, out, typist, chosen, sessions.engine or wiring.engine()) as talk:
        if session is not None:
            named = await prompt.named(sessions, session, chosen)
            talk.session = await prompt.going_on(sessions, out, named)
        if typist.present:
            await _greet(talk)
        code = await _converse(talk)
        if typist.present and talk.session is not None:
            talk.aside(f"To go on: hitherto chat {await short_id(sessions, talk.session.id)}")
        return code


async def _greet(talk: Talk) -> None:
    """What was said last, and where we are."""
    if talk.session is not None:
        page = await talk.sessions.history(LOCAL, talk.session.id, last=True, limit=SHOWN)
        print_page(talk.out, talk.session, page)
        for entry in page.entries:
            if entry.role == "user" and (said := clean(plain_text(entry))):
                talk.typist.remember(said)
    folder = talk.chosen.folder if talk.session is None else talk.session.cwd
    own = read_settings().model if talk.sessions.engine is None else "the server's model"
    model = talk.choices.model or own
    talk.aside(
        f"{'A new session' if talk.session is None else 'Going on'}"
        f"{f' in {formats.short_folder(folder)}' if folder else ''}"
        f"{f' with {model}' if model else '; no model is set, /model NAME sets one'}."
        " /help lists the commands, ^D leaves."
    )


async def _converse(talk: Talk) -> int:
    """Line by line, until somebody leaves; without a terminal the exit code is that of the first failure."""
    failed = exit_codes.OK
    try:
        while not talk.over and (text := await _typed(talk)) is not None:
            code = await _done(talk, text)
            failed = failed or code
    except Interrupted:
        return exit_codes.INTERRUPTED
    return exit_codes.OK if talk.typist.present else failed


async def _done(talk: Talk, text: str) -> int:
    """Do what a line says; the exit code that it would give."""
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
    warned = not talk.typist.present
    while True:
        try:
            line = await talk.line(MORE if lines else PROMPT)
        except Interrupted as interrupt:
            talk.aside("")
            if interrupt.empty and not lines:
                if warned:
                    raise
                warned = True
                talk.aside("^C again, or ^D, leaves.")
            lines.clear()
            continue
        if line is None:
            return "\n".join(lines) or None
        if not line.endswith("\\"):
            return "\n".join((*lines, line))
        lines.append(line[:-1])
