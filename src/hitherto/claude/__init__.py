"""The session functions of `claude-agent-sdk` over Claude Code's own files, read and written in place.

    from hitherto.claude import list_sessions, get_session_messages
    for session in list_sessions(limit=20):
        print(session.summary)

Names and signatures are those of the SDK, so changing the import is enough; docs/claude.md says where they do better.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitherto.claude.edit import archive_session as archive_session
    from hitherto.claude.edit import delete_session as delete_session
    from hitherto.claude.edit import rename_session as rename_session
    from hitherto.claude.edit import tag_session as tag_session
    from hitherto.claude.edit import unarchive_session as unarchive_session
    from hitherto.claude.fork import ForkSessionResult as ForkSessionResult
    from hitherto.claude.fork import fork_session as fork_session
    from hitherto.claude.lines import Damage as Damage
    from hitherto.claude.list import SDKSessionInfo as SDKSessionInfo
    from hitherto.claude.list import get_session_info as get_session_info
    from hitherto.claude.list import list_sessions as list_sessions
    from hitherto.claude.messages import SessionMessage as SessionMessage
    from hitherto.claude.messages import check_session as check_session
    from hitherto.claude.messages import get_session_messages as get_session_messages
    from hitherto.claude.messages import get_subagent_messages as get_subagent_messages
    from hitherto.claude.messages import list_subagents as list_subagents
    from hitherto.claude.paths import project_key_for_directory as project_key_for_directory
    from hitherto.claude.session_store import SessionStore as SessionStore

# Imported at first use: reading a list needs no store and no service.
_HOMES = {
    "fork": ("ForkSessionResult", "fork_session"),
    "lines": ("Damage",),
    "list": ("SDKSessionInfo", "get_session_info", "list_sessions"),
    "messages": (
        "SessionMessage", "check_session", "get_session_messages", "get_subagent_messages", "list_subagents",
    ),
    "paths": ("project_key_for_directory",),
    "session_store": ("SessionStore",),
    "edit": ("archive_session", "delete_session", "rename_session", "tag_session", "unarchive_session"),
}  # fmt: skip
_HOME = {name: f"hitherto.claude.{home}" for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'hitherto.claude' has no attribute {name!r}")
    return getattr(import_module(home), name)
