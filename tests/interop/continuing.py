"""A session to go on with in a real program: made here, and given to it by `hitherto continue`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hitherto.model import LOCAL, Draft, Image, Text, Thought, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.cli.shell import Shell

ASKED = "First \u2028 question \u0085 here, \U0001f40e"
LOOKS, LOOKED = "I look.", "There is a barn."
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A dot, as PNG."""
AGAIN = "Paint it"
PAINTED = "It is red."
SUMMARY = "They looked at a barn."


def saying(role: Any, *parts: Any) -> Draft:
    """A message, of texts and of whatever else."""
    told = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Draft(role=role, parts=told, model="gpt-5" if role == "assistant" else None)


def made(shell: Shell, cwd: Path, *, compacted: bool = False) -> str:
    """A session of two turns, with a picture, a thought and a tool; the first of them may stand as a summary."""

    async def make(sessions: Sessions) -> str:
        session = await sessions.create(LOCAL, cwd=str(cwd), title="The barn")
        call = ToolCall(id="1", name="Bash", input={"command": "ls"})
        first = [
            saying("user", ASKED, Image(mime_type="image/png", data=PICTURE)),
            saying("assistant", Thought(text="Hm."), LOOKS, call),
            saying("tool", ToolResult(id="1", content=(Text(text="barn.txt"),))),
            saying("assistant", LOOKED),
        ]
        await sessions.append(LOCAL, session.id, first)
        if compacted:
            await sessions.compact(LOCAL, session.id, saying("system", SUMMARY), keep=0)
        await sessions.append(LOCAL, session.id, [saying("user", AGAIN), saying("assistant", PAINTED)])
        return session.id

    return shell.inside(make)


def continued(shell: Shell, session: str, agent: str) -> dict[str, Any]:
    """What `hitherto continue` says."""
    told: dict[str, Any] = shell.ok("continue", session, "--in", agent, "--json").json
    return told
