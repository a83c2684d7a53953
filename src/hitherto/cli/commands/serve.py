"""`hitherto serve`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from hitherto import composition, tasks
from hitherto.acp.agent.connection import Offer, Outliving
from hitherto.acp.agent.serve import serve as serve_agent
from hitherto.cli.command import JSON_OPTION, STORE_OPTION, examples_text, mention_earlier_store
from hitherto.cli.options.values import duration
from hitherto.cli.syncing import progress_sentence, status_line
from hitherto.cli.terminal.browser import open_link
from hitherto.cli.terminal.output import Output
from hitherto.engine import Engine
from hitherto.errors import install_advice
from hitherto.presentation import formats
from hitherto.remote.address import is_loopback
from hitherto.rpc.transport import Transport
from hitherto.service import Policy, Sessions, parse_resets
from hitherto.settings import SYNC, Settings, read_settings, store_url

if TYPE_CHECKING:
    from hitherto.gateway.auth.tokens import Caller
    from hitherto.gateway.serve import ListenAddress
    from hitherto.gateway.server.state import Agent

EXAMPLES = (
    "hitherto serve",
    "hitherto serve --port 9000 --store postgresql://localhost/hitherto --model anthropic:claude-sonnet-5",
    "hitherto serve --host 0.0.0.0 --name hitherto.example.org --tls-cert cert.pem --tls-key key.pem",
    "hitherto serve --behind-proxy https://hitherto.example.org",
)


@click.command(epilog=examples_text(EXAMPLES))
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8787,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option("--model", metavar="NAME", help="The model that answers prompts.  [env: HITHERTO_MODEL]")
@click.option(
    "--tls-cert", type=click.Path(), metavar="FILE", help="The TLS certificate, with its chain (PEM)."
)
@click.option(
    "--tls-key", type=click.Path(), metavar="FILE", help="The private key of the certificate (PEM)."
)
@click.option(
    "--name",
    "names",
    metavar="HOST",
    multiple=True,
    help="A host name of this server, such as hitherto.example.org. Can be repeated.",
)
@click.option(
    "--behind-proxy",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="The address of a proxy in front of this server, such as https://hitherto.example.org. Can be repeated.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3_600),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="How long running turns may take to finish when the server stops.",
)
@click.option(
    "--archive-after",
    metavar="AGE",
    callback=duration,
    help="Archive sessions that were not active for this long, such as 90d.",
)
@click.option(
    "--delete-after",
    metavar="AGE",
    callback=duration,
    help="Delete sessions that were not active for this long, such as 365d.",
)
@click.option(
    "--no-sync", is_flag=True, help=f"Do not import the sessions of your agents.  [env: {SYNC}=off]"
)
@click.option("--no-open", is_flag=True, help="Do not open the page in your browser.")
def run(store: str | None, as_json: bool, **given: Any) -> None:
    """Start the server: the web page, the JSON-RPC gateway, ACP for editors and MCP for agents. ^C stops it.

    On your own machine it imports the sessions of your agents, newest first, keeps them in sync, and opens the page in your
    browser: if it listens on a loopback address only and its store is the SQLite file of your settings. A store that you name
    with --store, a PostgreSQL database and a server for others are not synced.

    The server prints a link that signs your browser in. Programs need a token: the first start creates one for the local
    owner and saves it to a file; `hitherto token create` creates more. By default only this machine can connect. To listen
    on another address, use TLS or a proxy that has it.
    """
    try:
        from hitherto.gateway.serve import run_quickly
    except ModuleNotFoundError as error:
        raise click.UsageError(install_advice("this command", "server")) from error
    out = Output(as_json=as_json)
    mention_earlier_store(store, out)
    run_quickly(_serve(store, out, **given))


run.params += [JSON_OPTION, STORE_OPTION]


async def _serve(
    given_store: str | None,
    out: Output,
    *,
    no_sync: bool,
    no_open: bool,
    model: str | None,
    archive_after: int | None,
    delete_after: int | None,
    **place: Any,
) -> None:
    from hitherto.gateway import serve as gateway
    from hitherto.gateway.auth import local_token
    from hitherto.gateway.server import running, schedule
    from hitherto.gateway.server.state import ServerState

    gateway.start_logging()
    store = store_url(given_store)
    settings, where = read_settings(model=model), gateway.checked_address(gateway.ListenAddress(**place))
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(gateway.listen(where))
        sessions = await stack.enter_async_context(composition.open(store, ephemeral=True))
        tokens = local_token.token_file(settings.data_dir, store, replace(settings, given_store=None).store)
        fresh = await local_token.local_token(sessions, tokens)
        code = await local_token.invitation(sessions) or ""
        engine = composition.engine(model)
        agent = _agent(sessions, engine, settings)
        state = ServerState(
            sessions,
            engine,
            agent,
            proxied=bool(where.origins),
            dm_scopes=settings.dm_scopes,
            models=_models(settings),
        )
        resets = schedule.reset_chats(parse_resets(settings.reset), sessions)
        stack.callback(asyncio.create_task(resets).cancel)
        check = schedule.ClockCheck(sessions)
        forgetting = schedule.forget_regularly(sessions, check=check)
        stack.callback(asyncio.create_task(forgetting).cancel)
        stack.callback(asyncio.create_task(schedule.count_usage(sessions)).cancel)
        for policy in _policies(archive_after, delete_after):
            stack.callback(
                asyncio.create_task(schedule.prune_regularly(policy, sessions, check=check)).cancel
            )

        syncs = not no_sync and settings.syncs and given_store is None and is_own(store, where)
        address = gateway.address(where, listener.getsockname()[1])
        in_browser = where.origins[0] if where.origins else address
        stack.enter_context(running.announced(settings.data_dir, sessions.admin.store_id, in_browser))

        def started() -> None:
            page = local_token.page_address(in_browser, code)
            _announce(out, address, page, tokens, fresh=fresh)
            if out.terminal and not no_open and is_loopback(where.host):
                open_link(page, settings.data_dir)
            if syncs:
                stack.push_async_callback(tasks.cancel_all, [asyncio.create_task(_sync(out))])

        await gateway.run(state, where, listener, started)


def is_own(store: str, where: ListenAddress) -> bool:
    """Whether a server is its user's own: nobody else's sessions are in its store, and nobody else can reach it."""
    return store.startswith("sqlite:") and is_loopback(where.host) and not (where.origins or where.names)


async def _sync(out: Output) -> None:
    """Keep the sessions of this user's agents in sync, and say so: on a terminal as it goes, elsewhere when something was found."""
    from hitherto.gateway.server.sync_process import SyncNews, keep_synced

    with status_line(hidden=out.json) as show:

        def tell(news: SyncNews) -> None:
            if news.progress is not None and news.progress.done < news.progress.size:
                show(progress_sentence(news.progress))
            if news.report is not None:
                show("")
                if not out.json and news.report.new:
                    out.note(f"Synced {formats.counted(news.report.new, 'new session')}.")

        await keep_synced(tell)


