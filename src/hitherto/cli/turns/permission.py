"""Asking for permission to run a tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hitherto.cli.terminal import diffs
from hitherto.cli.terminal.entries import Styled
from hitherto.cli.terminal.output import clean
from hitherto.model import ToolCall
from hitherto.permissions import Choice
from hitherto.updates import Ask

ANSWERS: dict[str, Choice] = {
    "y": "allow_once",
    "a": "allow_always",
    "n": "reject_once",
    "d": "reject_always",
}
"""By first letter. 'Always' and 'never' apply to this session; for a command, to exactly that command."""

QUESTION = "Allow? [y]es once, [a]lways, [n]o, [d]on't ever: "
DOING = {
    "execute": "run a command",
    "edit": "change a file",
    "delete": "delete a file",
    "move": "move a file",
    "fetch": "fetch from the network",
}


def asking(read: Callable[[str], Awaitable[str | None]], show: Callable[[Styled], None]) -> Ask:
    """Asks with `read`, which shows the question and returns the typed line, or None at the end of input."""

    async def ask(call: ToolCall) -> Choice:
        show(Styled(f"{clean(call.name)} wants to {DOING.get(call.kind or '', 'run')}:", "bold yellow"))
        for styled in diffs.request(call):
            show(Styled(f"  {styled.text}", styled.style))
        while True:
            line = await read(QUESTION)
            if line is None:
                return "reject_once"
            if (choice := ANSWERS.get(line.strip().lower()[:1])) is not None:
                return choice

    return ask
