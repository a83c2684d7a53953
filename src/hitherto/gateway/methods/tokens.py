"""Tokens of the caller's owner: making, listing, revoking and replacing them."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from hitherto import model
from hitherto.errors import NotFound
from hitherto.gateway.dispatch.errors import failure
from hitherto.gateway.dispatch.method import Call
from hitherto.gateway.dispatch.schema import Answer, Params
from hitherto.limits import LARGEST_NUMBER, NAME_CHARS, TOKENS_PAGE
from hitherto.values.scopes import USUAL

Moment = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
Label = Annotated[str, Meta(max_length=NAME_CHARS)]
TokenLimit = Annotated[int, Meta(ge=1, le=TOKENS_PAGE)]
TokenOffset = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]


class Reach(Params, frozen=True, kw_only=True):
    """What a token is restricted to: sessions of these agents, channels, session keys and people, and these methods. All that is
    given must hold. In keys and methods `*` stands for anything."""

    agents: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


class CreateToken(Params, frozen=True, kw_only=True):
    """Scopes must be among those of the token that asks. People go by their `identity_id`."""

    scopes: tuple[str, ...] = USUAL
    label: Label = ""
    expires_at: Moment | None = None
    reach: Reach | None = None


class ListTokens(Params, frozen=True, kw_only=True):
    """How many, after the first `offset`."""

    limit: TokenLimit = 100
    offset: TokenOffset = 0


class NamedToken(Params, frozen=True, kw_only=True):
    """Which token."""

    token_id: str


class ReachInfo(Answer, frozen=True, kw_only=True):
    """What a token is restricted to."""

    agents: tuple[str, ...]
    channels: tuple[str, ...]
    keys: tuple[str, ...]
    people: tuple[str, ...]
    methods: tuple[str, ...]


class TokenInfo(Answer, frozen=True, kw_only=True):
    """A token without its secret. `last_used_at` is exact to half a minute."""

    token_id: str
    label: str
    scopes: tuple[str, ...]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    reach: ReachInfo | UnsetType = UNSET


class MadeToken(Answer, frozen=True, kw_only=True):
    """The token and its secret, which is told only here."""

    token: TokenInfo
    secret: str


class Tokens(Answer, frozen=True, kw_only=True):
    """Tokens, newest first; `total` counts all."""

    tokens: tuple[TokenInfo, ...]
    total: int


class RevokedToken(Answer, frozen=True, kw_only=True):
    """The token that was revoked."""

    token_id: str
    revoked: bool


async def create(call: Call[CreateToken]) -> MadeToken:
    """Create a token of your owner, with an expiry and restrictions if you like. Its secret is told only now."""
    given, own = call.params, call.context.token.scopes
    for scope in given.scopes:
        if scope not in own:
            raise failure(
                "forbidden", "a token can pass on only the scopes that it has itself", scope=scope[:40]
            )
    wanted = given.reach or Reach()
    token, secret = await call.sessions.tokens.create(
        call.who.owner,
        scopes=given.scopes,
        role=call.context.token.role,
        label=given.label,
        expires_at=given.expires_at,
        reach=model.Reach(
            agents=wanted.agents,
            channels=wanted.channels,
            keys=wanted.keys,
            people=wanted.people,
            methods=wanted.methods,
        ),
    )
    return MadeToken(token=_told(token), secret=secret)


async def list_tokens(call: Call[ListTokens]) -> Tokens:
    """List the tokens of your owner, newest first, revoked ones included."""
    page, total = await call.sessions.tokens.page(
        call.who, limit=call.params.limit, offset=call.params.offset
    )
    return Tokens(tokens=tuple(map(_told, page)), total=total)


async def revoke(call: Call[NamedToken]) -> RevokedToken:
    """Revoke a token of your owner at once and for good; its open connections are closed."""
    token_id = call.params.token_id
    if not await call.sessions.tokens.revoke(token_id, owner=call.who.owner):
        raise NotFound(f"no active token {token_id!r:.60}")
    return RevokedToken(token_id=token_id, revoked=True)


async def rotate(call: Call[NamedToken]) -> MadeToken:
    """Give a token of your owner a new secret. The old one stops working at once; id and rights stay."""
    token, secret = await call.sessions.tokens.rotate(call.params.token_id, owner=call.who.owner)
    return MadeToken(token=_told(token), secret=secret)


def _told(token: model.Token) -> TokenInfo:
    return TokenInfo(
        token_id=token.id,
        label=token.label,
        scopes=token.scopes,
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
        last_used_at=token.used_at,
        reach=UNSET if token.reach is None else _reach(token.reach),
    )


def _reach(reach: model.Reach) -> ReachInfo:
    return ReachInfo(
        agents=reach.agents,
        channels=reach.channels,
        keys=reach.keys,
        people=reach.people,
        methods=reach.methods,
    )
