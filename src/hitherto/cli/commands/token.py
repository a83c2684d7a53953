"""`hitherto token`."""

from __future__ import annotations

from collections.abc import Callable

import click

from hitherto.cli.command import command, shown_examples
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.model import Token
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.values.scopes import MEANINGS, SCOPES, USUAL

AN_ID = "019a8c0e-5b7a-7c1d-9a36-0d1f6a1f5c3e"


@command("hitherto token create --owner alice", "hitherto token create --owner bot --scope read --label wiki")
@click.option("--owner", metavar="NAME", required=True, help="Whose sessions it is good for.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    help=f"What it is good for; may be repeated. Unless told: {', '.join(USUAL)}.",
)
@click.option("--label", metavar="TEXT", default="", help="A word about who holds it.")
async def create(sessions: Sessions, out: Output, *, owner: str, scopes: tuple[str, ...], label: str) -> None:
    """Make a token. It is printed here and never again: only its digest is kept."""
    token, secret = await sessions.tokens.create(owner, scopes=scopes or USUAL, label=label)
    if out.json:
        out.document({"token": secret, "id": token.id, "owner": token.owner, "scopes": token.scopes})
        return
    out.line(secret)
    out.note(f"Token {token.id} of {token.owner}: {', '.join(token.scopes)}. It will not be shown again.")


@command("hitherto token list", "hitherto token list --owner alice")
@click.option("--owner", metavar="NAME", help="Only tokens of this owner.")
async def listed(sessions: Sessions, out: Output, *, owner: str | None) -> None:
    """Tokens, oldest first, revoked ones too.

    In a pipe each is a line of fields separated by tabs: id, when it was made, owner, scopes, when it was revoked, label.
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
        ("ID", "MADE", "OWNER", "SCOPES", "REVOKED", "LABEL"),
        (_fields(each, formats.local) for each in found),
    )


@command(f"hitherto token revoke {AN_ID}")
@click.argument("token_id", metavar="ID")
async def revoke(sessions: Sessions, out: Output, *, token_id: str) -> None:
    """Make a token good for nothing, at once and for ever. What is open with it is closed."""
    if not await sessions.tokens.revoke(token_id):
        raise NotFound(f"no token {token_id!r} that is good for anything")
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
    {"create": create, "list": listed, "revoke": revoke},
    help=f"Make, list and revoke tokens. Who holds one may call the server on behalf of its owner.\n\n\b\nScopes:\n{_scopes}",
    no_args_is_help=False,
    epilog=shown_examples(("hitherto token create --owner alice --label laptop", "hitherto token list")),
)
