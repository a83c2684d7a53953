"""`hitherto page`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.gateway.auth import local_token
from hitherto.gateway.server.running import running_address
from hitherto.service import Sessions
from hitherto.settings import read_settings


@command("hitherto page", "hitherto page --address https://hitherto.example.org")
@click.option(
    "--address",
    metavar="URL",
    help="The address of the server in your browser. Default: that of the server that runs on this machine.",
)
async def run(sessions: Sessions, out: Output, *, address: str | None) -> None:
    """Print a sign-in link to the web page of a running server.

    The link works once and expires after ten minutes. It signs you in as the local owner, with the rights of the token
    that the server created at its first start.
    """
    opened = await sign_in_link(sessions, address)
    if out.json:
        out.document({"page": opened})
    else:
        out.line(opened)


async def sign_in_link(sessions: Sessions, address: str | None = None, path: str = "/") -> str:
    """A link that signs in to the page at a path, of the server that runs here. Raises `NotFound` if none has run yet."""
    code = await local_token.invitation(sessions)
    if code is None:
        raise NotFound(
            "no server has run on this store yet: start one with `hitherto serve`, which prints a sign-in link"
        )
    settings = read_settings()
    where = address or running_address(settings.data_dir, sessions.admin.store_id) or settings.page
    return local_token.page_address(where, code, path)
