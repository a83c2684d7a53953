"""Sessions as a list shows them. Pure."""

from __future__ import annotations

from hitherto.acp.protocol.times import rfc3339
from hitherto.model import OWN, Json, Session

NOWHERE = "/"
"""The `cwd` of a session that has none: the protocol wants an absolute path. Opening one gives no access to any folder."""
CONTINUED = "hitherto/continuedAs"
BEHIND = f"{OWN}behind"
"""The key in the meta of a session that was recorded from other agents: their sessions."""


def row(session: Session) -> Json:
    """A `SessionInfo`, all of it from the session's own columns."""
    fields: Json = {
        "sessionId": session.id,
        "cwd": session.cwd or NOWHERE,
        "updatedAt": rfc3339(session.updated_at),
        "archived": session.archived,
        "_meta": {
            "messageCount": session.message_count,
            "hasErrors": session.error_count > 0,
            "hitherto/createdAt": rfc3339(session.created_at),
            **_project_fields(session),
            **meta_fields(session),
        },
    }
    if session.title is not None:
        fields["title"] = session.title
    if session.additional_directories:
        fields["additionalDirectories"] = session.additional_directories
    return fields


def _project_fields(session: Session) -> Json:
    known = {"hitherto/project": session.project, "hitherto/branch": session.branch}
    return {name: value for name, value in known.items() if value is not None}


def meta_fields(session: Session) -> Json:
    """The `_meta` fields of a session that are set."""
    known: Json = {
        "tags": session.tags or None,
        "priority": session.meta.get("priority"),
        "hitherto/pinned": session.pinned or None,
        "hitherto/tokens": session.token_count,
        "hitherto/cost": session.cost,
        "hitherto/source": session.source,
        "hitherto/parent": session.parent,
        "hitherto/parentMessage": session.parent_entry,
        "hitherto/status": session.status if session.status != "idle" else None,
    }
    return {name: value for name, value in known.items() if value is not None}
