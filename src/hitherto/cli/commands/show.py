"""`hitherto show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from msgspec.structs import replace

from hitherto.cli.command import command, session_argument
from hitherto.cli.terminal.entries import MARK_STYLE, Styled, print_entry, write
from hitherto.cli.terminal.output import Output, clean
from hitherto.limits import HISTORY_PAGE
from hitherto.model import (
    CONTINUED_IN,
    CONTINUES,
    LOCAL,
    RECORDED_IN,
    RECORDS,
    HistoryPage,
    Session,
    View,
    decode_json,
)
from hitherto.presentation import formats
from hitherto.service import Sessions

COMPACTED = "── compacted here: a summary replaces the earlier messages ──"


@command(
    "hitherto show 019a8c0e",
    "hitherto show 019a8c0e --all | less",
    "hitherto show 019a8c0e --around ENTRY --limit 10",
    opens="read",
)
@session_argument
@click.option(
    "--view",
    type=click.Choice(["context", "conversation"]),
    default="conversation",
    show_default=True,
    help="The whole conversation, or the context that the model sees.",
)
@click.option(
    "--limit", type=int, default=20, show_default=True, help=f"How many messages, at most {HISTORY_PAGE}."
)
@click.option("--before", metavar="ENTRY", help="Show the messages before this one.")
@click.option("--after", metavar="ENTRY", help="Show the messages after this one.")
@click.option("--around", metavar="ENTRY", help="Show this message and its neighbours.")
@click.option("--all", "everything", is_flag=True, help="Show all messages, regardless of --limit.")
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str,
    view: View,
    limit: int,
    everything: bool,
    **anchors: str | None,
) -> None:
    """Show a session and its messages, by default the last 20."""
    session_id = await sessions.resolve(LOCAL, session)
    shown = await sessions.get(LOCAL, session_id)
    if everything:
        if any(anchors.values()):
            raise click.UsageError("--all cannot be combined with --before, --after or --around")
        page = await _everything(sessions, session_id, view)
    else:
        last = all(anchor is None for anchor in anchors.values())
        page = await sessions.history(
            LOCAL,
            session_id,
            view=view,
            before=anchors["before"],
            after=anchors["after"],
            around=anchors["around"],
            last=last,
            limit=limit,
        )
    if out.json:
        out.document(_document(shown, view, page))
    else:
        print_page(out, shown, page)


async def _everything(sessions: Sessions, session_id: str, view: View) -> HistoryPage:
    """The whole view as one page."""
    page = await sessions.history(LOCAL, session_id, view=view, limit=HISTORY_PAGE)
    while page.next is not None:
        more = await sessions.history(LOCAL, session_id, view=view, after=page.next, limit=HISTORY_PAGE)
        marks = (*page.marks, *(len(page.raw) + mark for mark in more.marks))
        page = replace(page, raw=(*page.raw, *more.raw), marks=marks, next=more.next)
    return page


def _document(session: Session, view: View, page: HistoryPage) -> dict[str, Any]:
    return {
        "session": session,
        "view": view,
        "total": page.total,
        "entries": [decode_json(raw) for raw in page.raw],
        "marks": page.marks,
        "previous": page.previous,
        "next": page.next,
    }


def print_page(out: Output, session: Session, page: HistoryPage) -> None:
    """Print a session and a page of its messages."""
    for name, value in _facts(session, local=out.terminal):
        write(out, Styled(f"{name}:", "dim"), Styled(f" {clean(value)}", "bold" if name == "title" else ""))
    for position, entry in enumerate(page.entries):
        write(out)
        if position in page.marks:
            write(out, Styled(COMPACTED, MARK_STYLE))
        print_entry(out, entry)
    if page.previous is not None:
        out.note(f"For earlier messages, use --before {page.previous} or --all.")
    if page.next is not None:
        out.note(f"For later messages, use --after {page.next} or --all.")


def _facts(session: Session, *, local: bool) -> Iterator[tuple[str, str]]:
    """The known facts about the session, in order."""
    time = formats.local if local else formats.utc
    known = {
        "title": session.title,
        "session": session.id,
        "folder": session.cwd,
        "created": time(session.created_at),
        "active": time(session.updated_at),
        "messages": str(session.message_count),
        "tokens": None if session.token_count is None else str(session.token_count),
        "cost": None if session.cost is None else formats.exact_cost(session.cost),
        "size": formats.size(session.bytes),
        "marks": formats.marks(session),
        "agent": session.agent_id,
        "channel": session.channel,
        "source": session.source,
        "forked from": session.parent,
        "records": ", ".join(session.meta.get(RECORDS, ())),
        "recorded in": session.meta.get(RECORDED_IN),
        "continues": session.meta.get(CONTINUES),
        "continued in": ", ".join(session.meta.get(CONTINUED_IN, ())),
        "earlier titles": "; ".join(session.earlier_titles),
    }
    yield from ((name, value) for name, value in known.items() if value)
