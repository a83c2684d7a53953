"""What a client knows about a session beside what was said in it: title, facts, what is chosen. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hitherto.acp.config import Choosable, Chosen, chosen_of, options
from hitherto.acp.rows import facts
from hitherto.acp.times import rfc3339
from hitherto.model import Json, Session

UNTOLD = frozenset(
    (
        *("hitherto/tokens", "hitherto/cost", "hitherto/status"),
        *("hitherto/source", "hitherto/parent", "hitherto/parentMessage"),
    )
)
"""Facts that change all the time, or never but in the fork in which a session goes on; clients see them in lists."""


class Known:
    """See the module."""

    def __init__(self, session: Session, choosable: Choosable) -> None:
        self.chosen: Chosen = chosen_of(session)
        self._choosable = choosable
        self._title, self._facts = session.title, _told(session)

    def news(self, session: Session) -> Iterator[tuple[str, Json]]:
        """The updates that tell the client what it does not know yet, whoever has changed it; then it does."""
        if fields := self._described(session):
            yield "session_info_update", {"updatedAt": rfc3339(session.updated_at), **fields}
        chosen = chosen_of(session)
        if chosen != self.chosen:
            moved, self.chosen = chosen.mode != self.chosen.mode, chosen
            if moved:
                yield self.mode()
            yield self.options()

    def mode(self) -> tuple[str, Json]:
        """The update that tells the mode, to clients that know no options."""
        return "current_mode_update", {"currentModeId": self.chosen.mode}

    def options(self) -> tuple[str, Json]:
        """The update that tells all options."""
        return "config_option_update", {"configOptions": options(self.chosen, self._choosable)}

    def _described(self, session: Session) -> Json:
        fields: Json = {}
        if session.title != self._title:
            fields["title"] = self._title = session.title
        if (told := _told(session)) != self._facts:
            gone = {name: None for name in self._facts if name not in told}
            fields["_meta"], self._facts = {**told, **gone}, told
        return fields


def _told(session: Session) -> Json:
    return {name: value for name, value in facts(session).items() if name not in UNTOLD}
