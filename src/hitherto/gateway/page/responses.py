"""The responses of the page's routes."""

from __future__ import annotations

from typing import NamedTuple

from hitherto.gateway.page.templates import HTML, POLICY
from hitherto.gateway.transport.responses import Headers

GUARDED: Headers = (
    (b"content-security-policy", POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every page: no foreign script runs in it, and no other window gets a reference to it."""


PLAIN = b"text/plain; charset=utf-8"
AS_TEXT: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
    ),
)
"""For plain text. Browsers add a style of their own to it."""


class PageResponse(NamedTuple):
    """A body with its content type; HTML by default."""

    body: bytes
    status: int = 200
    kind: bytes = HTML
    headers: Headers = ()

    def all_headers(self) -> Headers:
        """Its headers, and the default headers that it does not override."""
        own = {name for name, _ in self.headers}
        return (*self.headers, *(pair for pair in GUARDED if pair[0] not in own))
