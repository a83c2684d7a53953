"""`/compaction`: a preview of what would leave the context and what would stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from markupsafe import Markup

from hitherto.clean_text import clean, clean_lines
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page import templates
from hitherto.gateway.page.render.code import markdown
from hitherto.gateway.page.render.rows import address
from hitherto.gateway.server.workers import Run
from hitherto.model import Entry, plain_text
from hitherto.service.compaction.plan import CompactionPreview
from hitherto.summaries.kept_tail import is_prompt

LINES, LINE_CHARS, STAYS_CHARS = 100, 160, 60


class Line(NamedTuple):
    """A prompt in one line, with its address."""

    text: str
    at: int
    address: str


async def compaction(caller: Caller, query: Mapping[str, str], run: Run, answers: bool) -> bytes:
    """Render the preview. `answers`: a model writes the summary."""
    home = caller.sessions.at(query.get("session", ""))
    session = await home.get(caller.who, query.get("session", ""))
    seen = await home.compaction.preview(caller.who, session.id)
    return await run(_render, session.id, seen, answers)


def _render(session_id: str, seen: CompactionPreview, answers: bool) -> bytes:
    prompts = [entry for entry in seen.retired if is_prompt(entry)]
    return templates.page(
        "compaction.html",
        session_id=session_id,
        seen=seen,
        lines=[_line(session_id, entry) for entry in prompts[-LINES:]],
        more=max(0, len(prompts) - LINES),
        stays=next((_line(session_id, entry, STAYS_CHARS) for entry in seen.kept if is_prompt(entry)), None),
        summary=Markup(markdown(clean_lines(seen.summary))),  # noqa: S704 - rendered without HTML, and filtered
        models=answers,
    )


def _line(session_id: str, entry: Entry, most: int = LINE_CHARS) -> Line:
    text = clean(" ".join(plain_text(entry)[: 4 * most].split()))
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return Line(short or "…", entry.at, address(session_id, entry.id))
