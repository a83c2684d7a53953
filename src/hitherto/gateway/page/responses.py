"""What the page's routes are answered with."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.gateway.page.templates import HTML, POLICY
from hitherto.gateway.transport.responses import Headers

GUARDED: Headers = (
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every page: nothing else runs in it, and no other window can hold on to it."""


PLAIN = b"text/plain; charset=utf-8"
AS_TEXT: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
    ),
)
"""For plain text, in which nothing is markup. Browsers put a style of their own around it."""


class Shown(NamedTuple):
    """A body of some kind; a page of ours unless it is said."""

    body: bytes
    status: int = 200
    kind: bytes = HTML
    headers: Headers = ()

    def told(self) -> Headers:
        """Its headers, and those of every page that it does not replace."""
        own = {name for name, _ in self.headers}
        return (*self.headers, *(pair for pair in GUARDED if pair[0] not in own))
