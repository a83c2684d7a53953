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
    help="Where the server is, as a browser calls it.",
)
async def run(sessions: Sessions, out: Output, *, address: str) -> None:
    """Print an address that opens the page of a running server, signed in.

    It is good once, for ten minutes, and gives the rights of the token that the server has made for its own user.
    """
    code = await local_token.invitation(sessions)
    if code is None:
        raise NotFound(
            "no server has ever run on this store; `hitherto serve` starts one, and prints an address"
        )
    opened = local_token.page_address(address, code)
    if out.json:
        out.document({"page": opened})
    else:
        out.line(opened)
