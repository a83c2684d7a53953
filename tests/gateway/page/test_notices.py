"""What every page says: what stands is not hidden by what passes, and leads on."""

from __future__ import annotations

from playwright.async_api import expect

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import begun, say


async def test_that_the_server_is_away_stays_told_whatever_else_is(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "One")
    visitor = await enter()
    page = visitor.page
    await page.route("**/live?*", lambda route: route.abort())
    await page.route("**/rpc", lambda route: route.abort())
    await kept.rename(ann, made, "Two")  # the request that waits is answered, the next one is not
    away = page.get_by_text("Cannot reach the server.")
    await expect(away).to_be_visible()
    await page.locator(".row .name a").focus()
    await page.keyboard.press("p")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await expect(away).to_be_visible()
    await page.unroute_all()
    await expect(page.get_by_text("Reconnected.")).to_be_visible()
    await expect(away).to_be_hidden()
    visitor.complaints.clear()  # the browser notes what did not arrive


async def test_one_signs_in_again_also_where_a_message_is_read(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk")
    first = (await kept.append(ann, made, say("hello"))).entries[0]
    visitor = await enter(f"/s/{made}?at={first}#m-{first}")
    await visitor.page.context.clear_cookies()
    await kept.append(ann, made, say("more"))
    await visitor.page.get_by_role("button", name="Sign in again").click()
    await expect(visitor.page.get_by_label("A token")).to_be_visible()
    visitor.overlook(401)


async def test_letters_choose_in_a_list_of_choices_as_everywhere(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter(f"/s/{made}", viewport={"width": 1600, "height": 800})
    kind = visitor.page.get_by_label("Jump to")
    await kind.focus()
    await kind.press("f")
    await expect(kind).to_have_value("failure")
    await expect(visitor.page.locator("#notice")).to_be_hidden()
