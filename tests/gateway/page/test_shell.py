"""What is around every view: the places, the list beside a session, the way back, and how it all looks."""

from __future__ import annotations

from playwright.async_api import expect

from hitherto.model import Draft, Principal, ToolCall
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import PHONE, begun, say

SCHEME = "getComputedStyle(document.documentElement).colorScheme"


async def test_a_session_is_read_beside_the_list_that_it_was_opened_from(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    for title in ("One", "Two", "Three"):
        await begun(kept, ann, title, f"about {title}", tags=("red",))
    elsewhere = await begun(kept, ann, "Another", "of no tag")
    visitor = await enter("/?tag=red", viewport={"width": 1440, "height": 900})
    page = visitor.page
    beside = page.get_by_role("complementary", name="Sessions")
    names, chosen = beside.locator(".row .name"), beside.locator(".name [aria-current]")
    await page.get_by_role("link", name="Two").click()
    await expect(names).to_have_text(["Three", "Two", "One"])
    await expect(chosen).to_have_text("Two")
    size = await beside.bounding_box()
    assert size is not None
    assert size["width"] == 320
    header = await page.locator(".heading").bounding_box()
    assert header is not None
    assert header["height"] == 44
    for told in ("Two", "Hitherto", "Resume", "Share"):
        await expect(page.locator(".heading")).to_contain_text(told)
    await page.keyboard.press("]")
    await expect(page.locator("#feed")).to_contain_text("about One")
    await expect(chosen).to_have_text("One")
    await page.keyboard.press("]")
    await expect(page.get_by_text("This is the last session of the list.")).to_be_visible()
    await page.keyboard.press("[")
    await expect(chosen).to_have_text("Two")
    # What changes elsewhere is seen beside it, and nothing else moves.
    await begun(kept, ann, "Four", tags=("red",))
    await expect(names).to_have_text(["Four", "Three", "Two", "One"])
    await names.filter(has_text="Three").click()
    await expect(chosen).to_have_text("Three")
    await page.keyboard.press("u")
    await expect(page).to_have_url(f"{visitor.base}/?tag=red")
    await visitor.go(f"/s/{elsewhere}")
    await visitor.is_in()
    await page.keyboard.press("]")
    await expect(page.get_by_text("This session is not in the list that you came from.")).to_be_visible()


async def test_below_that_width_one_thing_is_shown_with_a_way_back(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "One", "first")
    await begun(kept, ann, "Two", *["second\n\n" * 10] * 3)
    visitor = await enter(viewport=PHONE, has_touch=True, is_mobile=True)
    page = visitor.page
    places = await page.get_by_role("navigation", name="Pages").bounding_box()
    assert places is not None
    assert places["y"] + places["height"] == PHONE["height"]
    await page.get_by_role("button", name="Filters").tap()
    await expect(page.locator(".facets").get_by_role("link", name="Pinned")).to_be_in_viewport()
    await page.get_by_role("button", name="Done").tap()
    await expect(page.locator(".facets")).to_be_hidden()
    await page.get_by_role("link", name="Two").tap()
    await expect(page.locator("#feed")).to_contain_text("second")
    await expect(page.locator("#beside")).to_be_hidden()
    await visitor.is_in()
    await page.evaluate("scrollTo(0, 0)")
    write = await page.locator("#composer").bounding_box()
    assert write is not None
    assert write["y"] + write["height"] <= places["y"]
    await page.keyboard.press("]")
    await expect(page.locator("#feed")).to_contain_text("first")
    await page.get_by_role("link", name="Back to the list").tap()
    await expect(page.locator(".row")).to_have_count(2)


async def test_theme_and_text_size_are_chosen_and_stay(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    await kept.append(ann, made, say("and an answer", "assistant"))
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    width = "document.querySelector('#feed .said p').getBoundingClientRect().height"
    before = await page.evaluate(width)
    assert await page.evaluate(SCHEME) == "light dark"
    await page.locator("#more > summary").click()
    await page.get_by_label("Dark").check(force=True)
    await page.get_by_label("Large").check(force=True)
    for _ in range(2):
        assert await page.evaluate(SCHEME) == "dark"
        assert await page.evaluate(width) > before
        await page.reload()
        await visitor.is_in()
    await page.locator("#more > summary").click()
    await page.get_by_label("System").check(force=True)
    assert await page.evaluate(SCHEME) == "light dark"
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("System")).to_be_hidden()


async def test_one_box_finds_sessions_files_commands_and_filters(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "Birds", "The **heron** stands `still` in [the](https://a.example/) water.")
    made = await begun(kept, ann, "Edits", project="github.com/ada/engine")
    given = {"file_path": "/srv/engine/heron.py", "old_string": "a", "new_string": "b"}
    await kept.append(ann, made, Draft(role="assistant", parts=(ToolCall(id="1", name="edit", input=given),)))
    visitor = await enter("/usage")
    page, box = visitor.page, visitor.page.get_by_role("combobox", name="Find sessions, files")
    found = page.get_by_role("listbox", name="Found").get_by_role("option")
    await page.keyboard.press("Control+k")
    await expect(found.first).to_contain_text("Edits")
    await box.fill("heron stands")
    await expect(found.first).to_contain_text("The heron stands still in the water.")
    await box.fill("heron.py")
    await found.filter(has_text="/srv/engine/heron.py").click()
    await expect(page.locator("main")).to_contain_text("Edits")
    await visitor.is_in()
    await page.keyboard.press("Control+k")
    await box.fill("proj")
    await found.filter(has_text="project:").click()
    await expect(box).to_have_value("project:")
    await box.press_sequentially("engine")
    await expect(found.first).to_contain_text("Edits")
    await page.get_by_text("Newest", exact=True).click()
    await box.fill("inbox")
    await expect(found.first).to_contain_text("Inbox")
    await box.press("Enter")
    await expect(page).to_have_url(f"{visitor.base}/inbox")
    await visitor.is_in()
    await page.get_by_role("button", name="Find").click()
    await box.fill("theme dark")
    await box.press("Enter")
    await visitor.becomes(SCHEME, "dark")
    await expect(box).to_be_hidden()
