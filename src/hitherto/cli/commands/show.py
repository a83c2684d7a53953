"""`hitherto show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import replace

from hitherto.cli.command import command, picked_argument
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.options.values import no_pager_option
from hitherto.cli.terminal.entries import MARK_STYLE, Styled, write
from hitherto.cli.terminal.output import Output, clean
from hitherto.cli.terminal.transcript import print_entry
from hitherto.limits import HISTORY_PAGE
from hitherto.model import (
    CONTINUED_IN,
    CONTINUES,
    LOCAL,
    RECORDED_IN,
    RECORDS,
    Branch,
    HistoryPage,
    Session,
    View,
    decode_json,
)
from hitherto.presentation import formats, labels, usage
from hitherto.service import Sessions
from hitherto.values.usage.sessions import SessionUsage, TurnUsage

COMPACTED = "── compacted here: a summary replaces the earlier messages ──"
EVERY_BRANCH = "all"


@command(
    "hitherto show 019a8c0e",
    "hitherto show %3 --all",
    "hitherto show 019a8c0e --around ENTRY --limit 10",
    "hitherto show claude:3d2a7a53 --branch 1",
    opens="read",
    picks="session",
)
@picked_argument
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
@click.option(
    "--branch",
    metavar="BRANCH",
    help="Show another branch of a synced session, by its number or id; `all` shows every branch after the conversation.",
)
@click.option("--all", "everything", is_flag=True, help="Show all messages, regardless of --limit.")
@no_pager_option
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str,
    view: View,
    limit: int,
    everything: bool,
    no_pager: bool,
    branch: str | None,
    **anchors: str | None,
) -> None:
    """Show a session, what it used and cost, and its messages, by default the last 20. Behind each turn stands what it used.

    On a terminal, Markdown, code and diffs are rendered, and a pager shows what does not fit: that of PAGER, else less.

    A session of another agent may have branches beside its conversation: what was rewound, edited or resumed elsewhere.
    """
    session_id = await named_session(sessions, session)
    shown = await sessions.get(LOCAL, session_id)
    used = await sessions.usage(LOCAL, session_id)
    known = await sessions.branches.known(LOCAL, session_id)
    if branch == EVERY_BRANCH:
        if everything or any(anchors.values()):
            raise click.UsageError(f"--branch {EVERY_BRANCH} cannot be combined with --all or an entry")
        with out.paged(wanted=not no_pager):
            await _show_tree(sessions, out, shown, used, view, known)
        return
    checkpoint = None if branch is None else (await sessions.branches.resolve(LOCAL, session_id, branch)).id
    if everything:
        if any(anchors.values()):
            raise click.UsageError("--all cannot be combined with --before, --after or --around")
        page = await _everything(sessions, session_id, view, checkpoint)
    else:
        last = all(anchor is None for anchor in anchors.values())
        page = await sessions.history(
            LOCAL,
            session_id,
            view=view,
            checkpoint=checkpoint,
            before=anchors["before"],
            after=anchors["after"],
            around=anchors["around"],
            last=last,
            limit=limit,
        )
    page = replace(page, branch=checkpoint or page.branch)
    if out.json:
        out.document(_document(shown, used, view, page, known))
    else:
        with out.paged(wanted=not no_pager):
            print_page(out, shown, page, used)
            _note_branches(out, known, page.branch)


async def _show_tree(
    sessions: Sessions, out: Output, shown: Session, used: SessionUsage, view: View, known: Sequence[Branch]
) -> None:
    """All of the conversation, then what each branch adds to it."""
    page = await _everything(sessions, shown.id, view, None)
    own = [await _everything(sessions, shown.id, "conversation", each.id, each.after) for each in known]
    if out.json:
        tree = [{**_branch(each), "entries": _entries(added)} for each, added in zip(known, own, strict=True)]
        out.document({**_document(shown, used, view, page, known), "branches": tree})
        return
    print_page(out, shown, page, used)
    for number, (each, added) in enumerate(zip(known, own, strict=True), 1):
        place = f"after {each.after}" if each.after else "from the beginning"
        write(out)
        write(out, Styled(f"── branch {number}, {place} ──", MARK_STYLE))
        _print_entries(out, added)


def _note_branches(out: Output, known: Sequence[Branch], shown: str | None) -> None:
    """Say which branch this is, or that there are others."""
    numbers = {each.id: number for number, each in enumerate(known, 1)}
    if shown is not None:
        out.note(f"This is branch {numbers[shown]}. For the conversation, leave out --branch.")
    elif len(known) == 1:
        out.note("This session has another branch. To see it, use --branch 1.")
    elif known:
        out.note(
            f"This session has {len(known)} other branches. To see them, use --branch 1 or --branch all."
        )


async def _everything(
    sessions: Sessions, session_id: str, view: View, checkpoint: str | None, start: str | None = None
) -> HistoryPage:
    """The whole view, or all of it after an entry, as one page."""

    async def after(entry: str | None) -> HistoryPage:
        return await sessions.history(
            LOCAL, session_id, view=view, checkpoint=checkpoint, after=entry, limit=HISTORY_PAGE
        )

    page = await after(start)
    while page.next is not None:
        more = await after(page.next)
        marks = (*page.marks, *(len(page.raw) + mark for mark in more.marks))
        page = replace(page, raw=(*page.raw, *more.raw), marks=marks, next=more.next)
    return page


def _document(
    session: Session, used: SessionUsage, view: View, page: HistoryPage, known: Sequence[Branch]
) -> dict[str, Any]:
    return {
        "session": session,
        "usage": {**used.fields, "turns": [turn.fields for turn in used.turns]},
        "view": view,
        "total": page.total,
        "entries": _entries(page),
        "marks": page.marks,
        "previous": page.previous,
        "next": page.next,
        "branch": page.branch,
        "branches": [_branch(each) for each in known],
    }


def _entries(page: HistoryPage) -> list[Any]:
    return [decode_json(raw) for raw in page.raw]


def _branch(branch: Branch) -> dict[str, Any]:
    known: dict[str, Any] = to_builtins(branch)
    return known


def print_page(out: Output, session: Session, page: HistoryPage, used: SessionUsage) -> None:
    """Print a session and a page of its messages, with what it and the turns of its conversation used."""
    for name, value in _facts(session, used, local=out.terminal):
        write(out, Styled(f"{name}:", "dim"), Styled(f" {clean(value)}", "bold" if name == "title" else ""))
    _print_entries(out, page, () if page.branch is not None else used.turns)
    if page.previous is not None:
        out.note(f"For earlier messages, use --before {page.previous} or --all.")
    if page.next is not None:
        out.note(f"For later messages, use --after {page.next} or --all.")


def _print_entries(out: Output, page: HistoryPage, turns: Sequence[TurnUsage] = ()) -> None:
    """The messages; behind the last of each turn, if that is among them, what the turn used."""
    prompts = {turn.prompt: place for place, turn in enumerate(turns)}
    running: TurnUsage | None = None
    for position, entry in enumerate(page.entries):
        if entry.id in prompts:
            _print_turn(out, running)
            running = turns[prompts[entry.id]]
        write(out)
        if position in page.marks:
            heading = labels.episode(entry)
            write(out, Styled(f"── {heading} ──" if heading else COMPACTED, MARK_STYLE))
        print_entry(out, entry)
    if page.next is None:
        _print_turn(out, running or (turns[-1] if turns else None))


def _print_turn(out: Output, turn: TurnUsage | None) -> None:
    if turn is not None:
        write(out)
        write(out, Styled(f"── {usage.turn(turn)} ──", "dim"))


def _facts(session: Session, used: SessionUsage, *, local: bool) -> Iterator[tuple[str, str]]:
    """The known facts about the session, in order."""
    time = formats.local if local else formats.utc
    known = {
        "title": session.title,
        "session": session.id,
        "folder": session.cwd,
        "created": time(session.created_at),
        "active": time(session.updated_at),
        **_numbers(used),
        "size": formats.size(session.bytes),
        "marks": formats.marks(session, failed=used.failed),
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


def _numbers(used: SessionUsage) -> dict[str, str]:
    return {
        "messages": usage.messages(used),
        "context": usage.context(used) if used.messages else "",
        "model": used.model or "",
        "tokens": usage.tokens(used.usage),
        "cost": usage.cost(used.usage),
        "duration": formats.duration(used.duration_ms) if used.duration_ms else "",
        "tool failures": str(used.tool_failures or ""),
    }
