"""What all commands share: `--json`, `--store`, examples in the help, an open store, completion of session ids."""

from __future__ import annotations

import asyncio
import functools
import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hitherto import composition
from hitherto.cli.picker import Choice, Picker
from hitherto.cli.terminal.input import bare_interrupts, interrupts
from hitherto.cli.terminal.output import Output, clean
from hitherto.errors import HithertoError, StoreNotFound
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL, Filter
from hitherto.ports import Mode
from hitherto.service import Sessions
from hitherto.settings import STORE, earlier_store, is_server, store_url

T = TypeVar("T")
Opens = Mode | Callable[..., Mode]
Named = str | None | tuple[str, ...]
"""A session, or several, as they were named; none if nothing was."""
Work = Callable[..., Coroutine[Any, Any, int | None]]

JSON_OPTION = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of text.")
STORE_OPTION = click.Option(
    ["--store"],
    metavar="URL",
    help=f"The store: the path of a SQLite file, a URL, or the address of a server.  [env: {STORE}]",
)


def command(
    *examples: str, opens: Opens = "change", or_none: bool = False, picks: str | None = None
) -> Callable[[Work], click.Command]:
    """Turn `async def run(sessions, out, …)` into a command. Its return value, if any, is the exit code.

    `opens` is what the store is opened for, or a function of the command's options that tells. With `or_none`, the command
    works before there is a store, as if that were empty; not if `--store` names it. `picks` names the argument for a session that
    is chosen with the picker if it was left out on a terminal.
    """

    def decorate(work: Work) -> click.Command:
        @functools.wraps(work)
        def run(store: str | None, as_json: bool, **given: Any) -> int | None:
            out = Output(as_json=as_json)
            mention_earlier_store(store, out)
            if picks is not None and not given[picks]:
                given[picks] = _picked(store, given[picks], asked=not (as_json or given.get("everything")))
            mode = opens(**given) if callable(opens) else opens
            with bare_interrupts():
                return asyncio.run(
                    _with_sessions(
                        store, mode, lambda sessions: work(sessions, out, **given), or_none=or_none
                    )
                )

        made = click.command(epilog=examples_text(examples))(run)
        made.params += [JSON_OPTION, STORE_OPTION]
        return made

    return decorate


def on_terminal() -> bool:
    """Whether somebody types and sees what is drawn."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _picked(store: str | None, named: Named, *, asked: bool) -> Named:
    """The session that the user chooses. Without a terminal, or if it is not asked for, one has to be named."""
    if not (asked and on_terminal()):
        if named is None:
            raise click.UsageError("Missing argument 'SESSION'.")
        return named
    choice = asyncio.run(pick(store, acts=False))
    if choice is None:
        raise click.Abort
    return choice.sessions[0] if named is None else choice.sessions


async def pick(store: str | None, *, query: str = "", acts: bool = True) -> Choice | None:
    """What the user chooses in the picker; None if they leave."""
    return await Picker(
        lambda: _opened(store_url(store), "read"), os.getcwd(), query=query, acts=acts
    ).choose()


def examples_text(examples: tuple[str, ...]) -> str:
    """The examples at the end of a command's help."""
    return "\b\n" + "\n".join(("Examples:", *(f"  {line}" for line in examples)))


def mention_earlier_store(store: str | None, out: Output) -> None:
    """At the first start, point out a store that the program wrote under its former name."""
    if (left := earlier_store(store)) is not None:
        out.note(
            f"Found the store of an earlier version: {left}. To use it, run: export {STORE}={shlex.quote(f'sqlite:///{left}')}"
        )


async def _with_sessions(
    store: str | None, mode: Mode, work: Callable[[Sessions], Awaitable[T]], *, or_none: bool = False
) -> T:
    with interrupts():
        async with AsyncExitStack() as stack:
            try:
                sessions = await stack.enter_async_context(_opened(store_url(store), mode))
            except StoreNotFound:
                if not or_none or store is not None:
                    raise
                sessions = await stack.enter_async_context(composition.open(composition.MEMORY))
            return await work(sessions)


def _opened(url: str, mode: Mode) -> AbstractAsyncContextManager[Sessions]:
    if not is_server(url):
        return composition.open(url, mode=mode)
    from hitherto.remote.sessions import open as open_remote  # imported here because most stores are local

    return open_remote(url)


def complete_session(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest sessions whose id starts with the typed text; none if the store cannot be read.

    The agent is left out unless it was typed: bash breaks words at its colon, and the rest names the session too.
    """

    def offered(session_id: str) -> str:
        return session_id if ":" in incomplete else session_id.partition(":")[2] or session_id

    async def newest(sessions: Sessions) -> list[CompletionItem]:
        page = await sessions.find(LOCAL, Filter(archived="include", subagents=False), limit=LIST_PAGE)
        fitting = (session for session in page.sessions if offered(session.id).startswith(incomplete))
        return [
            CompletionItem(offered(each.id), help=clean(each.title or ""))
            for each in fitting
            if clean(each.id) == each.id
        ]

    try:
        return asyncio.run(_with_sessions(ctx.params.get("store"), "read", newest))
    except (HithertoError, OSError):
        return []


session_argument = click.argument("session", shell_complete=complete_session)
picked_argument = click.argument("session", required=False, shell_complete=complete_session)
"""For a command that `picks`."""
sessions_argument = click.argument(
    "session_names", metavar="SESSION...", nargs=-1, required=True, shell_complete=complete_session
)
