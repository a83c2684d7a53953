"""Who may call what: every method of every door, asked by everybody who may not."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from typing import Any

from websockets.exceptions import ConnectionClosed

import hitherto
from hitherto.acp.agent.methods import NOTIFICATIONS, REQUESTS
from hitherto.gateway.dispatch.method import NAMED, Owns
from hitherto.gateway.methods import METHODS
from hitherto.values.scopes import SCOPES, UNRESTRICTED
from tests.gateway.methods.test_access import request
from tests.gateway.servers import Client, Json, Server, Token, serving
from torture.attacks import routes
from torture.clients.unauthorised import CLAIMS, KEY, MARK, MISSING, UNKNOWN, WORD, Place, Tally, tokens
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

REFUSED = -32003
ELSEWHERE = "elsewhere"
"""A channel that ann has no session of, and who holds a token of hers that is for it alone."""
EDITORS = {**REQUESTS, **NOTIFICATIONS}
ABOUT_NONE = (
    "initialize",
    "authenticate",
    "session/new",
    "session/list",
    "_hitherto/session/search",
    "_hitherto/session/list/subscribe",
    "_hitherto/session/list/unsubscribe",
)
"""What an editor asks about no session that is named: its answers may have ids of their own, and nothing of another's."""


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Ask every method of the gateway and of the agent for editors, and every other route, as one who may not."""
    store, tally = store_in(setting.folder), Tally()
    limits = {"stranger_burst": 1_000_000, "stranger_sockets": 1_000, "rate": 1e6, "burst": 1_000_000}
    dice = setting.dice("methods")
    few = sorted(dice.sample(sorted(METHODS), setting.of(short=14, full=len(METHODS))))
    editors = setting.of(short=6, full=len(EDITORS))
    with serving(
        store, tokens=tokens(), limits=limits, environment=environment, noisy=bool(environment)
    ) as server:
        for name, key, text in (("ann", KEY, f"{MARK} {WORD}"), ("bob", "agent:main:x:dm:u", "Mine")):
            said = [{"role": "user", "content": text}]
            told = server.call("session.append", {"session_key": key, "messages": said, "create": True}, name)
        before = server.call("session.get", {"session_key": KEY})
        entry = server.call("session.history", {"session_key": KEY})["messages"][0]["message_id"]
        revoked = asyncio.run(_revoked(store))
        place = Place(server, revoked, before["session_id"], entry, told["session_id"])
        routes.run_trial(
            place, tally
        )  # first: whoever may not, and does, could leave nothing of what is asked about
        limited = _restricted(place)
        for name in few:
            _over_http(place, name, tally)
            _as_another(place, name, tally)
            _as_another(limited, name, tally, ELSEWHERE)
        asyncio.run(_over_sockets(place, few, tally))
        asyncio.run(_as_editor(place, dice, editors, tally))
        # Some answer the same whether or not they did something.
        tally.note(
            server.rpc("session.get", {"session_key": KEY}).get("result") == before, "ann's session changed"
        )
    ruled = sum(method.scope in SCOPES and isinstance(method.owns, Owns) for method in METHODS.values())
    figure = (
        f"{len(tally.passed)} bypasses in {tally.asked:,} requests; {len(few)} of {len(METHODS)} methods of the gateway,"
        f" {editors} of {len(EDITORS)} of the agent and every other route; {ruled} methods have a rule"
    )
    if tally.passed:
        setting.say("\n".join(tally.passed[:20]))
    sums = {"inputs": tally.asked, "leaked": len(tally.passed)}
    return Outcome(met=not tally.passed and ruled == len(METHODS), figure=figure, counts=sums)


async def _revoked(store: str) -> str:
    async with hitherto.open(store) as sessions:
        token, secret = await sessions.tokens.create("ann")
        assert await sessions.tokens.revoke(token.id)
    return secret


# Over HTTP


def _over_http(place: Place, name: str, tally: Tally) -> None:
    """As somebody unknown, and as somebody who claims rights that the token does not have."""
    for how in UNKNOWN:
        secret = place.secret(how)
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        reply = place.server.request(
            "POST", f"/rpc{place.query(how)}", {"Content-Type": "application/json", **headers}, _asked(name)
        )
        tally.note(reply.status == 401 and "result" not in reply.json, f"{name} over HTTP, {how}")
    scope = METHODS[name].scope
    for body in (_asked(name), _asked(name, scopes=list(SCOPES), scope=scope, owner="ann", role="admin")):
        told = place.server.post(body, f"without {scope}", **CLAIMS).json
        tally.note(told.get("error", {}).get("code") == REFUSED, f"{name} over HTTP, without {scope}")


def _asked(name: str, **claimed: Any) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": 7, "method": name, "params": {**request(name), **claimed}}
    ).encode()


def _restricted(place: Place) -> Place:
    """The same place for the holder of a token of ann's that is for another channel."""
    scopes = [scope for scope in SCOPES if scope not in UNRESTRICTED]
    made = place.server.call("token.create", {"scopes": scopes, "reach": {"channels": [ELSEWHERE]}})
    known = {**place.server.tokens, ELSEWHERE: Token(made["token"]["token_id"], made["secret"], "ann")}
    return replace(place, server=Server(place.server.process, place.server.port, known))


