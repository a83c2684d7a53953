"""Finding words within a session: the server looks, the page goes there and sets them off."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from playwright.async_api import Page, expect

from hitherto.model import Draft, Principal, Text, Thought, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import say
from tests.gateway.page.test_session import numbered, session_of

SORTED = "(name) => [...new Set([...(CSS.highlights.get(name) ?? [])].map((each) => each.toString()))].sort()"
SET_OFF = "(name) => [...(CSS.highlights.get(name) ?? [])].map((each) => each.toString())"


async def find(page: Page, words: str) -> None:
    await page.keyboard.press("/")
    await page.get_by_role("searchbox", name="Find in this session").fill(words)


async def test_hits_are_counted_set_off_and_gone_to_one_after_the_other(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, ids = await numbered(kept, ann, 400)
    marked = (
        await kept.append(
            ann, made, [say("A **needle**."), say("Nothing.", "assistant"), say("Needles and needle")]
        )
    ).entries
    visitor = await enter(f"/s/{made}?at={ids[200]}")
    page, target = visitor.page, visitor.page.locator(".entry.target")
    await find(page, "needl")
    await expect(page.locator("#found")).to_have_text("2")
    await page.keyboard.press("Enter")
    await expect(page.locator("#found")).to_have_text("2 of 2")
    await expect(target).to_contain_text("Needles and needle")
    await visitor.becomes(SET_OFF, ["Needl", "needl"], "current")
    await visitor.becomes(SET_OFF, ["needl", "Needl", "needl"], "found")
    await page.keyboard.press("Enter")  # round to the first
    await expect(target).to_contain_text("A needle.")
    await page.get_by_role("button", name="Previous hit").click()
    await expect(target).to_contain_text("Needles and needle")
    # The same in the address: a link, or loading it again, finds it again.
    await expect(page).to_have_url(re.compile("find=needl"))
    await page.reload()
    await expect(page.locator("#found")).to_have_text("2")
    await visitor.go(f"/s/{made}?find=needle&at={marked[0]}")
    await expect(page.locator("#found")).to_have_text("2")
    await page.keyboard.press("n")
    await expect(page.locator("#found")).to_have_text("1 of 2")
    await page.get_by_role("searchbox").press("Escape")
    await visitor.becomes(SET_OFF, [], "found")
    await expect(page).not_to_have_url(re.compile("find="))


async def test_phrases_roles_and_words_in_any_writing_are_found_and_what_folds_them_opens(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    call = ToolCall(id="1", name="Bash", kind="execute", input={"command": "make quokka"})
    made = await session_of(
        kept,
        ann,
        say("The naïve café, 漢字仮名, parseFile(x)"),
        Draft(
            role="assistant", parts=(Thought(text="a hidden wombat"), Text(text="The cafe is naive"), call)
        ),
        Draft(role="tool", parts=(ToolResult(id="1", content=(Text(text="one numbat came back"),)),)),
    )
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    for words, number, found in (
        ("cafe", 2, {"café", "cafe"}),
        ('"cafe is naive"', 1, {"cafe is naive"}),
        ("cafe role:user", 1, {"café"}),
        ("字仮", 1, {"字仮"}),
        ("file", 1, {"File"}),
        ("nowhere", 0, set()),
    ):
        await find(page, words)
        await page.wait_for_url(re.compile(rf"[?&]find={re.escape(quote_plus(words))}($|&)"))
        await expect(page.locator("#found")).to_have_text(str(number) if number else "none")
        await visitor.becomes(SORTED, sorted(found), "found")
    for words in ("wombat", "numbat", "quokka"):
        await find(page, words)
        await page.keyboard.press("Enter")
        await expect(page.locator("#found")).to_have_text("1 of 1")
        shown = page.locator(".entry.target").get_by_text(words).last
        await expect(shown).to_be_visible()
        await visitor.becomes(f"(name) => ({SET_OFF})(name).length > 0", True, "current")


async def test_many_hits_are_counted_up_to_a_thousand(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, _ = await numbered(kept, ann, 1_200)
    visitor = await enter(f"/s/{made}")
    await find(visitor.page, "message")
    await expect(visitor.page.locator("#found")).to_have_text("1,000+")


async def test_what_is_looked_for_while_typing_is_what_was_typed_last(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await session_of(kept, ann, say("alpha"), say("alpine"), say("beta"))
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await page.keyboard.press("/")
    await page.keyboard.type("alp", delay=5)
    await expect(page.locator("#found")).to_have_text("2")
    await page.keyboard.type("ha ", delay=5)
    await expect(page.locator("#found")).to_have_text("1")
    await find(page, "a")
    await expect(page.locator("#found")).to_have_text("")


async def test_nobody_finds_or_jumps_in_a_session_of_somebody_else(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    bob = Principal(owner=f"bob-of-{ann.owner}")
    theirs = await kept.create(bob, title="Bob's")
    (entry,) = (await kept.append(bob, theirs.id, say("needle"))).entries
    visitor = await enter()
    ask = "async ([path]) => (await fetch(path, {headers: {'X-Hitherto': '1'}})).status"
    for path, status in (
        (f"/find?session={theirs.id}&q=needle", 404),
        (f"/jump?session={theirs.id}&from={entry}&kind=user", 404),
        (f"/jump?session={theirs.id}&from={entry}&kind=robot", 400),
    ):
        assert await visitor.page.evaluate(ask, [path]) == status
    visitor.complaints.clear()  # the browser notes each
