"""Pages on PostgreSQL, where the changes of different sessions have positions in different lanes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import begun, say
from tests.gateway.page.test_live import hide
from tests.gateway.servers import Server, serving
from tests.support.homes import CARELESS, TEMPLATE
from tests.support.postgres_server import PostgresServer

SESSIONS = 5


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> Iterator[str]:
    yield postgres_server.create_database("pages", template=TEMPLATE) + CARELESS
    postgres_server.drop_database("pages")


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[Server]:
    with serving(url, tokens={}, limits={"stranger_burst": 100_000}) as running:
        yield running


async def test_every_page_is_told_of_its_session_whatever_lane_it_is_in(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = [await begun(kept, ann, "Talk", "hello") for _ in range(SESSIONS)]
    visitor = await enter()
    pages = []
    for each in made:
        page = await visitor.page.context.new_page()
        await page.goto(f"{visitor.base}/s/{each}")
        await expect(page.locator("#more")).to_be_visible()
        pages.append(page)
    for text in ("for the first time", "for the second time"):
        for each, page in zip(made, pages, strict=True):
            await kept.append(ann, each, say(text))
            await expect(page.get_by_text(text)).to_be_visible()
    await hide(pages[0], True)
    for each in made:
        await kept.append(ann, each, say("while one was away"))
    await expect(pages[1].get_by_text("while one was away")).to_be_visible()
    await hide(pages[0], False)
    await expect(pages[0].get_by_text("while one was away")).to_be_visible()
