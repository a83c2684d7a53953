"""What tests of the page stand on: one server for all, an owner for each, its store seen from another process, a browser."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Browser, Page

import hitherto
from hitherto.ids import now_ms
from hitherto.model import Principal, Token
from hitherto.service import Sessions
from tests.gateway.page.browser import browser as a_browser
from tests.gateway.page.browser import context_of
from tests.gateway.page.visitor import Visitor, watched
from tests.gateway.servers import Server, serving

Enter = Callable[..., Awaitable[Visitor]]


class Ticking:
    """The real time, but never the same moment twice: what was made later is listed before what was made earlier."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> int:
        self._last = max(self._last + 1, now_ms())
        return self._last


_owners = itertools.count(1)


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with a_browser() as running:
        yield running


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('page') / 'hitherto.db'}"


@pytest.fixture(scope="package")
def server(url: str) -> Iterator[Server]:
    with serving(url, tokens={}, limits={"stranger_burst": 100_000}) as running:
        yield running


@pytest.fixture
async def kept(url: str, server: Server) -> AsyncIterator[Sessions]:  # noqa: ARG001 - the server makes the store
    """The server's store, in another process than the server's. No two things happen in one millisecond."""
    async with hitherto.open(url, now=Ticking()) as sessions:
        yield sessions


@pytest.fixture
def ann() -> Principal:
    """Somebody who has nothing yet."""
    return Principal(owner=f"ann-{next(_owners)}")


@pytest.fixture
async def token(kept: Sessions, ann: Principal) -> Token:
    return (await kept.tokens.create(ann.owner))[0]


@pytest.fixture
async def enter(browser: Browser, server: Server, kept: Sessions, token: Token) -> AsyncIterator[Enter]:
    """Opens the page as somebody who has signed in. What browsers complain about is a failure in the end."""
    visitors: list[Visitor] = []
    async with AsyncExitStack() as opened:

        async def entering(path: str = "/", as_: Token = token, **options: object) -> Visitor:
            context = await context_of(browser, **options)
            opened.push_async_callback(context.close)
            page: Page = await context.new_page()
            visitor = Visitor(server, kept, as_, page)
            visitors.append(visitor)
            await watched(visitor)
            await visitor.sign_in(path)
            return visitor

        yield entering
        for visitor in visitors:
            visitor.is_calm()
