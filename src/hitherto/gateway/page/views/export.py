"""`/export`: the formats and the secrets that would be replaced; `/resume`: commands to continue a session elsewhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from markupsafe import Markup

from hitherto.clean_text import clean
from hitherto.exports import FORMATS, format_named
from hitherto.exports.lines import Replaced
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.methods.transfer import EXPORT_BYTES
from hitherto.gateway.page import templates
from hitherto.gateway.page.list_query import SOURCES
from hitherto.gateway.page.render.transcript import SPEAKERS
from hitherto.gateway.server.workers import Run, beside
from hitherto.model import Entry, Session, decode_json, encode
from hitherto.presentation import formats
from hitherto.service.transfer.export import ExportReview
from hitherto.sources.handoff.resume import resume_command

FORMAT_TEXTS = {
    "html": ("Page", "One HTML file to read. It loads and runs nothing."),
    "markdown": ("Markdown", "To read, or to paste elsewhere."),
    "jsonl": ("JSON lines", "Everything, with checkpoints and facts. You can import it again."),
    "json": ("JSON", "The messages, for other programs. You can import it again."),
}
PLACE_LABELS = {
    "session": "Title, tags and metadata",
    "facts": "Facts in memory",
    "raw copies": "Files of the agent",
}
AROUND, SNIPPETS = 60, 3
_PLACEHOLDER = re.compile(r"\[redacted: [^\]]{1,60}\]")


class Change(NamedTuple):
    """The replacements in one place, with snippets of the result."""

    where: str
    at: int | None
    replaced: list[Replaced]
    snippets: list[Markup]


class ResumeCommand(NamedTuple):
    """Where a session can be resumed, and the command."""

    where: str
    line: str
    note: str = ""


async def export(caller: Caller, query: Mapping[str, str], run: Run, _: bool) -> bytes:
    """Render the formats, and the replacements in the chosen one."""
    home = caller.sessions.at(query.get("session", ""))
    session = await home.get(caller.who, query.get("session", ""))
    chosen = query["format"] if query.get("format") in FORMATS else "html"
    seen = await home.transfer.review(caller.who, session.id, chosen, beside=beside(run))
    return await run(_render, session, chosen, seen, caller.may("raw"))


async def resume(caller: Caller, query: Mapping[str, str], _: Run, __: bool) -> bytes:
    """Render the commands."""
    session = await caller.sessions.at(query.get("session", "")).get(caller.who, query.get("session", ""))
    return templates.page("resume.html", session=session, ways=list(_resume_commands(session)))


def _render(session: Session, chosen: str, seen: ExportReview, raw: bool) -> bytes:
    format = format_named(chosen)
    return templates.page(
        "export.html",
        session=session,
        formats=[(name, *words) for name, words in FORMAT_TEXTS.items()],
        chosen=chosen,
        media_type=format.media_type,
        file=f"{_file_name(session)}{format.suffix}",
        size=formats.size(seen.size),
        too_large=seen.size > EXPORT_BYTES,
        secrets=sum(each.count for each in seen.replaced),
        changes=list(_changes(seen)),
        raw=raw,
    )


def _changes(seen: ExportReview) -> Iterator[Change]:
    """The replacements by place, in order of appearance."""
    shown = {entry.id: entry for entry in seen.entries}
    places: dict[tuple[str | None, str | None], list[Replaced]] = {}
    for each in seen.replaced:
        places.setdefault((each.entry, each.where), []).append(each)
    for (entry_id, where), replaced in places.items():
        entry = shown.get(entry_id or "")
        label = (
            SPEAKERS[entry.role]
            if entry
            else "Message"
            if entry_id
            else PLACE_LABELS.get(where or "", where or "")
        )
        yield Change(label, entry.at if entry else None, replaced, list(_snippets(entry)) if entry else [])


def _snippets(entry: Entry) -> Iterator[Markup]:
    """The text around placeholders, in the first texts that have any."""
    found = (text for text in _texts(decode_json(encode(entry))) if _PLACEHOLDER.search(text))
    return map(_snippet, islice(found, SNIPPETS))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _snippet(text: str) -> Markup:
    """The text around the first placeholder, with all placeholders in it marked."""
    first = next(_PLACEHOLDER.finditer(text)).start()
    start, stop = max(0, first - AROUND), first + 4 * AROUND
    pieces = _PLACEHOLDER.split(text[start:stop])
    marks = [clean(each) for each in _PLACEHOLDER.findall(text[start:stop])]
    shown = Markup("").join(
        Markup("{}<mark>{}</mark>").format(clean(piece), mark) if mark else clean(piece)
        for piece, mark in zip_longest(pieces, marks)
    )
    return Markup("{}{}{}").format("…" if start else "", shown, "…" if stop < len(text) else "")


def _file_name(session: Session) -> str:
    """A file name from the title that is valid on every system."""
    words = re.sub(r"[^\w]+", "-", clean(session.title or ""), flags=re.ASCII).strip("-").lower()
    return words[:60].rstrip("-") or "session"


def _resume_commands(session: Session) -> Iterator[ResumeCommand]:
    if (how := resume_command(session)) is not None:
        yield ResumeCommand(f"In {SOURCES.get(session.source or '', session.source)}", how.line)
    folder = f"cd {shlex.quote(session.cwd)} && " if session.cwd else ""
    note = "This continues in a fork. The session itself does not change." if session.source else ""
    yield ResumeCommand(
        "In a terminal, with Hitherto", f"{folder}hitherto chat {shlex.quote(session.id)}", note
    )
