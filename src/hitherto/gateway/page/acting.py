"""What is shown before something is done with a session, and the pages on which two, or one of another time, are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from hitherto.gateway.bearer import Caller
from hitherto.gateway.page.checkpoints import checkpoint, checkpoints
from hitherto.gateway.page.comparing import compare
from hitherto.gateway.page.foreseeing import compaction
from hitherto.gateway.page.taking import export, resume

Look = Callable[[Caller, Mapping[str, str], bool], Awaitable[bytes]]
"""A page, for what its address says; the last tells whether there is something that answers prompts."""

LOOKS: dict[str, Look] = {
    "/compaction": compaction,
    "/checkpoints": checkpoints,
    "/checkpoint": checkpoint,
    "/compare": compare,
    "/export": export,
    "/resume": resume,
}
