"""`hitherto statusline`."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import date
from typing import Any

from hitherto.cli.command import command
from hitherto.cli.options.values import local_zone
from hitherto.cli.terminal.output import Output
from hitherto.errors import HithertoError
from hitherto.model import LOCAL, Json
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.values.usage.sessions import SessionUsage

GIVEN_CHARS = 1_000_000
PREFIXES = ("claude:", "codex:", "")


@command("hitherto statusline < status.json", opens="read", or_none=True)
async def run(sessions: Sessions, out: Output) -> None:
    """Print one line for an agent's status bar: the session's cost and context, and what today cost.

    Claude Code runs the command of `statusLine` in its settings and gives it JSON with `session_id` on standard input. Without
    input, the line tells of today only.
    """
    given = _given()
    used = await _usage(sessions, given.get("session_id"))
    today = date.today().isoformat()
    spent = await sessions.spending.report(
        LOCAL, since_day=today, until_day=today, period=None, zone=local_zone(), seconds=1.0
    )
    session = None if used is None else formats.about_cost(used.usage)
    reported = _reported(given)
    if out.json:
        out.document(
            {"session": used, "reported_usd": reported, "today": spent.total, "complete": spent.complete}
        )
        return
    parts = [
        formats.cost(reported) if session is None and reported is not None else session,
        None if used is None else f"context {used.context_tokens * 100 // used.window}%",
        f"today {formats.about_cost(spent.total)}",
    ]
    out.line(" · ".join(filter(None, parts)))


def _given() -> Json:
    """What the agent says, if anything."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    try:
        value = json.loads(sys.stdin.read(GIVEN_CHARS) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


async def _usage(sessions: Sessions, session_id: Any) -> SessionUsage | None:
    """The usage of the agent's session, if it was synced."""
    for prefix in PREFIXES if isinstance(session_id, str) and session_id else ():
        with suppress(HithertoError):
            return await sessions.usage(LOCAL, f"{prefix}{session_id}")
    return None


def _reported(given: Json) -> float | None:
    cost = given.get("cost")
    said = cost.get("total_cost_usd") if isinstance(cost, dict) else None
    return float(said) if isinstance(said, int | float) and 0 <= said < 1e9 else None
