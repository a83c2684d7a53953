"""Hitherto keeps every conversation with every agent.

    import hitherto
    async with hitherto.open("sqlite:///sessions.db") as sessions:
        session = await sessions.create(hitherto.LOCAL, cwd="/home/me/project")
    async with hitherto.create_session(model="claude-sonnet-4-6") as session:
        print((await session.prompt("What is this project about?")).result)

The public names are imported at their first use, so that `import hitherto` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitherto.composition import open as open
    from hitherto.errors import HithertoError as HithertoError
    from hitherto.model import LOCAL as LOCAL
    from hitherto.model import Change as Change
    from hitherto.model import Checkpoint as Checkpoint
    from hitherto.model import Draft as Draft
    from hitherto.model import Entry as Entry
    from hitherto.model import Fact as Fact
    from hitherto.model import Filter as Filter
    from hitherto.model import HistoryPage as HistoryPage
    from hitherto.model import Hit as Hit
    from hitherto.model import Identity as Identity
    from hitherto.model import Image as Image
    from hitherto.model import Lease as Lease
    from hitherto.model import Page as Page
    from hitherto.model import Plan as Plan
    from hitherto.model import Principal as Principal
    from hitherto.model import Session as Session
    from hitherto.model import Text as Text
    from hitherto.model import Thought as Thought
    from hitherto.model import ToolCall as ToolCall
    from hitherto.model import ToolResult as ToolResult
    from hitherto.model import Usage as Usage
    from hitherto.sdk.functions import create_session as create_session
    from hitherto.sdk.functions import prompt as prompt
    from hitherto.sdk.functions import query as query
    from hitherto.sdk.functions import resume_session as resume_session
    from hitherto.sdk.functions import unstable_v2_create_session as unstable_v2_create_session
    from hitherto.sdk.functions import unstable_v2_prompt as unstable_v2_prompt
    from hitherto.sdk.functions import unstable_v2_resume_session as unstable_v2_resume_session
    from hitherto.sdk.messages import SDKAssistantMessage as SDKAssistantMessage
    from hitherto.sdk.messages import SDKCompactBoundaryMessage as SDKCompactBoundaryMessage
    from hitherto.sdk.messages import SDKMessage as SDKMessage
    from hitherto.sdk.messages import SDKNoticeMessage as SDKNoticeMessage
    from hitherto.sdk.messages import SDKPartialAssistantMessage as SDKPartialAssistantMessage
    from hitherto.sdk.messages import SDKResultMessage as SDKResultMessage
    from hitherto.sdk.messages import SDKSystemMessage as SDKSystemMessage
    from hitherto.sdk.messages import SDKUserMessage as SDKUserMessage
    from hitherto.sdk.options import SDKSessionOptions as SDKSessionOptions
    from hitherto.sdk.permission import ToolPermissionContext as ToolPermissionContext
    from hitherto.sdk.session import SDKSession as SDKSession
    from hitherto.sdk.session_edit import delete_session as delete_session
    from hitherto.sdk.session_edit import fork_session as fork_session
    from hitherto.sdk.session_edit import rename_session as rename_session
    from hitherto.sdk.session_edit import tag_session as tag_session
    from hitherto.sdk.session_list import get_session_info as get_session_info
    from hitherto.sdk.session_list import list_sessions as list_sessions
    from hitherto.sdk.session_messages import get_session_messages as get_session_messages
    from hitherto.service import Policy as Policy
    from hitherto.service import Sessions as Sessions

__version__ = "0.1.0"

_HOMES = {
    "hitherto.errors": ("HithertoError",),
    "hitherto.model": (
        "LOCAL", "Change", "Checkpoint", "Draft", "Entry", "Fact", "Filter", "HistoryPage", "Hit", "Identity", "Image",
        "Lease", "Page", "Plan", "Principal", "Session", "Text", "Thought", "ToolCall", "ToolResult", "Usage",
    ),
    "hitherto.sdk.permission": ("ToolPermissionContext",),
    "hitherto.sdk.functions": (
        "create_session", "prompt", "query", "resume_session",
        "unstable_v2_create_session", "unstable_v2_prompt", "unstable_v2_resume_session",
    ),
    "hitherto.sdk.session": ("SDKSession",),
    "hitherto.sdk.session_edit": ("delete_session", "fork_session", "rename_session", "tag_session"),
    "hitherto.sdk.session_list": ("get_session_info", "list_sessions"),
    "hitherto.sdk.session_messages": ("get_session_messages",),
    "hitherto.sdk.messages": (
        "SDKAssistantMessage", "SDKCompactBoundaryMessage", "SDKMessage", "SDKNoticeMessage",
        "SDKPartialAssistantMessage", "SDKResultMessage", "SDKSystemMessage", "SDKUserMessage",
    ),
    "hitherto.sdk.options": ("SDKSessionOptions",),
    "hitherto.service": ("Policy", "Sessions"),
    "hitherto.composition": ("open",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'hitherto' has no attribute {name!r}")
    return getattr(import_module(home), name)
