"""The list while it changes: rows change where they stand, or go, and neither place, focus nor selection is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from playwright.async_api import Locator, Page, Route, expect

from hitherto.model import Entry, Principal, Text
from hitherto.service import Imported, Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import PHONE, begun, say, titles
from tests.gateway.page.visitor import Visitor
from tests.support.waits import until

TOPS = "() => [...document.querySelectorAll('.row')].map((row) => [row.dataset.id, row.getBoundingClientRect().top])"


def row(page: Page, name: str) -> Locator:
    return page.locator(".row").filter(has=page.get_by_role("link", name=name, exact=True))


async def many(kept: Sessions, who: Principal, number: int, **fields: object) -> list[str]:
    return [await begun(kept, who, f"Number {each}", **fields) for each in range(number)]


async def scrolled(visitor: Visitor, number: int) -> None:
    """All of the rows, of which there are so many."""
    await visitor.scrolled_through("#following", ".row")
    await expect(visitor.page.locator(".row")).to_have_count(number)


async def refused(page: Page, when: Callable[[str], bool]) -> None:
    """What is asked of the server, if it is such, does not arrive."""

    async def handle(route: Route) -> None:
        work: Callable[[], Awaitable[None]] = (
            route.abort if when(route.request.post_data or "") else route.continue_
        )
        await work()

    await page.route("**/rpc", handle)


async def test_a_row_far_down_changes_where_it_stands_and_what_is_selected_stays_so(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 70)
    visitor = await enter()
    page = visitor.page
    await scrolled(visitor, 70)
    await page.get_by_role("link", name="Number 3", exact=True).focus()
    before = await titles(visitor)
    await page.keyboard.press("p")
    await expect(row(page, "Number 3")).to_contain_text("pinned")
    await expect(page.get_by_role("link", name="Number 3", exact=True)).to_be_focused()
    await page.keyboard.press("e")
    await page.get_by_role("textbox", name="Title").fill("Renamed")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Renamed", exact=True)).to_be_focused()
    await page.get_by_label("Select Number 5", exact=True).check()
    await kept.tag(ann, ids[2], add=["seen"])
    await expect(row(page, "Number 2").locator(".tag")).to_have_text(["seen×"])
    await expect(page.get_by_label("Select Number 5", exact=True)).to_be_checked()
    await expect(page.locator("#how-many")).to_have_text("1 selected")
    assert await titles(visitor) == [name if name != "Number 3" else "Renamed" for name in before]


async def test_a_row_that_does_not_belong_any_more_goes_and_the_next_has_the_focus(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 4, tags=("red",))
    visitor = await enter("/?tag=red")
    page, names = visitor.page, visitor.page.locator(".row .name")
    await kept.archive(ann, ids[3])
    await expect(names).to_have_text(["Number 2", "Number 1", "Number 0"])
    await page.get_by_role("link", name="Number 2").focus()
    await row(page, "Number 2").get_by_role("button", name="Remove the tag red").click()
    await expect(names).to_have_text(["Number 1", "Number 0"])
    await expect(page.get_by_role("link", name="Number 1")).to_be_focused()


async def test_the_list_stands_still_while_something_is_said_below(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 45)
    visitor = await enter()
    page = visitor.page
    await page.mouse.wheel(0, 600)
    await page.wait_for_function("scrollY === 600")
    before = dict(await page.evaluate(TOPS))
    await page.evaluate("document.querySelector('.row:nth-child(20)').kept = true")
    await kept.append(ann, ids[0], say("more"))
    await expect(page.locator(".row .name").first).to_have_text("Number 0")
    after = dict(await page.evaluate(TOPS))
    moved = [name for name in before if abs(before[name] - after[name]) > 0.5]
    assert moved == [ids[0]]
    assert await page.evaluate("[...document.querySelectorAll('.row')].filter((row) => row.kept).length") == 1


async def test_a_session_of_an_odd_name_goes_from_the_list_when_it_is_deleted(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    taken = Imported(id="pi:it's(1)!*", source="pi", created_at=1, updated_at=2, title="Odd")
    await kept.transfer.sync(ann, taken, [Entry(id="a", at=2, role="user", parts=(Text(text="hello"),))])
    await begun(kept, ann, "Plain")
    visitor = await enter()
    await expect(visitor.page.locator(".row")).to_have_count(2)
    await kept.delete(ann, taken.id)
    await expect(visitor.page.locator(".row .name")).to_have_text(["Plain"])


async def test_one_character_is_no_question_and_shows_all_again(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "One", "an answer")
    await begun(kept, ann, "Two", "nothing")
    visitor = await enter()
    box = visitor.page.get_by_role("searchbox")
    await box.fill("answer")
    await expect(visitor.page.locator(".row .name")).to_have_text(["One"])
    await box.fill("a")
    await expect(visitor.page.locator(".row")).to_have_count(2)
    await expect(visitor.page).to_have_url(f"{visitor.base}/")


async def test_deletions_are_told_once_and_taken_back_together_with_the_keyboard(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 3)
    visitor = await enter()
    page, back = visitor.page, visitor.page.get_by_role("button", name="Undo")
    await visitor.stop_the_clock()
    for name in ("Number 0", "Number 1"):
        await page.get_by_label(f"Select {name}").check()
        await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
        await expect(back).to_be_focused()
        await page.clock.run_for(3_000)
    await expect(page.get_by_text("Deleting 2 sessions in 7 s.")).to_be_visible()
    await expect(back).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing was deleted.")).to_be_visible()
    await expect(page.locator(".row:visible")).to_have_count(3)
    await expect(page.get_by_role("link", name="Number 0")).to_be_focused()
    await page.clock.run_for(20_000)
    assert [(await kept.get(ann, each)).id for each in ids] == ids


async def test_what_could_not_be_deleted_comes_back_and_only_that(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 3)
    visitor = await enter()
    page = visitor.page
    await visitor.stop_the_clock()
    await refused(page, lambda body: "session.delete" in body and ids[1] in body)
    for each in range(3):
        await page.get_by_label(f"Select Number {each}").check()
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await page.clock.run_for(10_000)
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await expect(page.locator(".row:visible .name")).to_have_text(["Number 1"])
    await expect(page.locator(".row")).to_have_count(1)
    visitor.complaints.clear()  # the browser notes what did not arrive


async def test_what_is_refused_stays_to_be_mended_and_is_no_longer_than_it_may_be(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "Old")
    visitor = await enter()
    page, field = visitor.page, visitor.page.get_by_role("textbox", name="Title")
    await refused(page, lambda body: "Refused" in body)
    await page.get_by_role("link", name="Old").focus()
    await page.keyboard.press("e")
    await expect(field).to_have_attribute("maxlength", "500")
    await field.fill("Refused")
    await field.press("Enter")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await expect(field).to_have_value("Refused")
    await field.fill("Taken")
    await field.press("Enter")
    await expect(page.get_by_role("link", name="Taken")).to_be_focused()
    visitor.complaints.clear()  # the browser notes what did not arrive


async def test_on_a_phone_rows_are_selected_named_pinned_and_put_away(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = await many(kept, ann, 3)
    visitor = await enter(viewport=PHONE, has_touch=True, is_mobile=True)
    page, bar = visitor.page, visitor.page.get_by_role("toolbar", name="Selected sessions")
    await page.get_by_role("button", name="Select").tap()
    target = page.locator(".pick").first
    size = await target.bounding_box()
    assert size is not None
    assert min(size["width"], size["height"]) >= 44
    await row(page, "Number 1").get_by_role("button", name="Rename").tap()
    await page.get_by_role("textbox", name="Title").fill("Named")
    await page.keyboard.press("Enter")
    await page.get_by_label("Select Named").tap()
    await bar.get_by_role("button", name="Pin").tap()
    await expect(row(page, "Named")).to_contain_text("pinned")
    await target.tap()
    await bar.get_by_role("button", name="Archive").tap()
    await expect(page.locator(".row .name")).to_have_text(["Named", "Number 0"])
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    found = [await kept.get(ann, each) for each in ids]
    assert [(each.pinned, each.archived) for each in found] == [(False, False), (True, False), (False, True)]


async def test_who_comes_back_finds_the_list_where_it_was(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await many(kept, ann, 120)
    visitor = await enter()
    page = visitor.page
    await scrolled(visitor, 120)
    link = page.get_by_role("link", name="Number 12", exact=True)
    await link.scroll_into_view_if_needed()
    before = await link.bounding_box()
    await link.click()
    await expect(page.get_by_role("heading", name="Number 12")).to_be_visible()
    await page.go_back()
    await expect(page.locator(".row")).to_have_count(120)
    await expect(link).to_be_in_viewport()

    async def stands_as_before() -> bool:
        return await link.bounding_box() == before

    await until(stands_as_before, f"the list where it was, at {before}")


async def test_a_status_that_was_chosen_can_be_taken_back(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    failed, _ = await many(kept, ann, 2)
    await kept.catalog.set_status(ann, failed, "failed")
    visitor = await enter("/?status=failed")
    await expect(visitor.page.locator(".row")).to_have_count(1)
    chosen = visitor.page.locator(".facets [aria-current]")
    await expect(chosen).to_have_text(["Failed"])
    await chosen.click()
    await expect(visitor.page.locator(".row")).to_have_count(2)


async def test_a_title_is_set_from_the_side_its_words_begin_at(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "שלום!", tags=("שלום",))
    visitor = await enter()
    for place in (".row .name", ".row .tag a"):
        direction = await visitor.page.locator(place).evaluate("(at) => getComputedStyle(at).direction")
        assert direction == "rtl"