def _agent(sessions: Sessions, engine: Engine, settings: Settings) -> Agent:
    """The ACP agent for editors. Only callers with the scope `commands` are treated as local."""

    async def serve(transport: Transport, caller: Caller) -> None:
        offer = Offer(
            models=_models(settings), imported=settings.lists_imported, local=caller.may("commands")
        )
        outliving = Outliving(settings.detached_seconds, caller.holds)
        await serve_agent(transport, sessions, caller.who, engine, offer=offer, outliving=outliving)

    return serve


def _models(settings: Settings) -> tuple[str, ...]:
    """The models that clients may choose."""
    return () if settings.model is None else (settings.model, *settings.models)


def _policies(archive_after: int | None, delete_after: int | None) -> list[Policy]:
    given = ((archive_after, False), (delete_after, True))
    return [Policy(older_than_ms=age, delete=delete) for age, delete in given if age is not None]


def _announce(out: Output, address: str, page: str, tokens: Path, *, fresh: bool) -> None:
    if out.json:
        out.document({"address": address, "page": page, "token_file": str(tokens)})
    else:
        out.line(f"Hitherto is running at {address}")
        out.line(f"Open {page}")
        out.note("The link works once, within ten minutes. `hitherto page` prints a new one.")
        out.note(f"Token for programs: {tokens}{' (new)' if fresh else ''}. Stop the server with ^C.")
    sys.stdout.flush()
