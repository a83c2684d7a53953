"""`hitherto` alone on a terminal: the picker, again and again until a session is resumed or the user leaves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import click

from hitherto.cli.command import on_terminal, pick
from hitherto.cli.picker import Choice
from hitherto.cli.terminal.input import bare_interrupts
from hitherto.errors import StoreNotFound
from hitherto.settings import read_settings, store_url

LESS = "R"
"""Of less: it stays until it is left, however short the session is, because the picker comes back then."""
Run = Callable[..., int]
"""Runs a command and returns its exit code."""


def start(run: Run) -> bool:
    """Choose sessions and do something with them. False without a terminal."""
    if not on_terminal():
        return False
    os.environ.setdefault("LESS", LESS)
    choice = _chosen(run, "")
    while choice is not None and _acted(run, choice):
        choice = _chosen(run, choice.query)
    return True


def _chosen(run: Run, query: str) -> Choice | None:
    with bare_interrupts():
        try:
            return asyncio.run(pick(None, query=query))
        except StoreNotFound:
            if not (read_settings().syncs and store_url(None).startswith("sqlite:")):
                raise
    run("sync")
    with bare_interrupts():
        return asyncio.run(pick(None, query=query))


def _acted(run: Run, choice: Choice) -> bool:
    """Do what was chosen; whether the picker is shown again."""
    first, *_ = choice.sessions
    match choice.action:
        case "resume":
            run("resume", first, "--exec")
            return False
        case "read":
            run("show", first, "--all")
        case "export":
            _export(run, choice.sessions)
        case "tag":
            tags = click.prompt("Tags", default="", show_default=False).split()
            for session in choice.sessions if tags else ():
                run("tag", session, *tags)
    return True


def _export(run: Run, sessions: tuple[str, ...]) -> None:
    """One session as a page to read, several as JSON lines, into this folder."""
    kind = "html" if len(sessions) == 1 else "jsonl"
    name = click.prompt("Export to", default=f"session.{kind}")
    options = ["--format", "html"] if name.endswith((".html", ".htm")) else []
    run("export", *sessions, *options, "-o", name)
    click.pause()
