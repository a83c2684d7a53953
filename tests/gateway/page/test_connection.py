"""Signed out, expired, revoked, or the server away: each page says so, keeps what was written, and recovers by itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect

import hitherto
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Principal, Token
from hitherto.service import Sessions
from hitherto.service.access.signin import PASS_MS
from tests.gateway.page.browser import context_of
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_actions import said
from tests.gateway.page.test_list import begun, say
from tests.gateway.page.visitor import Visitor, leave
from tests.gateway.servers import serving

OUT = "You were signed out."
End = Callable[[Visitor, Page, str], Awaitable[None]]


async def signed_out(visitor: Visitor, beside: Page, url: str) -> None:  # noqa: ARG001
    await leave(beside)


async def revoked(visitor: Visitor, beside: Page, url: str) -> None:  # noqa: ARG001
    await visitor.kept.tokens.revoke(visitor.token.id)


async def expired(visitor: Visitor, beside: Page, url: str) -> None:  # noqa: ARG001
    """The browser has a pass that was given a week ago."""
    (cookie,) = await visitor.cookies()
    async with hitherto.open(url, now=lambda: now_ms() - PASS_MS - 1) as then:
        old = await then.signin.admit(visitor.token)
    shown: dict[str, object] = {**cookie, "value": old}
    await visitor.page.context.add_cookies([shown])  # type: ignore[list-item]  # as the browser told it


@pytest.mark.parametrize("end", [signed_out, revoked, expired])
async def test_who_is_known_no_more_is_told_and_goes_on_after_signing_in_again_elsewhere(
    enter: Enter, kept: Sessions, ann: Principal, url: str, end: End
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label("Write a prompt")
    beside = await page.context.new_page()
    await beside.goto(f"{visitor.base}/")
    await expect(beside.locator("#more")).to_be_visible()
    await box.fill("Half a thought")
    await end(visitor, beside, url)
    await kept.append(ann, made, say("said meanwhile"))
    await expect(page.get_by_text(OUT)).to_be_visible()
    await box.press("Enter")  # what cannot be sent stays
    await expect(box).to_have_value("Half a thought")
    assert await said(kept, ann, made) == ["hello", "said meanwhile"]

    fresh, secret = await kept.tokens.create(ann.owner)
    await beside.goto(f"{visitor.base}/")
    await beside.get_by_label("A token").fill(secret)
    await beside.get_by_role("button", name="Sign in").click()
    await expect(beside.locator("#more")).to_be_visible()
    await expect(page.get_by_text("said meanwhile")).to_be_visible()
    await expect(page.get_by_text(OUT)).to_be_hidden()
    await expect(box).to_have_value("Half a thought")
    await box.press("Enter")
    await expect(page.locator("#feed > article").last).to_contain_text("You said: Half a thought")
    for each in (secret, fresh.id, (await visitor.cookies())[0]["value"]):
        assert each not in await page.content()
        assert not [asked for asked in visitor.asked if each in asked]
    visitor.overlook(401)


async def test_a_page_to_sign_in_on_opens_when_somebody_signs_in_beside_it(
    browser: Browser, enter: Enter, kept: Sessions, ann: Principal, token: Token
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter()
    context = await context_of(browser)
    waiting, beside = await context.new_page(), await context.new_page()
    await waiting.goto(f"{visitor.base}/s/{made}")
    await expect(waiting.get_by_label("A token")).to_be_visible()
    await beside.goto(f"{visitor.base}/#code={await kept.signin.invite(token)}")
    await expect(waiting.get_by_text("hello")).to_be_visible()
    assert waiting.url == f"{visitor.base}/s/{made}"
    await context.close()


async def test_a_prompt_whose_answer_got_lost_on_the_way_is_not_said_twice(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label("Write a prompt")

    async def lose(route: Route) -> None:
        answer = await route.fetch(
            headers={**await route.request.all_headers(), "sec-fetch-site": "same-origin"}
        )
        assert answer.ok
        await route.abort()

    await page.route("**/rpc", lose, times=1)
    await box.fill("Once")
    await box.press("Enter")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await expect(page.locator("#feed > article").last).to_contain_text("You said: Once")
    await expect(box).to_have_value("")  # it is among the messages, so it has come
    assert await said(kept, ann, made) == ["Once", "You said: Once"]
    await box.fill("Once")  # and what is meant anew is said anew
    await box.press("Enter")
    await expect(page.locator("#feed > article")).to_have_count(4)
    visitor.complaints.clear()  # the browser notes what was lost


async def test_what_is_sent_while_the_server_is_away_stays_and_is_said_once_when_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'hitherto.db'}"
    context = await context_of(browser)
    page = await context.new_page()
    box = page.get_by_label("Write a prompt")
    async with hitherto.open(url) as kept:
        made = await begun(kept, LOCAL, "Talk", "hello")
        token, _ = await kept.tokens.create(LOCAL.owner)
        with serving(url, tokens={}) as first:
            await Visitor(first, kept, token, page).sign_in(f"/s/{made}")
            port = first.port
        await box.fill("Are you there?")
        await box.press("Enter")
        await expect(page.get_by_text("The server does not answer.")).to_be_visible()
        await expect(box).to_have_value("Are you there?")
        await expect(page.get_by_text("Cannot reach the server.")).to_be_visible()
        with serving(url, tokens={}, port=port):
            await expect(page.get_by_text("Reconnected.")).to_be_visible()
            await box.press("Enter")
            await expect(page.locator("#feed > article").last).to_contain_text("You said: Are you there?")
        assert await said(kept, LOCAL, made) == ["hello", "Are you there?", "You said: Are you there?"]
    await context.close()
