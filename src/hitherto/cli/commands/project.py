"""`hitherto project`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions


@command(
    "hitherto project",
    "hitherto project webshop --rename maya/webshop",
    opens=lambda *, new, **_: "read" if new is None else "change",
)
@click.argument("name", required=False)
@click.option(
    "--rename",
    "new",
    metavar="NAME",
    help="Rename it; a project that has this name already is merged with it.",
)
async def run(sessions: Sessions, out: Output, *, name: str | None, new: str | None) -> None:
    """List your projects, or rename one or merge it with another.

    A repository is one project in all its folders, worktrees and clones. Sessions that are synced later go by the new name
    too. In a pipe, each line has the name of a project and its number of sessions, separated by a tab.
    """
    if new is not None:
        if name is None:
            raise click.UsageError("name the project to rename")
        await _rename(sessions, out, await sessions.projects.called(LOCAL, name), new)
        return
    found = await sessions.projects.counts(LOCAL)
    if name is not None:
        wanted = await sessions.projects.called(LOCAL, name)
        found = tuple(each for each in found if each[0] == wanted)
    if out.json:
        out.document({"projects": [{"name": each, "sessions": number} for each, number in found]})
    elif out.terminal:
        out.table(("PROJECT", "SESSIONS"), [(each, str(number)) for each, number in found])
    else:
        for each in found:
            out.row(*each)


async def _rename(sessions: Sessions, out: Output, project: str, new: str) -> None:
    moved = await sessions.projects.rename(LOCAL, project, new)
    if out.json:
        out.document({"project": new, "sessions": moved})
    else:
        out.note(f"{project} is {new} now: {formats.counted(moved, 'session')}.")
