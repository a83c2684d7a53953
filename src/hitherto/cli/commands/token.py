"""`hitherto token`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click
from msgspec import to_builtins

from hitherto.cli.command import command, examples_text
from hitherto.cli.options import values
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.ids import now_ms
from hitherto.model import Reach, Token
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.values.scopes import MEANINGS, SCOPES, USUAL

COLUMNS = ("ID", "CREATED", "OWNER", "SCOPES", "REVOKED", "LABEL", "EXPIRES", "USED", "RESTRICTED TO")
ALWAYS_SHOWN = 6
AN_ID = "019a8c0e-5b7a-7c1d-9a36-0d1f6a1f5c3e"
Decorated = TypeVar("Decorated", bound=Callable[..., object])


def restriction(option: str, kind: str, text: str) -> Callable[[Decorated], Decorated]:
    """An option that restricts a token to what it names."""
    return click.option(option, kind, metavar="NAME", multiple=True, help=f"{text} Can be repeated.")


@command(
    "hitherto token create --owner alice",
    "hitherto token create --owner bot --scope read --label wiki --expires 90d",
    "hitherto token create --owner chats --channel irc --label irc",
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
@click.option(
    "--expires",
    "lasting",
    metavar="TIME",
    callback=values.duration,
    help="How long it works, such as 12h or 90d. Default: until you revoke it.",
)
@restriction("--agent", "agents", "Only sessions of this agent.")
@restriction("--channel", "channels", "Only sessions of this channel.")
@restriction("--key", "keys", "Only sessions whose key matches, such as 'agent:main:irc:*'.")
@restriction("--person", "people", "Only sessions of this person, by identity id, such as irc:ann.")
@restriction("--method", "methods", "Only gateway methods that match, such as 'session.*'.")
async def create(
    sessions: Sessions,
    out: Output,
    *,
    owner: str,
    scopes: tuple[str, ...],
    label: str,
    lasting: int | None,
    **reach: tuple[str, ...],
) -> None:
    """Create a token and print it. It is shown only once: the store keeps a digest, not the token.

    With --agent, --channel, --key, --person or --method, each of which can be repeated, the token is restricted: of everything
    else it sees what it would see if that did not exist.
    """
    token, secret = await sessions.tokens.create(
        owner,
        scopes=scopes or USUAL,
        label=label,
        expires_at=None if lasting is None else now_ms() + lasting,
        reach=Reach(**reach),
    )
    _print_secret(out, token, secret)


@command("hitherto token list", "hitherto token list --owner alice", opens="read")
@click.option("--owner", metavar="NAME", help="Only tokens of this owner.")
async def list_tokens(sessions: Sessions, out: Output, *, owner: str | None) -> None:
    """List tokens, oldest first, including revoked ones.

    In a pipe, each line has these tab-separated fields: id, creation time, owner, scopes, revocation time, label, expiry, last use,
    restrictions.
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
    rows = [_fields(each, formats.local) for each in found]
    # What no token has takes no room.
    shown = [at for at in range(len(COLUMNS)) if at < ALWAYS_SHOWN or any(row[at] for row in rows)]
    out.table([COLUMNS[at] for at in shown], ([row[at] for at in shown] for row in rows))


@command(f"hitherto token rotate {AN_ID}")
@click.argument("token_id", metavar="ID")
async def rotate(sessions: Sessions, out: Output, *, token_id: str) -> None:
    """Replace a token by a new one with the same id and rights, and print it. The old one stops working at once."""
    _print_secret(out, *await sessions.tokens.rotate(token_id))


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


def _print_secret(out: Output, token: Token, secret: str) -> None:
    if out.json:
        out.document(
            {
                "token": secret,
                "id": token.id,
                "owner": token.owner,
                "scopes": token.scopes,
                "expires_at": token.expires_at,
                "reach": token.reach,
            }
        )
        return
    out.line(secret)
    out.note(
        f"Token {token.id} for {token.owner}: {', '.join(token.scopes)}. Copy it now; it is not shown again."
    )


def _fields(token: Token, shown: Callable[[int | None], str]) -> tuple[str, ...]:
    made, revoked = shown(token.created_at), shown(token.revoked_at)
    expires, used = shown(token.expires_at), shown(token.used_at)
    scopes, reach = " ".join(token.scopes), _restrictions(token.reach)
    return token.id, made, token.owner, scopes, revoked, token.label, expires, used, reach


def _restrictions(reach: Reach | None) -> str:
    kinds = {} if reach is None else to_builtins(reach)
    return " ".join(f"{kind}={','.join(names)}" for kind, names in kinds.items())


_scopes = "\n".join(f"  {scope:<9} {meaning}" for scope, meaning in MEANINGS.items())
run = click.Group(
    "token",
    {"create": create, "list": list_tokens, "rotate": rotate, "revoke": revoke},
    help=f"Create, list, replace and revoke access tokens. A client with a token acts for its owner on the server.\n\n\b\nScopes:\n{_scopes}",
    no_args_is_help=False,
    epilog=examples_text(("hitherto token create --owner alice --label laptop", "hitherto token list")),
)
