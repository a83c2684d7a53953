"""Sessions as a list shows them. Pure."""

from __future__ import annotations

import re

from hitherto.acp.protocol.times import rfc3339
from hitherto.model import DRAFT, OWN, Json, Session
from hitherto.values.usage.sessions import SessionUsage

NOWHERE = "/"
"""The `cwd` of a session that has none: the protocol wants an absolute path. Opening one gives no access to any folder."""
USAGE = "hitherto/usage"
_CAPITALS = re.compile(r"_([a-z])")
CONTINUED = "hitherto/continuedAs"
BEHIND = f"{OWN}behind"
"""The key in the meta of a session that was recorded from other agents: their sessions."""


def row(session: Session, used: SessionUsage | None) -> Json:
    """A `SessionInfo`: the session's own columns, and what it used as far as that was counted."""
    fields: Json = {
        "sessionId": session.id,
        "cwd": session.cwd or NOWHERE,
        "updatedAt": rfc3339(session.updated_at),
        "archived": session.archived and DRAFT not in session.meta,
        "_meta": {
            "messageCount": _message_count(session, used),
            "hasErrors": session.error_count > 0,
            "hitherto/createdAt": rfc3339(session.created_at),
            **_project_fields(session),
            **({} if used is None else {USAGE: _usage_fields(used)}),
            **meta_fields(session),
        },
    }
    if session.title is not None:
        fields["title"] = session.title
    if session.additional_directories:
        fields["additionalDirectories"] = session.additional_directories
    return fields


def _message_count(session: Session, used: SessionUsage | None) -> int:
    """Messages of the conversation: a compaction takes none away. Until they are counted, those of the context."""
    return session.message_count if used is None else max(session.message_count, used.messages)


def _usage_fields(used: SessionUsage) -> Json:
    """The fields of `session.usage`, named as the protocol names things."""
    return {_CAPITALS.sub(lambda found: found[1].upper(), name): value for name, value in used.fields.items()}


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
