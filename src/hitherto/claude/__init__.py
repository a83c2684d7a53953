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
    from hitherto.claude.session_stores.edit import delete_session_via_store as delete_session_via_store
    from hitherto.claude.session_stores.edit import fork_session_via_store as fork_session_via_store
    from hitherto.claude.session_stores.edit import rename_session_via_store as rename_session_via_store
    from hitherto.claude.session_stores.edit import tag_session_via_store as tag_session_via_store
    from hitherto.claude.session_stores.import_ import import_session_to_store as import_session_to_store
    from hitherto.claude.session_stores.memory import InMemorySessionStore as InMemorySessionStore
    from hitherto.claude.session_stores.protocol import SessionKey as SessionKey
    from hitherto.claude.session_stores.protocol import SessionListSubkeysKey as SessionListSubkeysKey
    from hitherto.claude.session_stores.protocol import SessionStore as SessionStore
    from hitherto.claude.session_stores.protocol import SessionStoreEntry as SessionStoreEntry
    from hitherto.claude.session_stores.protocol import SessionStoreFlushMode as SessionStoreFlushMode
    from hitherto.claude.session_stores.protocol import SessionStoreListEntry as SessionStoreListEntry
    from hitherto.claude.session_stores.protocol import SessionSummaryEntry as SessionSummaryEntry
    from hitherto.claude.session_stores.read import get_session_info_from_store as get_session_info_from_store
    from hitherto.claude.session_stores.read import (
        get_session_messages_from_store as get_session_messages_from_store,
    )
    from hitherto.claude.session_stores.read import (
        get_subagent_messages_from_store as get_subagent_messages_from_store,
    )
    from hitherto.claude.session_stores.read import list_sessions_from_store as list_sessions_from_store
    from hitherto.claude.session_stores.read import list_subagents_from_store as list_subagents_from_store
    from hitherto.claude.session_stores.summary import fold_session_summary as fold_session_summary
    from hitherto.sources.claude.mirror import HithertoSessionStore as HithertoSessionStore

# Imported at first use: reading a list needs no store and no service.
_HOMES = {
    "claude.fork": ("ForkSessionResult", "fork_session"),
    "claude.lines": ("Damage",),
    "claude.list": ("SDKSessionInfo", "get_session_info", "list_sessions"),
    "claude.messages": (
        "SessionMessage", "check_session", "get_session_messages", "get_subagent_messages", "list_subagents",
    ),
    "claude.paths": ("project_key_for_directory",),
    "claude.edit": ("archive_session", "delete_session", "rename_session", "tag_session", "unarchive_session"),
    "claude.session_stores.edit": (
        "delete_session_via_store", "fork_session_via_store", "rename_session_via_store", "tag_session_via_store",
    ),
    "claude.session_stores.import_": ("import_session_to_store",),
    "claude.session_stores.memory": ("InMemorySessionStore",),
    "claude.session_stores.protocol": (
        "SessionKey", "SessionListSubkeysKey", "SessionStore", "SessionStoreEntry", "SessionStoreFlushMode",
        "SessionStoreListEntry", "SessionSummaryEntry",
    ),
    "claude.session_stores.read": (
        "get_session_info_from_store", "get_session_messages_from_store", "get_subagent_messages_from_store",
        "list_sessions_from_store", "list_subagents_from_store",
    ),
    "claude.session_stores.summary": ("fold_session_summary",),
    # Above this room: it stands on the store and on sync's reader.
    "sources.claude.mirror": ("HithertoSessionStore",),
}  # fmt: skip
_HOME = {name: f"hitherto.{home}" for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'hitherto.claude' has no attribute {name!r}")
    return getattr(import_module(home), name)
