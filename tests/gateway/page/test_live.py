"""What is said elsewhere comes to every page that is open, in its place and once, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from playwright.async_api import Page, Route, expect

from hitherto.model import Draft, Principal, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_actions import said
from tests.gateway.page.test_list import begun, say
from tests.gateway.page.test_session import SIZE, numbered, session_of, shown, unfolded
from tests.gateway.page.visitor import Visitor
from tests.gateway.servers import go
from tests.support.waits import arrives

TABS = 8
"""More than browsers have connections to one server."""
HIDDEN = "Object.defineProperty(document, 'hidden', {get: () => %s, configurable: true}); document.dispatchEvent(new Event('visibilitychange'))"
LOAD = "async (at) => { for (const each of [1, 2]) await fetch(at, {headers: {'X-Hitherto': '1'}}).then((answer) => answer.text()); }"
BOX = "Write a prompt"
CALL = Draft(role="assistant", parts=(ToolCall(id="c", name="look"),))


async def hide(page: Page, hidden: bool) -> None:
    await page.evaluate(HIDDEN % ("true" if hidden else "false"))


def asked_after(visitor: Visitor) -> list[str]:
    return [each for each in visitor.asked if "?after=" in each and "/s/" in each]


async def test_many_pages_hold_one_connection_and_all_are_told(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = [await begun(kept, ann, "Talk", "hello") for _ in range(TABS)]
    visitor = await enter()
    pages = []
    for each in made:
        page = await visitor.page.context.new_page()
        await page.goto(f"{visitor.base}/s/{each}")
        await expect(page.locator("#more")).to_be_visible()
        pages.append(page)
    await visitor.page.close()  # it asked for all; another one does then
    for each, page in zip(made, pages, strict=True):
        await kept.append(ann, each, say("to all"))
        await expect(page.get_by_text("to all")).to_be_visible()


async def test_a_running_turn_holds_no_request(
    enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    page = (await enter(f"/s/{made}")).page
    await page.get_by_label(BOX).fill(f"wait {pipe}")
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/rpc")):
        await page.get_by_label(BOX).press("Enter")
    await expect(page.locator(".saying")).to_contain_text("Waiting.")
    await page.get_by_label(BOX).fill("And this?")
    await page.get_by_label(BOX).press("Enter")
    await expect(page.locator("#sending .entry")).to_contain_text("And this?")
    await expect(page.get_by_label(BOX)).to_have_value("")
    await asyncio.to_thread(go, pipe)
    await expect(page.locator("#feed")).to_contain_text("Waiting. Done.")
    await expect(page.locator("#feed")).to_contain_text("And this?")
    await expect(page.locator(".sending")).to_have_count(0)


async def test_a_call_that_never_came_back_keeps_nothing_new_away(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    drafts = [say("Message 0."), CALL, *(say(f"Message {each}.") for each in range(1, 36))]
    made = await session_of(kept, ann, *drafts)
    visitor = await enter(f"/s/{made}")
    await kept.append(ann, made, [say(f"Message {each}.") for each in range(36, 96)])
    await expect(visitor.page.get_by_text("Message 95.")).to_be_in_viewport()
    await visitor.becomes("feed.dataset.end", "97")
    await kept.append(ann, made, say("Message 96."))
    await expect(visitor.page.get_by_text("Message 96.")).to_be_in_viewport()
    assert await shown(visitor) == list(range(97))


async def test_what_comes_while_one_reads_further_up_is_counted_and_not_all_loaded(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 60)
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await expect(page.get_by_text("Message 59.")).to_be_in_viewport()
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    await kept.append(ann, made, [say(f"Message {each}.") for each in range(60, 860)])
    await expect(page.get_by_role("button", name="800 new")).to_be_visible()
    await visitor.becomes(f"{SIZE} <= 200", True)
    assert len(asked_after(visitor)) <= 8
    await page.get_by_role("button", name="800 new").click()
    await expect(page.get_by_text("Message 859.")).to_be_in_viewport()
    await expect(page.get_by_role("button", name="new")).to_have_count(0)
    await page.keyboard.press("g")
    await expect(page.get_by_text("Message 0.")).to_be_in_viewport()
    await kept.append(ann, made, say("Message 860."))
    await expect(page.get_by_role("button", name="1 new")).to_be_visible()


async def test_who_goes_elsewhere_while_something_new_is_read_finds_all_in_its_place(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 100)
    visitor = await enter(f"/s/{made}")
    page, held, let_go = visitor.page, asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await arrives(let_go.wait(), "leave to go on")
        await route.continue_()

    await page.route("**/s/*?after=*", hold, times=1)
    await kept.append(ann, made, say("Message 100."))
    await arrives(held.wait(), "the request")
    await page.keyboard.press("g")
    await page.evaluate(LOAD, f"/s/{made}?first=1")
    let_go.set()
    await expect(page.get_by_text("Message 0.", exact=True)).to_be_in_viewport()
    here = await shown(visitor)
    assert here == list(range(len(here)))
    await page.keyboard.press("G")
    await expect(page.get_by_text("Message 100.")).to_be_in_viewport()


async def test_what_could_not_be_read_is_read_later(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    await visitor.page.route("**/s/*?after=*", lambda route: route.abort(), times=1)
    await kept.append(ann, made, say("the last word"))
    await expect(visitor.page.get_by_text("the last word")).to_be_visible()
    visitor.complaints.clear()  # the browser notes what was lost


async def test_a_page_that_nobody_looks_at_reads_nothing_and_catches_up_when_it_is_shown(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    beside = await visitor.page.context.new_page()
    await beside.goto(f"{visitor.base}/")
    await expect(beside.locator("#more")).to_be_visible()
    await hide(visitor.page, True)
    await kept.append(ann, made, say("unheard"))
    await expect(beside.locator(".row.unread")).to_have_count(1)
    assert asked_after(visitor) == []
    await hide(visitor.page, False)
    await expect(visitor.page.get_by_text("unheard")).to_be_visible()
    session = await kept.get(ann, made)
    assert session.read_at is not None
    assert session.read_at >= session.updated_at


async def test_news_leave_the_focus_and_what_is_unfolded_where_they_are(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await session_of(kept, ann, say("please look"), CALL, say("meanwhile"))
    page = (await enter(f"/s/{made}")).page
    await unfolded(page)
    await expect(page.locator(".card .status")).to_have_text("no result")
    await page.locator(".card > summary").click()
    for at, text in ((".card > summary", "one more"), (".prompt >> nth=1 >> .copy", "and another")):
        await page.locator(at).focus()
        await kept.append(ann, made, say(text))
        await expect(page.get_by_text(text)).to_be_visible()
        await expect(page.locator(at)).to_be_focused()
    await page.locator(".card > summary").focus()
    await kept.append(ann, made, Draft(role="tool", parts=(ToolResult(id="c", content=()),)))
    await expect(page.locator(".card .status")).to_have_count(0)
    await expect(page.locator(".card > summary")).to_be_focused()
    await expect(page.locator(".card")).to_have_attribute("open", "")


async def test_a_prompt_lost_on_the_way_is_known_again_after_a_reload(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "Once")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label(BOX)
    await page.route("**/rpc", lambda route: route.abort())
    await box.fill("Once")
    await box.press("Enter")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await page.reload()
    await expect(box).to_have_value("Once")  # as it was never said: another that is the same was
    await page.unroute("**/rpc")

    async def lose(route: Route) -> None:
        answer = await route.fetch(
            headers={**await route.request.all_headers(), "sec-fetch-site": "same-origin"}
        )
        assert answer.ok
        await route.abort()

    await page.route("**/rpc", lose, times=1)
    await box.press("Enter")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await page.reload()
    await expect(page.locator("#feed > article").last).to_contain_text("You said: Once")
    await expect(box).to_have_value("")
    assert await said(kept, ann, made) == ["Once", "Once", "You said: Once"]
    visitor.complaints.clear()


async def test_why_an_answer_failed_stays_until_it_is_tried_again(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label(BOX)
    await box.fill('[{"fail": "the model is tired"}]')
    await box.press("Enter")
    await expect(page.locator(".ended")).to_contain_text("the model is tired")
    await expect(box).to_have_value("")
    await page.reload()
    await expect(page.locator(".ended")).to_contain_text("the model is tired")
    await page.get_by_role("button", name="Rewind and try again").click()
    await expect(page.locator(".ended")).to_have_count(0)
    await expect(box).to_have_value('[{"fail": "the model is tired"}]')
    await expect(page.locator("#feed > article")).to_have_count(1)
    await box.fill("Again")
    await box.press("Enter")
    await expect(page.locator("#feed > article").last).to_contain_text("You said: Again")
    await expect(page.locator(".ended")).to_have_count(0)
    visitor.overlook(404)


async def test_unsent_words_outlive_a_rewind_and_its_taking_back(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "first", "second")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label(BOX)
    await box.fill("My unsent words")
    await page.locator(".entry", has_text="second").hover()
    await page.locator(".entry", has_text="second").get_by_role("button", name="Rewind").click()
    await expect(box).to_have_value("second\n\nMy unsent words")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("Restored.")).to_be_visible()
    await expect(box).to_have_value("My unsent words")
    visitor.overlook(404)


async def test_a_prompt_is_shown_at_once_and_not_lost_before_it_is_kept(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label(BOX)
    held = asyncio.Event()
    holding: list[Route] = []

    def hold(route: Route) -> None:
        holding.append(route)
        held.set()

    await page.route("**/rpc", hold)
    await box.fill("On its way")
    await box.press("Enter")
    await arrives(held.wait(), "the request")
    await expect(page.locator(".sending")).to_have_text("On its way")
    await expect(box).to_have_value("")
    await box.fill("And more")
    await page.reload()
    await expect(box).to_have_value("On its way\n\nAnd more")
    assert await said(kept, ann, made) == ["hello"]


async def test_pressing_twice_forks_once(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}")
    await visitor.page.locator(".entry .fork").dblclick()
    await visitor.page.wait_for_url(lambda url: made not in url)
    assert await kept.count(ann) == 2


async def test_every_page_says_that_one_is_signed_out(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter("/usage")
    beside = await visitor.page.context.new_page()
    await beside.goto(f"{visitor.base}/checkpoints?session={made}")
    await expect(beside.locator("#more")).to_be_visible()
    await kept.tokens.revoke(visitor.token.id)
    for page in (visitor.page, beside):
        await expect(page.get_by_text("You were signed out.")).to_be_visible()
    visitor.overlook(401)
