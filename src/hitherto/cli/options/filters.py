"""The options that filter a list or a search."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click
from msgspec.structs import replace

from hitherto.cli.command import Work
from hitherto.cli.options.values import day, folder
from hitherto.model import LOCAL, Archived, Filter
from hitherto.service import Sessions

_OPTIONS = (
    click.option("--cwd", metavar="FOLDER", help="Only sessions in this folder."),
    click.option("--here", is_flag=True, help="Only sessions in the current folder."),
    click.option(
        "--project",
        metavar="NAME",
        help="Only sessions of this project: github.com/ada/engine, or the end of its name, such as engine.",
    ),
    click.option(
        "--day",
        metavar="DAY",
        callback=day,
        help="Only sessions with a message on this day (UTC), such as 2026-11-15.",
    ),
    click.option("--agent", help="Only sessions with this agent."),
    click.option("--channel", help="Only sessions on this channel."),
    click.option("--source", help="Only sessions synced from this source, such as claude."),
    click.option(
        "--tag",
        "tags",
        metavar="TAG",
        multiple=True,
        help="Only sessions with this tag. Repeat the option to require several tags.",
    ),
)


def filtered(archived: Archived) -> Callable[[Work], Work]:
    """Add the filter options to a command, which receives the filter as `given`. `archived` is the default of `--archived`."""

    def decorate(work: Work) -> Work:
        @functools.wraps(work)
        async def narrowed(*given: Any, **rest: Any) -> int | None:
            wanted = _filter(rest)
            if wanted.project is not None:
                sessions: Sessions = given[0]
                wanted = replace(wanted, project=await sessions.projects.called(LOCAL, wanted.project))
            return await work(*given, given=wanted, **rest)

        chosen = click.option(
            "--archived",
            type=click.Choice(["exclude", "include", "only"]),
            default=archived,
            show_default=True,
            help="Exclude, include or show only archived sessions.",
        )
        for option in (chosen, *reversed(_OPTIONS)):
            narrowed = option(narrowed)
        return narrowed

    return decorate


def _filter(options: dict[str, Any]) -> Filter:
    """Remove the filter options from `options` and make the filter of them."""
    cwd, here = options.pop("cwd"), options.pop("here")
    if here and cwd is not None:
        raise click.UsageError("use either --cwd or --here, not both")
    return Filter(
        cwd=os.getcwd() if here else None if cwd is None else folder(cwd),
        project=options.pop("project"),
        day=options.pop("day"),
        agent_id=options.pop("agent"),
        channel=options.pop("channel"),
        source=options.pop("source"),
        tags=tuple(options.pop("tags")),
        archived=options.pop("archived"),
    )
