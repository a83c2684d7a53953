"""The permission request of a running turn: the tool call as a card, with the possible answers."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.gateway.page.render.tool_card import Card, card
from hitherto.model import Principal, Session
from hitherto.permissions import Choice
from hitherto.service import Sessions

WANTS = {
    "execute": "wants to run a command",
    "edit": "wants to change a file",
    "delete": "wants to delete files or data",
    "move": "wants to move or rename files",
    "fetch": "wants to fetch external data",
    "switch_mode": "wants to switch to another mode",
}
ALWAYS = {"execute": "“Always” applies to exactly this command in this folder, in this session."}
ALWAYS_ELSE = "“Always” applies to every use of this tool, in this session."
ANSWERS: tuple[tuple[Choice, str], ...] = (
    ("allow_once", "Allow once"),
    ("allow_always", "Always allow"),
    ("reject_once", "Reject"),
    ("reject_always", "Always reject"),
)


class Question(NamedTuple):
    """The id of the call, its card, what it wants, and the scope of an answer for always."""

    call: str
    card: Card
    wants: str
    always: str
    answers: tuple[tuple[Choice, str], ...] = ANSWERS


async def question_of(home: Sessions, who: Principal, session: Session) -> Question | None:
    """The open permission request of a session, if any."""
    call = await home.questions.pending(who, session.id) if session.status == "waiting" else None
    if call is None:
        return None
    kind = call.kind or "other"
    return Question(call.id, card(call, None), WANTS.get(kind, "wants to run"), ALWAYS.get(kind, ALWAYS_ELSE))
