"""The options that narrow a list or a search, and the filter they make."""

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
    click.option("--cwd", metavar="FOLDER", help="Only sessions of this folder."),
    click.option("--here", is_flag=True, help="Only sessions of the current folder."),
    click.option(
        "--project",
        metavar="NAME",
        help="Only sessions of this project: github.com/ada/engine, or the end of its name.",
    ),
    click.option(
        "--day",
        metavar="DAY",
        callback=day,
        help="Only sessions in which something was said on this day: 2026-11-15, in UTC.",
    ),
    click.option("--agent", help="Only sessions of this agent."),
    click.option("--channel", help="Only sessions of this channel."),
    click.option("--source", help="Only sessions read from this source."),
    click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="Only sessions with this tag; may be repeated."
    ),
)


def filtered(archived: Archived) -> Callable[[Work], Work]:
    """Give a command the options that narrow; it gets them as `given`. `archived` is what holds unless told."""

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
            help="What to do with archived sessions.",
        )
        for option in (chosen, *reversed(_OPTIONS)):
            narrowed = option(narrowed)
        return narrowed

    return decorate


def _filter(options: dict[str, Any]) -> Filter:
    """The filter that the options mean, which are taken out."""
    cwd, here = options.pop("cwd"), options.pop("here")
    if here and cwd is not None:
        raise click.UsageError("give --cwd or --here, not both")
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
