"""How a command tells of the session that it has changed."""

from __future__ import annotations

from hitherto.cli import wording
from hitherto.cli.output import Output
from hitherto.model import Session


def tell(out: Output, done: str, session: Session) -> None:
    """Say what was done to a session, or print it."""
    if out.json:
        out.document(session)
    else:
        out.line(f"{done} {session.id}: {wording.title(session)}")
