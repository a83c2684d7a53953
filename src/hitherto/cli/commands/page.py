"""`hitherto page`."""

from __future__ import annotations

import click

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.gateway.auth import local_token
from hitherto.service import Sessions


@command("hitherto page", "hitherto page --address https://hitherto.example.org")
@click.option(
    "--address",
    metavar="URL",
    default="http://127.0.0.1:8787",
    show_default=True,
    help="The address of the server in your browser.",
)
async def run(sessions: Sessions, out: Output, *, address: str) -> None:
    """Print a sign-in link to the web page of a running server.

    The link works once and expires after ten minutes. It signs you in as the local owner, with the rights of the token
    that the server created at its first start.
    """
    code = await local_token.invitation(sessions)
    if code is None:
        raise NotFound(
            "no server has run on this store yet: start one with `hitherto serve`, which prints a sign-in link"
        )
    opened = local_token.page_address(address, code)
    if out.json:
        out.document({"page": opened})
    else:
        out.line(opened)
