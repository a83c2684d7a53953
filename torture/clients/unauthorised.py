"""Who asks for what they may not have: somebody without a good token, and somebody whose token is good for other things."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hitherto.values.scopes import SCOPES
from tests.gateway.servers import EVERYONE, Reply, Server

STRANGE = "hth_" + "A" * 43
MARK, WORD = "annswords", "plainly"
"""What only ann has said, and a word beside it that may be searched for."""
KEY = "agent:main:main"
MISSING = "00000000-0000-7000-8000-000000000000"
UNKNOWN = ("no token", "a wrong one", "a revoked one", "one in the address")
CLAIMS = {"X-Scopes": " ".join(SCOPES), "X-Forwarded-User": "ann", "X-Hitherto-Scopes": "admin"}
UNAUTHENTICATED, FORBIDDEN, NOT_FOUND = 401, 403, 404
OURS = {"X-Hitherto": "1", "Sec-Fetch-Site": "same-origin"}
"""What scripts of the page say, and other programs may say too."""


@dataclass
class Tally:
    """What was asked of which door, and what was answered that should not have been."""

    asked: int = 0
    passed: list[str] = field(default_factory=list)

    def note(self, refused: bool, what: str) -> None:
        self.asked += 1
        if not refused:
            self.passed.append(what)


@dataclass(frozen=True)
class Place:
    """A server with a session of ann's and one of bob's, and a token that was revoked."""

    server: Server
    revoked: str
    session: str
    entry: str
    """The first message in it."""
    bobs: str

    def secret(self, how: str) -> str | None:
        return {"a wrong one": STRANGE, "a revoked one": self.revoked}.get(how)

    def query(self, how: str) -> str:
        good = self.server.tokens["ann"].secret
        return f"?token={good}&access_token={good}" if how == "one in the address" else ""

    def is_silent(self, told: str) -> bool:
        """Whether nothing of ann's is in an answer."""
        return MARK not in told and self.session not in told

    def signed_in(self, secret: str) -> Reply:
        """What the page's own script is told when it signs in with a token."""
        kind = {**OURS, "Content-Type": "application/json"}
        return self.server.request("POST", "/signin", kind, json.dumps({"token": secret}).encode())

    def cookie(self, name: str) -> dict[str, str]:
        """What the browser of the holder of a token sends, once it has signed in."""
        reply = self.signed_in(self.server.tokens[name].secret)
        return {"Cookie": reply.headers["set-cookie"].partition(";")[0], **OURS}


def tokens() -> dict[str, tuple[str, list[str]]]:
    """Those of everybody, and one without each right."""
    less = {f"without {scope}": ("ann", [other for other in SCOPES if other != scope]) for scope in SCOPES}
    return {**{name: (owner, list(scopes)) for name, (owner, scopes) in EVERYONE.items()}, **less}
