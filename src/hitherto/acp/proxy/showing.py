"""What the editor is shown of a session besides what the agent says: turns of other processes, titles."""

from __future__ import annotations

from hitherto.acp import showing
from hitherto.model import Change
from hitherto.updates import Stored, Titled, Update


class Showing(showing.Showing):
    """See the module. What the agent says in a turn of this editor has been passed on already; `stored` is the last entry
    of it that was kept."""

    stored: str | None = None

    def emit(self, update: Update) -> None:
        if isinstance(update, Stored):
            self.stored = update.entry.id
        elif isinstance(update, Titled):
            super().emit(update)

    def retold(self) -> None:
        """Something about the session may have changed, such as its title."""
        self._changed = True
        self._wake.set()

    def changed(self, change: Change) -> None:
        if not self._turning:
            super().changed(change)