def _as_another(place: Place, name: str, tally: Tally, who: str = "bob") -> None:
    """As bob, or by ann's own token for elsewhere: ann's session is answered like none at all, and no word of hers is told."""
    foreign: list[Json] = [{}]
    if METHODS[name].owns in NAMED:
        foreign = [{"session_key": place.session}, {"session_id": place.session}]
    for named in foreign:
        params = {**request(name), **named}
        if "session_id" in named:
            params.pop("session_key", None)
        told = json.dumps(place.server.rpc(name, params, who))
        if named:
            missing = json.dumps(place.server.rpc(name, {**params, **dict.fromkeys(named, MISSING)}, who))
            harmless = told.replace(place.session, MISSING) == missing and "error" in json.loads(missing)
        else:
            harmless = place.is_silent(told)
        tally.note(harmless, f"{name} over HTTP, as another ({who})")


# On sockets


async def _over_sockets(place: Place, few: list[str], tally: Tally) -> None:
    for name in few:
        for how in UNKNOWN:
            tally.note(
                await _unanswered(place, "/ws", how, _asked(name).decode()), f"{name} on a socket, {how}"
            )
    for scope in SCOPES:
        async with place.server.socket(None) as client:
            secret = place.server.tokens[f"without {scope}"].secret
            await client.rpc("connect", {"token": secret, "scopes": list(SCOPES), "role": "admin"})
            for name in (each for each in few if METHODS[each].scope == scope):
                told = await client.rpc(name, request(name))
                refused = told.get("error", {}).get("code") == REFUSED
                tally.note(refused, f"{name} on a socket, without {scope}")


async def _unanswered(place: Place, path: str, how: str, asked: str) -> bool:
    """Whether what is asked gets no result on a socket of somebody unknown, not even after a bad greeting."""
    secret = place.secret(how)
    async with place.server.socket(None, f"{path}{place.query(how)}") as client:
        try:
            if secret is not None:
                greeting = {"jsonrpc": "2.0", "id": 1, "method": "connect", "params": {"token": secret}}
                await client.send(json.dumps(greeting))
            await client.send(asked)
            told = await _all(client)
        except ConnectionClosed:
            return True
    return bool(told) and all("error" in message for message in told)


async def _all(client: Client) -> list[Json]:
    """What comes until the server closes."""
    told: list[Json] = []
    try:
        while True:
            told.append(await client.receive())
    except ConnectionClosed:
        return told


async def _as_editor(place: Place, dice: random.Random, most: int, tally: Tally) -> None:
    for name in sorted(dice.sample(sorted(EDITORS), most)):
        asked = json.dumps({"jsonrpc": "2.0", "id": 7, "method": name, "params": _editing(place.session)})
        for how in UNKNOWN:
            tally.note(await _unanswered(place, "/acp", how, asked), f"{name} as an editor, {how}")
        await _as_another_editor(place, name, tally)


async def _as_another_editor(place: Place, name: str, tally: Tally) -> None:
    async with place.server.socket("bob", "/acp") as client:
        await client.call("initialize", {"protocolVersion": 1})
        told = [json.dumps(await client.rpc(name, _editing(each))) for each in (place.session, MISSING)]
        alike = _without_id(told[0]).replace(place.session, MISSING) == _without_id(told[1])
        harmless = place.is_silent(told[0]) if name in ABOUT_NONE else alike
        tally.note(harmless, f"{name} as another editor: {told}")


def _without_id(told: str) -> str:
    return json.dumps({**json.loads(told), "id": 0})


def _editing(session: str) -> Json:
    """Parameters that fit every method of the agent, as far as one is about a session."""
    return {
        "protocolVersion": 1,
        "sessionId": session,
        "sessionIds": [session],
        "cwd": "/",
        "mcpServers": [],
        "title": "Mine",
        "prompt": [{"type": "text", "text": "Mine"}],
        "modeId": "plan",
        "configId": "mode",
        "value": "plan",
        "methodId": "x",
        "query": WORD,
    }
