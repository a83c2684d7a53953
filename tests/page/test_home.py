"""The list as somebody uses it: found, narrowed, renamed, tagged, and moving by itself."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from recollect.model import Draft, Principal, Text
from recollect.service import Sessions
from tests.page.conftest import Enter
from tests.page.visiting import Visitor

PHONE = {"width": 360, "height": 740}


def say(text: str, role: str = "user") -> Draft:
    return Draft(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]  # a role by its name


async def begun(kept: Sessions, who: Principal, title: str, *texts: str, **fields: object) -> str:
    session = await kept.create(who, title=title, **fields)  # type: ignore[arg-type]  # as `create` has them
    if texts:
        await kept.append(who, session.id, [say(text) for text in texts])
    return session.id


async def titles(visitor: Visitor) -> list[str]:
    return await visitor.page.locator(".row .name").all_inner_texts()


async def test_an_empty_list_teaches(enter: Enter) -> None:
    visitor = await enter()
    for command in ("recollect sync --watch", "recollect acp", "recollect chat"):
        await expect(visitor.page.get_by_text(command)).to_be_visible()


async def test_a_row_says_what_is_known(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Fix the parser", "a", "b", cwd="/home/ann/code/parser", tags=("work",))
    await kept.set_status(ann, made, "running")
    visitor = await enter()
    row = visitor.page.locator(".row")
    for told in ("Fix the parser", "code/parser", "2 messages", "work", "running", "now"):
        await expect(row).to_contain_text(told)


async def test_what_is_said_elsewhere_moves_its_row_to_the_top(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    first = await begun(kept, ann, "First", "hello")
    await begun(kept, ann, "Second", "hello")
    visitor = await enter()
    assert await titles(visitor) == ["Second", "First"]
    await kept.append(ann, first, say("more"))
    await expect(visitor.page.locator(".row .name").first).to_have_text("First")
    await expect(visitor.page.locator(".row").first).to_contain_text("2 messages")
    await begun(kept, ann, "Third")
    await expect(visitor.page.locator(".row .name").first).to_have_text("Third")
    await kept.delete(ann, first)
    await expect(visitor.page.get_by_text("First", exact=True)).to_have_count(0)


async def test_the_first_session_takes_the_place_of_the_lesson(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    visitor = await enter()
    await begun(kept, ann, "The first")
    await expect(visitor.page.get_by_role("link", name="The first")).to_be_visible()
    await expect(visitor.page.locator("#nothing")).to_have_count(0)


async def test_search_finds_as_one_types_and_leads_to_the_message(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "About birds", "The heron stands still.", "A heron again.", "and one more heron")
    await begun(kept, ann, "About trees", "The oak is old.")
    visitor = await enter()
    await visitor.page.keyboard.press("/")
    await visitor.page.keyboard.type("hero")
    await expect(visitor.page.locator(".row")).to_have_count(1)
    await expect(visitor.page.locator(".found mark")).to_have_text(["heron"])
    await expect(visitor.page.locator(".found")).to_contain_text("2 more")
    await expect(visitor.page).to_have_url(f"{visitor.base}/?q=hero")
    await visitor.page.reload()
    await visitor.page.get_by_role("link", name="About birds").click()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("and one more heron")


async def test_search_knows_the_operators_and_says_when_nothing_is_found(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "One", "needle", tags=("red",))
    await begun(kept, ann, "Two", "needle", tags=("blue",))
    visitor = await enter()
    await visitor.page.get_by_role("searchbox").fill("needle tag:blue")
    await expect(visitor.page.locator(".row .name")).to_have_text(["Two"])
    await visitor.page.get_by_role("searchbox").fill("nowhere")
    await expect(visitor.page.get_by_text("Nothing found")).to_be_visible()
    await visitor.page.get_by_role("searchbox").fill("")
    await expect(visitor.page.locator(".row")).to_have_count(2)


async def test_facets_are_in_the_address(enter: Enter, kept: Sessions, ann: Principal) -> None:
    await begun(kept, ann, "Tagged", tags=("red",))
    away = await begun(kept, ann, "Put away")
    await kept.archive(ann, away)
    visitor = await enter()
    assert await titles(visitor) == ["Tagged"]
    await visitor.page.get_by_role("link", name="Archived").click()
    await expect(visitor.page.locator(".row .name")).to_have_text(["Put away"])
    assert visitor.page.url.endswith("/?archived=1")
    await visitor.page.get_by_role("link", name="All", exact=True).click()
    await visitor.page.get_by_role("link", name="red", exact=True).click()
    await expect(visitor.page.get_by_role("link", name="Without the tag red")).to_be_visible()
    assert visitor.page.url.endswith("/?tag=red")
    await visitor.page.get_by_role("link", name="Claude Code").click()
    await expect(visitor.page.get_by_text("Nothing found")).to_be_visible()


async def test_scrolling_brings_all_rows_once(enter: Enter, kept: Sessions, ann: Principal) -> None:
    for number in range(120):
        await kept.create(ann, title=f"Number {number}")
    visitor = await enter()
    rows = visitor.page.locator(".row")
    await expect(rows.first).to_be_visible()
    while await visitor.page.locator("#following").count():
        before = await rows.count()
        await rows.last.scroll_into_view_if_needed()
        await expect(rows.nth(before)).to_be_attached()
        if await rows.count() >= 120:
            await expect(visitor.page.locator("#following")).to_have_count(0)
    assert sorted(await titles(visitor)) == sorted(f"Number {number}" for number in range(120))


async def test_a_name_is_changed_where_it_stands(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Old name")
    visitor = await enter()
    await visitor.page.keyboard.press("j")
    await visitor.page.keyboard.press("e")
    field = visitor.page.get_by_role("textbox", name="Title")
    await expect(field).to_have_value("Old name")
    await field.press("Escape")
    await expect(visitor.page.get_by_role("link", name="Old name")).to_be_focused()
    await visitor.page.locator(".row").hover()
    await visitor.page.get_by_role("button", name="Rename").click()
    await field.fill("New <name>")
    await field.press("Enter")
    await expect(visitor.page.get_by_role("link", name="New <name>")).to_be_visible()
    assert (await kept.get(ann, made)).title == "New <name>"


async def test_tags_are_added_and_removed_where_they_stand(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Tagged", tags=("old",))
    visitor = await enter()
    await visitor.page.get_by_role("link", name="Tagged").focus()
    await visitor.page.keyboard.press("t")
    await visitor.page.get_by_role("textbox", name="New tag").fill("new & shiny")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.locator(".tag")).to_have_count(2)
    assert (await kept.get(ann, made)).tags == ("new & shiny", "old")
    await visitor.page.get_by_role("button", name="Remove the tag old").click()
    await expect(visitor.page.locator(".tag")).to_have_count(1)
    assert (await kept.get(ann, made)).tags == ("new & shiny",)


async def test_nobody_sees_what_is_somebody_elses(enter: Enter, kept: Sessions, ann: Principal) -> None:
    bob = Principal(owner=f"not-{ann.owner}")
    foreign = await begun(kept, bob, "Bob's own", "secret heron")
    visitor = await enter()
    assert await titles(visitor) == []
    await visitor.go("/?q=heron")
    await expect(visitor.page.get_by_text("Nothing found")).to_be_visible()
    replies = [await visitor.page.goto(f"{visitor.base}/s/{each}") for each in (foreign, "nothing-at-all")]
    assert [reply.status for reply in replies if reply] == [404, 404]
    visitor.complaints.clear()  # the browser notes both


@pytest.mark.parametrize("path", ["/", "/?q=words"])
async def test_nothing_is_wider_than_a_small_phone(
    enter: Enter, kept: Sessions, ann: Principal, path: str
) -> None:
    await begun(kept, ann, "W" * 300, "words " + "x" * 500, cwd="/" + "y" * 300, tags=("z" * 60, "tag"))
    visitor = await enter(path, viewport=PHONE, has_touch=True, is_mobile=True)
    await expect(visitor.page.locator(".row")).to_be_visible()
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_the_keys_are_told(enter: Enter) -> None:
    visitor = await enter()
    await visitor.page.keyboard.press("?")
    await expect(visitor.page.get_by_role("dialog", name="Keys")).to_be_visible()
    await visitor.page.keyboard.press("Escape")
    await expect(visitor.page.get_by_role("dialog")).to_have_count(0)
