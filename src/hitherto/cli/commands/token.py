"""`hitherto token`."""

from __future__ import annotations

from collections.abc import Callable

import click

from hitherto.cli.command import command, examples_text
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.model import Token
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.values.scopes import MEANINGS, SCOPES, USUAL

AN_ID = "019a8c0e-5b7a-7c1d-9a36-0d1f6a1f5c3e"


@command(
    "hitherto token create --owner alice",
    "hitherto token create --owner bot --scope read --label wiki",
    opens="make",
)
@click.option(
    "--owner", metavar="NAME", required=True, help="The owner whose sessions the token gives access to."
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    help=f"What the token may do. Can be repeated. Default: {', '.join(USUAL)}.",
)
@click.option("--label", metavar="TEXT", default="", help="A note on who uses it, such as laptop.")
async def create(sessions: Sessions, out: Output, *, owner: str, scopes: tuple[str, ...], label: str) -> None:
    """Create a token and print it. It is shown only once: the store keeps a digest, not the token."""
    token, secret = await sessions.tokens.create(owner, scopes=scopes or USUAL, label=label)
    if out.json:
        out.document({"token": secret, "id": token.id, "owner": token.owner, "scopes": token.scopes})
        return
    out.line(secret)
    out.note(
        f"Token {token.id} for {token.owner}: {', '.join(token.scopes)}. Copy it now; it is not shown again."
    )


@command("hitherto token list", "hitherto token list --owner alice", opens="read")
@click.option("--owner", metavar="NAME", help="Only tokens of this owner.")
async def list_tokens(sessions: Sessions, out: Output, *, owner: str | None) -> None:
    """List tokens, oldest first, including revoked ones.

    In a pipe, each line has these tab-separated fields: id, creation time, owner, scopes, revocation time, label.
    """
    found = await sessions.tokens.all(owner)
    if out.json:
        out.document({"tokens": found})
        return
    if not out.terminal:
        for each in found:
            out.row(*_fields(each, formats.utc))
        return
    if not found:
        out.note("No tokens.")
        return
    out.table(
        ("ID", "CREATED", "OWNER", "SCOPES", "REVOKED", "LABEL"),
        (_fields(each, formats.local) for each in found),
    )


@command(f"hitherto token revoke {AN_ID}")
@click.argument("token_id", metavar="ID")
async def revoke(sessions: Sessions, out: Output, *, token_id: str) -> None:
    """Revoke a token. It stops working at once, and its open connections are closed."""
    if not await sessions.tokens.revoke(token_id):
        raise NotFound(f"no active token {token_id!r}; `hitherto token list` shows all")
    if out.json:
        out.document({"revoked": token_id})
    else:
        out.line(f"Revoked {token_id}")


def _fields(token: Token, shown: Callable[[int | None], str]) -> tuple[str, ...]:
    made, revoked = shown(token.created_at), shown(token.revoked_at)
    return token.id, made, token.owner, " ".join(token.scopes), revoked, token.label


_scopes = "\n".join(f"  {scope:<9} {meaning}" for scope, meaning in MEANINGS.items())
run = click.Group(
    "token",
    {"create": create, "list": list_tokens, "revoke": revoke},
    help=f"Create, list and revoke access tokens. A client with a token acts for its owner on the server.\n\n\b\nScopes:\n{_scopes}",
    no_args_is_help=False,
    epilog=examples_text(("hitherto token create --owner alice --label laptop", "hitherto token list")),
)
