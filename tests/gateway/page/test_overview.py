"""The overview: what was said when, with what and where; every mark leads to the sessions behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import expect

import hitherto
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.views.overview import OverviewQuery, overview, parse_overview_query
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Entry, Principal, Text, Usage
from hitherto.service import Imported, Sessions
from hitherto.values.days import DAY_MS, today
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import PHONE, begun
from tests.gateway.page.visitor import Visitor


async def worked(
    kept: Sessions, who: Principal, name: str, ago: int, *, messages: int = 1, **fields: Any
) -> str:
    """A session of another agent, in which something was said so many days ago."""
    at = now_ms() - ago * DAY_MS
    usage = Usage(input=900, output=100, cost=0.25)
    said = [
        Entry(id=f"{name}-{n}", at=at, role="assistant", model="opus", tokens=1_000, usage=usage, parts=(Text(text=name),))
        for n in range(messages)
    ]  # fmt: skip
    taken = Imported(id=f"claude:{name}", source="claude", created_at=at, updated_at=at, title=name, **fields)
    await kept.transfer.sync(who, taken, said)
    return taken.id


def day(ago: int) -> str:
    return str(today(now_ms()) - timedelta(days=ago))


async def shown(visitor: Visitor, *titles: str) -> None:
    await expect(visitor.page.locator(".row .name")).to_have_text(list(titles))


async def test_what_was_said_is_added_up_and_each_day_leads_to_its_sessions(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await worked(kept, ann, "Old", 40, messages=3)
    await worked(kept, ann, "Older", 200)
    away = await worked(kept, ann, "Archived one", 40)
    await kept.archive(ann, away)
    visitor = await enter()
    page = visitor.page
    await page.keyboard.press("o")
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    sums = page.locator(".sums > div")
    await expect(sums).to_have_text(["Active days1", "Messages4", "Tokens4.0k", "Cost$1.00"])
    await page.get_by_role("link", name="1 year").click()
    await expect(sums).to_have_text(["Active days2", "Messages5", "Tokens5.0k", "Cost$1.25"])
    await expect(page).to_have_url(f"{visitor.base}/overview?days=365")
    await page.get_by_role("link", name=f"{day(40)}: 4 messages").click()
    await shown(visitor, "Archived one", "Old")
    await expect(page).to_have_url(f"{visitor.base}/?day={day(40)}")


async def test_a_column_leads_to_the_sessions_of_its_day_and_agent(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await worked(kept, ann, "By Claude", 0)
    await begun(kept, ann, "By a coder", "hello", agent_id="coder")
    await begun(kept, ann, "Here", "hello")
    visitor = await enter("/overview?days=30")
    page = visitor.page
    chart = page.get_by_role("group", name="Tokens on each day")
    await chart.get_by_role("link", name=f"{day(0)}, Claude Code: 1.0k").click()
    await shown(visitor, "By Claude")
    await page.go_back()
    await page.get_by_role("link", name="Cost", exact=True).click()
    await expect(page.get_by_role("heading", name="Cost by agent")).to_be_visible()
    await page.get_by_role("link", name="Model", exact=True).click()
    await expect(page.locator(".legend")).to_have_text("opus $0.25")
    await expect(page).to_have_url(f"{visitor.base}/overview?days=30&of=cost&by=model")
    await page.get_by_role("link", name=f"{day(0)}, opus: $0.25").click()
    await expect(page.locator(".row")).to_have_count(3)


async def test_the_busiest_projects_and_the_longest_sessions_come_first(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await worked(kept, ann, "Short", 1, project="github.com/ada/engine")
    await worked(kept, ann, "Long", 2, messages=5, project="github.com/ada/heron")
    visitor = await enter("/overview")
    page = visitor.page
    projects = page.get_by_role("region", name="Busiest projects")
    await expect(projects.get_by_role("link")).to_have_text(["ada/heron", "ada/engine"])
    await expect(projects.locator("li").first).to_contain_text("5 messages, 1 session")
    longest = page.get_by_role("region", name="Longest sessions")
    await expect(longest.get_by_role("link")).to_have_text(["Long", "Short"])
    await projects.get_by_role("link", name="ada/engine").click()
    await shown(visitor, "Short")
    await page.go_back()
    await longest.get_by_role("link", name="Long").click()
    await expect(page.locator(".entry")).to_have_count(5)


async def test_arrows_go_from_mark_to_mark(enter: Enter, kept: Sessions, ann: Principal) -> None:
    for name, ago in (("One", 1), ("Two", 2), ("Three", 3)):
        await worked(kept, ann, name, ago)
    visitor = await enter("/overview")
    marks = visitor.page.get_by_role("group", name="Messages on each day").get_by_role("link")
    await expect(marks).to_have_count(3)
    await expect(visitor.page.locator(".calendar a[tabindex='0']")).to_have_count(1)
    await marks.last.focus()
    await visitor.page.keyboard.press("ArrowLeft")
    await expect(marks.nth(1)).to_be_focused()
    await visitor.page.keyboard.press("Home")
    await expect(marks.first).to_be_focused()
    await visitor.page.keyboard.press("Enter")
    await shown(visitor, "Three")


async def test_an_overview_of_nothing_is_calm_and_fits_a_small_phone(enter: Enter) -> None:
    visitor = await enter("/overview", viewport=PHONE, has_touch=True, is_mobile=True)
    await expect(visitor.page.get_by_text("No sessions in this period.")).to_be_visible()
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def as_shown_to(sessions: Sessions, owner: str) -> str:
    token, secret = await sessions.tokens.create(owner)
    return (await overview(Caller(sessions, token, secret), OverviewQuery())).decode()


async def test_nobody_sees_what_others_have_said_nor_how_much_it_is() -> None:
    async with hitherto.open("memory:") as sessions:
        await worked(sessions, Principal(owner="bob"), "Foreign", 0, project="github.com/bob/secret")
        seen = await as_shown_to(sessions, "ann")
        assert "<dd>0</dd>" in seen
        assert not any(told in seen for told in ("Foreign", "secret", "messages</title>", "Size"))
        assert "secret" in await as_shown_to(sessions, "bob")
        assert "Size" in await as_shown_to(sessions, LOCAL.owner)


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ({}, OverviewQuery()),
        ({"days": "365", "of": "cost", "by": "model"}, OverviewQuery(days=365, of="cost", by="model")),
        ({"days": "7", "of": "<b>", "by": ""}, OverviewQuery()),
    ],
)
def test_an_address_says_what_is_shown_or_nothing(asked: dict[str, str], means: OverviewQuery) -> None:
    assert parse_overview_query(asked) == means


def test_an_address_says_only_what_is_not_usual() -> None:
    assert OverviewQuery().address_with() == "/overview"
    assert OverviewQuery(days=30).address_with(by="model") == "/overview?days=30&by=model"
