"""Every route that is no method of the gateway or of the agent, asked by everybody who may not."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from hitherto.gateway.app import AGENT_NEEDS
from torture.attacks.origins import Way, ways
from torture.clients.unauthorised import (
    CLAIMS,
    FORBIDDEN,
    MARK,
    MISSING,
    NOT_FOUND,
    OURS,
    UNAUTHENTICATED,
    UNKNOWN,
    WORD,
    Place,
    Tally,
)

METHODS = ("/rpc", "/ws", "/acp")
"""Where methods are called: these are asked method by method."""
OPEN = ("/", "/health", "/ready", "/static/x/x", "/signin", "/signout")
"""What anybody is answered, by nothing of anybody's: the form to sign in, whether the server runs, the page's own files."""
ABOUT_NONE = ("/usage", "/usage.csv", "/inbox", "/waiting", "/live", "/metrics", "/mcp")
"""What is about no session that is named; an answer of any other route to another owner must be as of a missing one."""
NEEDED = {"/metrics": "admin"}
"""The right that a route needs, if it is not that to read."""
BY_TOKEN = ("/metrics", "/mcp")
"""What programs ask with a token; all others take the page's cookie alone."""
CALLED: tuple[tuple[str, dict[str, str]], ...] = (
    ("sessions_read", {"session_id": "{}"}),
    ("sessions_search", {"query": WORD}),
    ("sessions_recent", {}),
    ("memory_search", {"query": WORD}),
)
"""What can be asked at `/mcp`; the braces are a session."""


def run_trial(place: Place, tally: Tally) -> None:
    """As somebody unknown, as another owner, and without the right that is needed."""
    mine = place.cookie("ann")
    _as_owner(place, mine)
    known = [way for way in ways() if way.path not in METHODS]
    for way in known:
        _as_unknown(place, way, tally)
    for way in known:
        if way.path not in OPEN:
            _without_right(place, way, tally)
        if way.method in ("GET", "HEAD"):
            _as_another(place, way, tally)
    _history_of_another(place, tally)
    for scope in AGENT_NEEDS:
        claimed = {**place.server.bearer(f"without {scope}"), **CLAIMS}
        reply = place.server.upgrade("/acp", list(claimed.items()))
        tally.note(reply.status == FORBIDDEN, f"/acp, without {scope}")
    # Others have signed out meanwhile.
    tally.note(place.server.request("GET", "/usage", mine).status == 200, "ann was signed out")


def _asked(place: Place, way: Way, session: str, **more: str) -> str:
    """The address of a route with whatever any of them is asked by."""
    named = {
        "session": session,
        "a": session,
        "id": place.entry,
        "q": WORD,
        "kind": "user",
        "now": "1",
        **more,
    }
    return f"{way.path.replace('/s/x', f'/s/{session}')}?{urlencode(named)}"


def _as_unknown(place: Place, way: Way, tally: Tally) -> None:
    for how in UNKNOWN:
        secret = place.secret(how)
        cookie = {} if secret is None else {"Cookie": f"hitherto-{place.server.port}={secret}"}
        bearer = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        path = _asked(place, way, place.session) + place.query(how).replace("?", "&")
        for headers in (bearer, {**cookie, **OURS}):
            reply = place.server.request(
                str(way.method), path, headers, json.dumps({"token": secret}).encode()
            )
            told = f"{reply.headers} {reply.body.decode()}"
            refused = way.path in OPEN or reply.status == UNAUTHENTICATED
            tally.note(refused and place.is_silent(told), f"{way}, {how}")
    if way.path == "/signin":
        for how in UNKNOWN:
            reply = place.signed_in(place.secret(how) or "")
            tally.note("set-cookie" not in reply.headers, f"{way}, {how}, was let in")


def _without_right(place: Place, way: Way, tally: Tally) -> None:
    """Of ann's own session, with a token that is hers and good for everything else."""
    scope = NEEDED.get(way.path, "read")
    name = f"without {scope}"
    shown = place.server.bearer(name) if way.path in BY_TOKEN else place.cookie(name)
    reply = place.server.request(
        str(way.method), _asked(place, way, place.session), {**shown, **CLAIMS}, b"{}"
    )
    told = reply.body.decode()
    tally.note(reply.status == FORBIDDEN and place.is_silent(told), f"{way}, {name}")


def _as_another(place: Place, way: Way, tally: Tally) -> None:
    """As bob: ann's session is answered like none at all, by itself and beside one of his own."""
    bob = place.cookie("bob")
    for more in ({}, {"a": place.bobs, "b": "{}"}, {"at": "{}", "after": "1"}):
        foreign, missing = (
            place.server.request(
                str(way.method),
                _asked(place, way, each, **{name: value.format(each) for name, value in more.items()}),
                {**bob, **CLAIMS},
            )
            for each in (place.session, MISSING)
        )
        told = foreign.body.decode()
        if way.path in (*OPEN, *ABOUT_NONE):
            harmless = place.is_silent(told)
        else:
            alike = told.replace(place.session, MISSING) == missing.body.decode()
            harmless = alike and foreign.status == missing.status == NOT_FOUND
        tally.note(harmless, f"{way} {more}, as another: {foreign.status}, {missing.status}")


def _history_of_another(place: Place, tally: Tally) -> None:
    """As bob's agent: what it may look up is bob's."""
    for tool, given in CALLED:
        foreign, missing = (_called(place, tool, given, each, "bob") for each in (place.session, MISSING))
        alike = foreign.replace(place.session, MISSING) == missing
        tally.note(alike and MARK not in foreign, f"/mcp {tool}, as another: {foreign[:200]}")


def _called(place: Place, tool: str, given: dict[str, str], session: str, name: str) -> str:
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    params = {"name": tool, "arguments": {key: value.format(session) for key, value in given.items()}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**place.server.bearer(name), **CLAIMS, **kinds}
    return place.server.request("POST", "/mcp", headers, json.dumps(asked).encode()).body.decode()


def _as_owner(place: Place, mine: dict[str, str]) -> None:
    """What is asked here is answered to its owner: else nobody is refused anything. Raises `RuntimeError`."""
    told = [_called(place, *CALLED[0], place.session, "ann")]
    for way in (
        each for each in ways() if each.method == "GET" and each.path not in (*METHODS, *OPEN, *BY_TOKEN)
    ):
        reply = place.server.request("GET", _asked(place, way, place.session), mine)
        if reply.status != 200 and way.path != "/checkpoint":  # of which there is none
            raise RuntimeError(f"{way} is not answered to its owner: {reply.status}")
        told += [reply.body.decode()] if way.path == "/s/x" else []
    if not all(MARK in each for each in told):
        raise RuntimeError(f"the owner is not told of the session: {told}")
