"""What Claude Code writes down in the user's name: commands that were typed, what they put out, and its own notes. Pure.

A command is what its user typed, `/name words`; everything else is the program's own, and never the user's words.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Origin = Literal["typed", "output", "note"]

_COMMAND = ("<command-name>", "<command-message>", "<command-args>")
_SHELL_INPUT = re.compile(r"\s*<bash-input>(.*)</bash-input>\s*", re.DOTALL)
_OUTPUT = re.compile(r"\s*(?:<(local-command-std(?:out|err)|bash-std(?:out|err))>(.*?)</\1>\s*)+", re.DOTALL)
_OUTPUT_PIECE = re.compile(r"<(local-command-std(?:out|err)|bash-std(?:out|err))>(.*?)</\1>", re.DOTALL)
_INTERRUPTED = re.compile(r"\s*\[Request interrupted by user(?: for tool use)?\]\s*")
_NOTE = (
    "<local-command-caveat>",
    "Caveat: The messages below were generated",
    "<task-notification>",
    "<session-start-hook>",
    "<user-prompt-submit-hook>",
)


class ProgramText(NamedTuple):
    """A text as it is shown: `typed` by the user, the `output` of what was typed, or a `note` of the program."""

    origin: Origin
    text: str


def program_text(text: str) -> ProgramText | None:
    """What this text of the user's side is, if the program wrote it; None if the user did."""
    bare = text.lstrip()
    if bare.startswith(_COMMAND) and (name := _between(bare, "command-name")):
        return ProgramText("typed", f"/{name.removeprefix('/')} {_between(bare, 'command-args')}".rstrip())
    if (shell := _SHELL_INPUT.fullmatch(text)) is not None:
        return ProgramText("typed", f"! {shell[1].strip()}")
    if bare.startswith(("<local-command-std", "<bash-std")) and _OUTPUT.fullmatch(text):
        pieces = (piece[2].strip() for piece in _OUTPUT_PIECE.finditer(text))
        return ProgramText("output", "\n".join(filter(None, pieces)))
    if bare.startswith(_NOTE) or is_interruption(text):
        return ProgramText("note", text)
    return None


def is_interruption(text: str) -> bool:
    """Whether the program notes that its user interrupted it."""
    return _INTERRUPTED.fullmatch(text) is not None


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
