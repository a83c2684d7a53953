"""Recollect keeps every conversation with every agent.

    import recollect
    async with recollect.open("sqlite:///sessions.db") as sessions:
        session = await sessions.create(recollect.LOCAL, cwd="/home/me/project")
    async with recollect.create_session(model="claude-sonnet-4-6") as session:
        print((await session.prompt("What is this project about?")).result)

The public names are imported at their first use, so that `import recollect` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.errors import RecollectError as RecollectError
    from recollect.model import LOCAL as LOCAL
    from recollect.model import Change as Change
    from recollect.model import Checkpoint as Checkpoint
    from recollect.model import Draft as Draft
    from recollect.model import Entry as Entry
    from recollect.model import Fact as Fact
    from recollect.model import Filter as Filter
    from recollect.model import HistoryPage as HistoryPage
    from recollect.model import Hit as Hit
    from recollect.model import Identity as Identity
    from recollect.model import Image as Image
    from recollect.model import Lease as Lease
    from recollect.model import Page as Page
    from recollect.model import Plan as Plan
    from recollect.model import Principal as Principal
    from recollect.model import Session as Session
    from recollect.model import Text as Text
    from recollect.model import Thought as Thought
    from recollect.model import ToolCall as ToolCall
    from recollect.model import ToolResult as ToolResult
    from recollect.model import Usage as Usage
    from recollect.sdk.asking import ToolPermissionContext as ToolPermissionContext
    from recollect.sdk.functions import create_session as create_session
    from recollect.sdk.functions import prompt as prompt
    from recollect.sdk.functions import query as query
    from recollect.sdk.functions import resume_session as resume_session
    from recollect.sdk.functions import unstable_v2_create_session as unstable_v2_create_session
    from recollect.sdk.functions import unstable_v2_prompt as unstable_v2_prompt
    from recollect.sdk.functions import unstable_v2_resume_session as unstable_v2_resume_session
    from recollect.sdk.handle import SDKSession as SDKSession
    from recollect.sdk.messages import SDKAssistantMessage as SDKAssistantMessage
    from recollect.sdk.messages import SDKCompactBoundaryMessage as SDKCompactBoundaryMessage
    from recollect.sdk.messages import SDKMessage as SDKMessage
    from recollect.sdk.messages import SDKNoticeMessage as SDKNoticeMessage
    from recollect.sdk.messages import SDKPartialAssistantMessage as SDKPartialAssistantMessage
    from recollect.sdk.messages import SDKResultMessage as SDKResultMessage
    from recollect.sdk.messages import SDKSystemMessage as SDKSystemMessage
    from recollect.sdk.messages import SDKUserMessage as SDKUserMessage
    from recollect.sdk.options import SDKSessionOptions as SDKSessionOptions
    from recollect.service import Policy as Policy
    from recollect.service import Sessions as Sessions
    from recollect.wiring import open as open

__version__ = "0.1.0"

_HOMES = {
    "recollect.errors": ("RecollectError",),
    "recollect.model": (
        "LOCAL", "Change", "Checkpoint", "Draft", "Entry", "Fact", "Filter", "HistoryPage", "Hit", "Identity", "Image",
        "Lease", "Page", "Plan", "Principal", "Session", "Text", "Thought", "ToolCall", "ToolResult", "Usage",
    ),
    "recollect.sdk.asking": ("ToolPermissionContext",),
    "recollect.sdk.functions": (
        "create_session", "prompt", "query", "resume_session",
        "unstable_v2_create_session", "unstable_v2_prompt", "unstable_v2_resume_session",
    ),
    "recollect.sdk.handle": ("SDKSession",),
    "recollect.sdk.messages": (
        "SDKAssistantMessage", "SDKCompactBoundaryMessage", "SDKMessage", "SDKNoticeMessage",
        "SDKPartialAssistantMessage", "SDKResultMessage", "SDKSystemMessage", "SDKUserMessage",
    ),
    "recollect.sdk.options": ("SDKSessionOptions",),
    "recollect.service": ("Policy", "Sessions"),
    "recollect.wiring": ("open",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    return getattr(import_module(home), name)
