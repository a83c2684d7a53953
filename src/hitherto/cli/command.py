"""What every command shares: `--json`, `--store`, examples in its help, an open store, session ids."""

from __future__ import annotations

import asyncio
import functools
import shlex
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hitherto import wiring
from hitherto.cli.terminal.input import bare_interrupts, interrupts
from hitherto.cli.terminal.output import Output, clean
from hitherto.errors import HithertoError
from hitherto.limits import LIST_PAGE
from hitherto.model import LOCAL, Filter
from hitherto.service import Sessions
from hitherto.settings import STORE, earlier_store, is_server, store_url

T = TypeVar("T")
Work = Callable[..., Coroutine[Any, Any, int | None]]

JSON_OPTION = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, for programs.")
STORE_OPTION = click.Option(
    ["--store"],
    metavar="URL",
    help=f"The store: a URL, the path of an SQLite file, or a server.  [env: {STORE}]",
)


def _run(work: Work) -> int | None:
    return asyncio.run(work())


def command(*examples: str, runner: Callable[[Work], int | None] = _run) -> Callable[[Work], click.Command]:
    """Make a command of `async def run(sessions, out, …)`; what it returns, if anything, is the exit code.

    A `runner` has an event loop run the work, and may give it more arguments.
    """

    def decorate(work: Work) -> click.Command:
        @functools.wraps(work)
        def run(store: str | None, as_json: bool, **given: Any) -> int | None:
            out = Output(as_json=as_json)

            mention_earlier_store(store, out)

            async def whole(*more: Any) -> int | None:
                return await _with_sessions(store, lambda sessions: work(sessions, out, *more, **given))

            with bare_interrupts():
                return runner(whole)

        made = click.command(epilog=shown_examples(examples))(run)
        made.params += [JSON_OPTION, STORE_OPTION]
        return made

    return decorate


def shown_examples(examples: tuple[str, ...]) -> str:
    """Examples as they stand at the end of a command's help."""
    return "\b\n" + "\n".join(("Examples:", *(f"  {line}" for line in examples)))


def mention_earlier_store(store: str | None, out: Output) -> None:
    """Say once, at the first start, that there is a store under the program's first name, and how to use it."""
    if (left := earlier_store(store)) is not None:
        out.note(
            f"A store of an earlier version is at {left}. To use it: export {STORE}={shlex.quote(f'sqlite:///{left}')}"
        )


async def _with_sessions(store: str | None, work: Callable[[Sessions], Awaitable[T]]) -> T:
    with interrupts():
        async with _opened(store_url(store)) as sessions:
            return await work(sessions)


def _opened(url: str) -> AbstractAsyncContextManager[Sessions]:
    if not is_server(url):
        return wiring.open(url)
    from hitherto.remote.sessions import open as open_remote  # here: most stores are on this machine

    return open_remote(url)


def complete_session(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The caller's newest sessions whose id begins so; nothing at all when the store cannot tell."""

    async def newest(sessions: Sessions) -> list[CompletionItem]:
        page = await sessions.find(LOCAL, Filter(archived="include"), limit=LIST_PAGE)
        fitting = (session for session in page.sessions if session.id.startswith(incomplete))
        return [
            CompletionItem(each.id, help=clean(each.title or ""))
            for each in fitting
            if clean(each.id) == each.id
        ]

    try:
        return asyncio.run(_with_sessions(ctx.params.get("store"), newest))
    except (HithertoError, OSError):
        return []


session_argument = click.argument("session", shell_complete=complete_session)
sessions_argument = click.argument(
    "named", metavar="SESSION...", nargs=-1, required=True, shell_complete=complete_session
)
