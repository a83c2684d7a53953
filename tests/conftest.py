"""What tests stand on: a store of each kind, a second connection to it, a clock and ids that do what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import hitherto
from hitherto.model import Principal
from hitherto.ports import Store
from hitherto.service import Sessions
from hitherto.stores import connector
from tests.support.homes import (
    CARELESS,
    PARTITIONS,
    TEMPLATE,
    Clock,
    Home,
    MemoryHome,
    PostgresHome,
    SqliteHome,
    counting,
)
from tests.support.postgres_server import PostgresServer
from tests.support.statements import recorded, unlike_the_rule

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background: the programs that tests start and interrupt would not hear ^C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something of the machine only.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", untimed, derandomize=True)
settings.register_profile("chance", untimed, print_blob=True)
# The same examples each time, so that a run says something of the change and not of chance; `--hypothesis-profile=chance` looks for more.
settings.load_profile("same")

SHARED = ("sqlite", "postgres")
"""The stores that several processes can open."""
STORES = ("memory", *SHARED)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio alone: the stores are written for it."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests, with a database to clone: the schema as the store itself makes it."""
    with PostgresServer(fast=True) as server:
        url = server.create_database(TEMPLATE) + CARELESS
        url += f"&partitions={PARTITIONS}" if PARTITIONS else ""

        async def migrate() -> None:
            async with hitherto.open(url):
                pass

        asyncio.run(migrate())
        yield server


@pytest.fixture(scope="session")
def postgres_database(postgres_server: PostgresServer) -> Iterator[PostgresHome]:
    """One database for all tests that only write rows."""
    with contextlib.closing(PostgresHome(postgres_server, "hitherto_test")) as database:
        yield database


@pytest.fixture(scope="session", autouse=True)
def statements() -> Iterator[None]:
    """Each statement that the tests of this process have the PostgreSQL store issue is about one owner."""
    with recorded() as seen:
        yield
    assert unlike_the_rule(seen) == {}


def _make_home(request: pytest.FixtureRequest) -> Home:
    folder: Path = request.getfixturevalue("tmp_path")
    if request.param == "memory":
        return MemoryHome()
    if request.param == "sqlite":
        return SqliteHome(folder)
    database: PostgresHome = request.getfixturevalue("postgres_database")
    database.empty()
    return database


@pytest.fixture(params=STORES)
def home(request: pytest.FixtureRequest) -> Home:
    """A place for an empty store, of each kind in turn."""
    return _make_home(request)


@pytest.fixture(params=STORES)
def homes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Home]]:
    """Makes as many places for stores of one kind, apart from each other, as a test asks for."""
    numbers = itertools.count(1)
    server: PostgresServer | None = None
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
    with contextlib.ExitStack() as undo:

        def make() -> Home:
            name = f"apart_{next(numbers)}"
            if request.param == "memory":
                return MemoryHome()
            if request.param == "sqlite":
                (tmp_path / name).mkdir()
                return SqliteHome(tmp_path / name)
            assert server is not None
            undo.callback(server.drop_database, name)
            # Not a clone of one that is in use: each store makes its own key for cursors.
            return PostgresHome(server, name, template="template1")

        yield make


@pytest.fixture(params=SHARED)
def shared_home(request: pytest.FixtureRequest) -> Home:
    """The same, for stores that several processes can open."""
    return _make_home(request)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def new_id() -> Callable[[], str]:
    """Ids that rise by one, the same for every connection of the test."""
    return counting().__next__


@pytest.fixture
async def store(home: Home, clock: Clock) -> AsyncIterator[Store]:
    async with connector(home.url)(home.url, clock) as opened:
        yield opened


@pytest.fixture
async def sessions(store: Store, clock: Clock, new_id: Callable[[], str]) -> Sessions:
    return Sessions(store, now=clock, new_id=new_id)


@pytest.fixture
async def other(home: Home, store: Store, clock: Clock, new_id: Callable[[], str]) -> AsyncIterator[Sessions]:
    """A second connection to the data of `sessions`, as another process would have."""
    async with connector(home.url)(home.url, clock) as opened:
        assert opened is not store
        yield Sessions(opened, now=clock, new_id=new_id)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each connection to PostgreSQL only knows what the server tells it: there the second stands for both."""

    def is_told_twice(item: pytest.Item) -> bool:
        given = getattr(getattr(item, "callspec", None), "params", {})
        return (given.get("home"), given.get("reader")) == ("postgres", "same connection")

    items[:] = [item for item in items if not is_told_twice(item)]


@pytest.fixture(params=("same connection", "second connection"))
def reader(request: pytest.FixtureRequest, sessions: Sessions) -> Sessions:
    """What a test looks at the data with: what it wrote with, or a second connection."""
    if request.param == "same connection":
        return sessions
    second: Sessions = request.getfixturevalue("other")
    return second


@pytest.fixture
def ann() -> Principal:
    return Principal(owner="ann")


@pytest.fixture
def bob() -> Principal:
    return Principal(owner="bob")
