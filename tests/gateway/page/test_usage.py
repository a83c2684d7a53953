"""Usage: what was spent when, on what and where; every mark leads to the sessions behind it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import expect

import hitherto
from hitherto.gateway.auth.tokens import Caller
from hitherto.gateway.page.views.usage import UsageQuery, parse_usage_query, usage_page
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Entry, Principal, Text, Usage
from hitherto.service import Imported, Sessions
from hitherto.values.days import DAY_MS, today
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import PHONE
from tests.gateway.page.visitor import Visitor


async def worked(
    kept: Sessions, who: Principal, name: str, ago: int, *, messages: int = 1, **fields: Any
) -> str:
    """A session of another agent, in which something was said so many days ago."""
    at = now_ms() - ago * DAY_MS
    # Each request has an id of its own: two may fall into the same millisecond.
    used = [Usage(input=900, output=100, cost=0.25, request=f"{name}-{n}") for n in range(messages)]
    said = [
        Entry(id=f"{name}-{n}", at=at - n, role="assistant", model="opus", tokens=1_000, usage=usage, parts=(Text(text=name),))
        for n, usage in enumerate(used)
    ]  # fmt: skip
    taken = Imported(id=f"claude:{name}", source="claude", created_at=at, updated_at=at, title=name, **fields)
    await kept.transfer.sync(who, taken, said)
    return taken.id


def day(ago: int) -> str:
    return str(today(now_ms()) - timedelta(days=ago))


async def shown(visitor: Visitor, *titles: str) -> None:
    await expect(visitor.page.locator(".row .name")).to_have_text(list(titles))


async def test_what_was_used_is_added_up_by_project_model_and_agent_in_days_weeks_and_months(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await worked(kept, ann, "Old", 40, messages=3, project="github.com/ada/heron")
    await worked(kept, ann, "New", 0, messages=2, project="github.com/ada/engine")
    await worked(kept, ann, "Newer", 0, project="github.com/ada/heron")
    visitor = await enter()
    page = visitor.page
    await page.keyboard.press("o")
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    sums, table = page.locator(".sums > div"), page.locator(".matrix")
    await expect(sums).to_have_text(
        ["Cost$0.75", "Tokens in2.7k", "Tokens out300", "Cache hits0%", "Sessions2"]
    )
    await expect(page.get_by_text("$0.75 reported by agents")).to_be_visible()
    await expect(table.locator("thead th")).to_have_text(["Day", "ada/engine", "ada/heron", "All"])
    await expect(table.locator("tbody tr")).to_have_text([f"{day(0)}$0.50$0.25$0.75"])
    dearest = page.get_by_role("region", name="Most expensive sessions")
    await expect(dearest.get_by_role("link")).to_have_text(["New", "Newer"])
    for name in ("90 days", "Month", "Tokens", "Agent"):
        await page.get_by_role("link", name=name, exact=True).click()
    await expect(page).to_have_url(f"{visitor.base}/usage?days=90&per=month&of=tokens&by=agent")
    await expect(table.locator("thead th")).to_have_text(["Month", "Claude Code", "All"])
    await expect(table.locator("tfoot td")).to_have_text(["6.0k", "6.0k"])
    async with page.expect_download() as begins:
        await page.get_by_role("link", name="CSV").click()
    lines = (await (await begins.value).path()).read_text().splitlines()
    assert lines[0].startswith("period,name,sessions,requests,input_tokens")
    assert [line.split(",")[1:6] for line in lines[1:]] == [
        ["claude", "1", "3", "2700", "300"],
        ["claude", "2", "3", "2700", "300"],
    ]
    await page.get_by_role("link", name="Week", exact=True).click()
    await page.get_by_role("group", name="Tokens of each week").get_by_role("link").last.click()
    await shown(visitor, "Newer", "New")
    await page.go_back()
    await page.get_by_role("link", name=f"{day(40)}: 3 messages").click()
    await shown(visitor, "Old")


async def test_arrows_go_from_mark_to_mark(enter: Enter, kept: Sessions, ann: Principal) -> None:
    for name, ago in (("One", 1), ("Two", 2), ("Three", 3)):
        await worked(kept, ann, name, ago)
    visitor = await enter("/usage")
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


async def test_usage_of_nothing_is_calm_and_fits_a_small_phone(enter: Enter) -> None:
    visitor = await enter("/usage", viewport=PHONE, has_touch=True, is_mobile=True)
    await expect(visitor.page.get_by_text("No usage recorded in this period.")).to_be_visible()
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def as_shown_to(sessions: Sessions, owner: str) -> str:
    token, secret = await sessions.tokens.create(owner)
    return (await usage_page(Caller(sessions, token, secret), UsageQuery())).decode()


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
        ({}, UsageQuery()),
        (
            {"days": "365", "of": "tokens", "by": "model", "per": "week"},
            UsageQuery(days=365, of="tokens", by="model", per="week"),
        ),
        ({"days": "7", "of": "<b>", "by": "", "per": "year"}, UsageQuery()),
    ],
)
def test_an_address_says_what_is_shown_or_nothing(asked: dict[str, str], means: UsageQuery) -> None:
    assert parse_usage_query(asked) == means
    assert parse_usage_query(asked, "Nowhere/Land") == means


def test_an_address_says_only_what_is_not_usual() -> None:
    assert UsageQuery().address_with() == "/usage"
    assert UsageQuery(days=90, zone="Asia/Tokyo").address_with(by="model") == "/usage?days=90&by=model"
