"""`hitherto why`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from hitherto.cli.command import command
from hitherto.cli.options.session_ids import short_ids
from hitherto.cli.source_lines import read_changes
from hitherto.cli.terminal.output import Output, clean
from hitherto.edits.origins import Cause, causes
from hitherto.errors import SessionNotFound
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command(
    "hitherto why HEAD",
    "hitherto why main..feature --markdown",
    "git diff | hitherto why -",
    opens="read",
)
@click.argument("commit", metavar="COMMIT")
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
@click.option(
    "-C", "folder", metavar="FOLDER", default=".", help="The repository; by default the current folder."
)
async def run(sessions: Sessions, out: Output, *, commit: str, markdown: bool, folder: str) -> None:
    """Show which sessions made a commit, a range of commits (A..B), or a diff on standard input (-), and the prompts that led
    to it.

    Each session has the share of the added lines that it wrote, and how sure that is. If no session is known to have made the
    change, none is named.

    In a pipe, each line has these tab-separated fields: session, share, confidence, first prompt.
    """
    changes, repository = read_changes(commit, folder)
    lines = [line for change in changes for line in change.lines]
    found = causes(lines, await sessions.edits.trace(LOCAL, lines, repository))
    if out.json:
        out.document({"sessions": found})
    elif markdown:
        out.text(await _markdown(sessions, found))
    elif out.terminal:
        await _draw(sessions, out, found)
    else:
        for each in found:
            out.row(each.session, each.share, each.confidence, next(iter(each.prompts), None))


async def titles(sessions: Sessions, ids: Iterable[str]) -> dict[str, str]:
    """The titles of sessions."""
    found: dict[str, str] = {}
    for each in dict.fromkeys(ids):
        try:
            found[each] = formats.title(await sessions.get(LOCAL, each))
        except SessionNotFound:  # it was deleted meanwhile
            found[each] = each
    return found


async def _draw(sessions: Sessions, out: Output, found: tuple[Cause, ...]) -> None:
    from rich.text import Text

    if not found:
        out.note("No session is known to have made this.")
    named, short = (
        await titles(sessions, (each.session for each in found)),
        await short_ids(sessions, (each.session for each in found)),
    )
    for each in found:
        out.draw(
            Text.assemble(
                (clean(short[each.session]), "cyan"),
                f"  {each.share:.0%} of the lines  ",
                (clean(named[each.session]), "bold"),
                (f"  confidence {each.confidence:.0%}", "dim"),
            )
        )
        for prompt in each.prompts:
            out.draw(Text(f"  > {clean(prompt)[:300]}"))


async def _markdown(sessions: Sessions, found: tuple[Cause, ...]) -> str:
    if not found:
        return "No session is known to have made this change."
    named = await titles(sessions, (each.session for each in found))
    parts = ["| Session | Lines | Confidence |", "|---|--:|--:|"]
    parts += [
        f"| {_cell(named[each.session])} (`{clean(each.session)}`) | {each.share:.0%} | {each.confidence:.0%} |"
        for each in found
    ]
    for each in found:
        parts += ["", f"**{_cell(named[each.session])}**", ""]
        parts += [f"> {_cell(prompt)[:600]}\n" for prompt in each.prompts]
    return "\n".join(parts).rstrip()


def _cell(text: str) -> str:
    """Text that stays text in a table of Markdown."""
    plain = " ".join(clean(text).split())
    for sign in "\\`*_[]<>|#":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
