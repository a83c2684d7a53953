"""A session as somebody reads it: from its end or at a message, however long, and while it is being said."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from playwright.async_api import Page, Route, expect

from hitherto.model import (
    Draft,
    Image,
    Live,
    Plan,
    Principal,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
    encode,
)
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import say
from tests.gateway.page.visitor import Visitor
from tests.support.waits import arrives

LONG = 50_000
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SIZE = "document.querySelectorAll('#feed > article').length"


async def session_of(kept: Sessions, who: Principal, *drafts: Draft) -> str:
    session = await kept.create(who, title="Talk")
    await kept.append(who, session.id, drafts)
    return session.id


async def numbered(kept: Sessions, who: Principal, number: int) -> tuple[str, list[str]]:
    """A session of so many messages, and their ids."""
    session = await kept.create(who, title="Long")
    ids: list[str] = []
    for start in range(0, number, 1_000):
        stop = min(start + 1_000, number)
        drafts = [
            say(f"Message {each}.", "assistant" if each % 10 else "user") for each in range(start, stop)
        ]
        ids += (await kept.append(who, session.id, drafts)).entries
    return session.id, ids


async def shown(visitor: Visitor) -> list[int]:
    texts = await visitor.page.locator("#feed > article .said").all_inner_texts()
    return [int(each.strip().removeprefix("Message ").removesuffix(".")) for each in texts]


async def unfolded(page: Page) -> None:
    """Unfold the steps of all turns."""
    for each in await page.locator(".work > details:not([open]) > summary").all():
        await each.click()
    await expect(page.locator(".work:not(:has(.entry))")).to_have_count(0)


async def test_every_kind_of_part_has_its_form(enter: Enter, kept: Sessions, ann: Principal) -> None:
    calls = (
        ToolCall(id="1", name="Bash", kind="execute", input={"command": "make test", "timeout": 5}),
        ToolCall(id="2", name="Edit", kind="edit", input={"file_path": "/a/b.py", "old_string": "one\n", "new_string": "two\n"}),
        ToolCall(id="3", name="lookup", input={"deep": {"er": [1, True, None]}}),
    )  # fmt: skip
    results = (
        ToolResult(id="1", is_error=True, content=(Text(text="\x1b[31mFAILED\x1b[0m \x1b[2Jtwo"),)),
        ToolResult(id="2", content=(Text(text="Replaced."),)),
        ToolResult(
            id="3", content=(Text(text=json.dumps({"found": 3})), Image(mime_type="image/png", data=DOT))
        ),
    )
    made = await session_of(
        kept,
        ann,
        say("Please **fix** it"),
        Draft(
            role="assistant",
            model="a-model",
            usage=Usage(input=1_500, output=20, cost=0.5),
            parts=(Thought(text="I wonder"), Text(text="```python\ndef f(): pass\n```"), *calls),
        ),
        Draft(role="tool", parts=results),
        Draft(role="assistant", parts=(Plan(steps=({"content": "Step one", "status": "completed"},)),)),
    )
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await expect(page.locator(".entry.user strong")).to_have_text("fix")
    await unfolded(page)
    await expect(page.locator(".said .k").first).to_have_text("def")
    await expect(page.get_by_text("I wonder")).to_be_hidden()
    await page.get_by_text("Thought").click()
    await expect(page.get_by_text("I wonder")).to_be_visible()
    for told in ("a-model", "20 tokens out, 1.5k in", "$0.50"):
        await expect(page.locator(".steps .entry header").first).to_contain_text(told)
    bash = page.locator(".card", has_text="Bash")
    await expect(bash.locator("summary").first).to_have_text(re.compile(r"Bash\s+make test\s+failed"))
    await bash.locator("summary").first.click()
    await expect(bash.locator(".ansi-red")).to_have_text("FAILED")
    await expect(bash.locator(".output")).to_have_text("FAILED two")
    edit = page.locator(".card.edit")
    await expect(edit.locator(".removed")).to_have_text("-one")
    await expect(edit.locator(".added")).to_have_text("+two")
    lookup = page.locator(".card", has_text="lookup")
    await lookup.locator("summary").first.click()
    await expect(lookup.locator(".result .key")).to_have_text("found")
    await expect(lookup.locator("img")).to_have_js_property("naturalWidth", 1)
    await expect(page.get_by_text("Step one")).to_be_visible()
    assert await page.locator("#feed .entry").count() == 3  # the results stand in the cards of their calls


async def test_a_session_opens_at_its_end_and_loads_what_is_older_without_a_jump(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 500)
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await expect(page.get_by_text("Message 499.")).to_be_in_viewport()
    seen = await shown(visitor)
    # Far up, so that older ones come; the one that is looked at stays where it is.
    await page.evaluate("scrollTo(0, 300)")
    mark = page.get_by_text(f"Message {seen[0] + 5}.", exact=True)
    before = await mark.bounding_box()
    await expect(page.get_by_text(f"Message {seen[0] - 1}.", exact=True)).to_be_attached()
    after = await mark.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 2
    while await page.locator("#older").count():
        first = (await shown(visitor))[0]
        await page.evaluate("scrollTo(0, 0)")
        if first:
            await expect(page.get_by_text(f"Message {first - 1}.", exact=True)).to_be_attached()
    assert (await shown(visitor))[0] == 0
    await visitor.becomes(f"{SIZE} <= 200", True)
    # And down again, to the end.
    await visitor.scrolled_through("#newer", "#feed > article")
    numbers = await shown(visitor)
    assert numbers == list(range(numbers[0], 500))
    await visitor.becomes(f"{SIZE} <= 200", True)


async def test_a_very_long_session_opens_scrolls_is_selected_from_and_is_found_in(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, ids = await numbered(kept, ann, LONG)
    visitor = await enter()
    page = visitor.page
    middle = LONG // 2
    for path in (f"/s/{made}", f"/s/{made}?at={ids[middle]}"):
        reply = await page.goto(visitor.base + path)
        assert reply is not None
        assert len(await reply.body()) < 150_000
    await expect(page.locator(".entry.target")).to_contain_text(f"Message {middle}.")
    # What is selected stays so while pages come and go around it.
    await page.locator(".entry.target .said").click(click_count=3)
    chosen = "getSelection().toString().trim()"
    assert await page.evaluate(chosen) == f"Message {middle}."
    seen = await shown(visitor)
    for _ in range(8):
        await page.evaluate("scrollTo(0, 0)")
        await expect(page.get_by_text(f"Message {seen[0] - 1}.", exact=True)).to_be_attached()
        seen = await shown(visitor)
        assert seen == list(range(seen[0], seen[-1] + 1))
    assert seen[0] < middle - 300
    assert await page.evaluate(chosen) == f"Message {middle}."
    await visitor.becomes(f"{SIZE} <= 600", True)
    # Without it, what is far away goes.
    await page.evaluate("getSelection().removeAllRanges()")
    await page.evaluate("scrollTo(0, 0)")
    await expect(page.get_by_text(f"Message {seen[0] - 1}.", exact=True)).to_be_attached()
    await visitor.becomes(f"{SIZE} <= 200", True)
    # A word that stands at the other end.
    await page.keyboard.press("/")
    await page.keyboard.type(f"{LONG - 7}")
    await page.keyboard.press("Enter")
    await expect(page.locator(".entry.target")).to_contain_text(f"Message {LONG - 7}.")
    await expect(page.locator(".entry.target")).to_be_in_viewport()
    await visitor.becomes(f"{SIZE} <= 200", True)
    await page.keyboard.press("Escape")
    await page.keyboard.press("K")
    await expect(page.locator(".entry.target")).to_contain_text(f"Message {LONG - 10}.")
    await page.keyboard.press("g")
    await expect(page.get_by_text("Message 0.", exact=True)).to_be_in_viewport()
    await page.keyboard.press("G")
    await expect(page.get_by_text(f"Message {LONG - 1}.", exact=True)).to_be_in_viewport()


async def test_a_link_to_a_message_opens_there(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, ids = await numbered(kept, ann, 300)
    visitor = await enter()
    for path in (f"/s/{made}?at={ids[100]}#m-{ids[100]}", f"/s/{made}#m-{ids[40]}"):
        await visitor.go(path)
        await expect(visitor.page.locator(".entry.target")).to_be_in_viewport()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("Message 40.")
    await visitor.page.locator(".entry.target .at").click()
    await expect(visitor.page).to_have_url(f"{visitor.base}/s/{made}?at={ids[40]}#m-{ids[40]}")


async def test_what_is_said_elsewhere_appears_and_is_followed(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 30)
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await kept.append(ann, made, say("Said just now"))
    await expect(page.get_by_text("Said just now")).to_be_in_viewport()
    # Somebody who reads further up is left alone, and told.
    await page.evaluate("scrollTo(0, 400)")
    await kept.append(ann, made, [say("And then"), say("and then", "assistant"), say("and again")])
    fresh = page.get_by_role("button", name="3 new")
    await expect(fresh).to_be_visible()
    assert await page.evaluate("scrollY") == 400
    await fresh.click()
    await expect(page.get_by_text("and again")).to_be_in_viewport()
    await expect(fresh).to_be_hidden()


async def test_an_answer_is_seen_while_it_is_being_said(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await session_of(kept, ann, say("Tell me"))
    visitor = await enter(f"/s/{made}")
    for text in ("It was", "It was a dark"):
        await kept.changes.put_live(ann, made, encode(Live(entry="next", parts=(Text(text=text),))))
        await expect(visitor.page.locator(".saying .said")).to_have_text(text)
    await kept.changes.put_live(ann, made, None)
    await kept.append(ann, made, say("It was a dark night.", "assistant"))
    await expect(visitor.page.locator("#feed")).to_contain_text("It was a dark night.")
    await expect(visitor.page.locator(".saying")).to_have_count(0)


async def test_a_rewound_session_is_read_again(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, ids = await numbered(kept, ann, 20)
    visitor = await enter(f"/s/{made}")
    await kept.rewind(ann, made, ids[10])
    await expect(visitor.page.get_by_text("Message 19.")).to_have_count(0)
    await expect(visitor.page.get_by_text("Message 9.")).to_be_visible()
    visitor.complaints.clear()  # the browser notes that the last message is gone


async def test_a_compaction_is_marked_and_nothing_is_lost(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 20)
    await kept.compact(ann, made, say("In short: numbers.", "system"), keep=4)
    visitor = await enter(f"/s/{made}")
    page, messages = visitor.page, visitor.page.locator("#feed > article")
    mark = page.locator(".entry.compaction")
    await expect(mark).to_contain_text("Compacted here")
    await expect(page.get_by_text("In short: numbers.")).to_be_hidden()
    await mark.get_by_text("Summary of earlier messages").click()
    await expect(page.get_by_text("In short: numbers.")).to_be_visible()
    # What has left the context is folded away, can be looked at, and folded again.
    await expect(messages).to_have_count(5)
    await expect(page.get_by_text("Message 15.")).to_have_count(0)
    await page.get_by_role("link", name="16 earlier messages not in the context").click()
    await expect(messages).to_have_count(21)
    await expect(page.locator(".past")).to_have_count(16)
    await expect(page.get_by_text("The context begins here")).to_be_visible()
    await page.get_by_role("button", name="Hide earlier messages").click()
    await expect(messages).to_have_count(5)
    await expect(page.get_by_role("link", name="16 earlier messages not in the context")).to_be_visible()


async def test_a_link_to_what_has_left_the_context_opens_there(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, ids = await numbered(kept, ann, 100)
    await kept.compact(ann, made, say("In short.", "system"), keep=4)
    await kept.append(ann, made, say("Message 100."))
    visitor = await enter(f"/s/{made}?at={ids[10]}#m-{ids[10]}")
    page = visitor.page
    await expect(page.locator(".entry.target")).to_contain_text("Message 10.")
    await visitor.scrolled_through("#newer", "#feed > article")
    await expect(page.get_by_text("The context begins here")).to_have_count(1)
    await expect(page.locator(".past + .begins")).to_contain_text("Message 96.")
    await expect(page.get_by_text("Message 100.")).to_be_attached()


async def test_one_jumps_from_prompt_to_prompt_and_to_failures(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 200)
    await kept.append(ann, made, Draft(role="tool", parts=(ToolResult(id="x", is_error=True),)))
    await kept.append(ann, made, [say(f"Message {number}.", "assistant") for number in range(200, 260)])
    visitor = await enter(f"/s/{made}", viewport={"width": 1600, "height": 720})
    target = visitor.page.locator(":focus")
    await visitor.page.keyboard.press("f")
    await expect(target).to_contain_text("failed")
    await visitor.page.keyboard.press("p")
    await expect(target).to_contain_text("Message 190.")
    await visitor.page.get_by_role("button", name="Previous of this kind").click()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("Message 180.")
    await visitor.page.get_by_label("Jump to").select_option("Answer")
    await visitor.page.get_by_role("button", name="Next of this kind").click()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("Message 181.")
    await visitor.page.get_by_label("Jump to").select_option("Summary")
    await visitor.page.get_by_role("button", name="Next of this kind").click()
    await expect(visitor.page.get_by_text("No later summary.")).to_be_visible()


async def test_one_goes_from_the_last_failure_to_the_first_in_one_step(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    session = await kept.create(ann, title="Failures")
    failed = [Draft(role="tool", parts=(ToolResult(id=f"{number}", is_error=True),)) for number in range(2)]
    between = [say(f"Message {number}.", "assistant") for number in range(2_500)]
    ids = (
        await kept.append(ann, session.id, [say("Go"), failed[0], *between, failed[1], say("Stop")])
    ).entries
    visitor = await enter(f"/s/{session.id}")
    for wanted in (ids[-2], ids[1]):
        await visitor.page.keyboard.press("f")
        await expect(visitor.page.locator(f"#m-{wanted}.target")).to_be_in_viewport()
    await visitor.becomes(f"{SIZE} <= 40", True)
    await visitor.page.keyboard.press("f")
    await expect(visitor.page.get_by_text("No earlier failure.")).to_be_visible()


async def test_a_result_stands_in_the_card_of_its_call_wherever_a_page_ends(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    session = await kept.create(ann, title="Calls")
    drafts: list[Draft] = []
    for number in range(70):
        call = ToolCall(id=f"c{number}", name="Look", input={"path": f"/{number}"})
        drafts.append(Draft(role="assistant", parts=(Text(text=f"Message {number}."), call)))
        drafts.append(Draft(role="tool", parts=(ToolResult(id=f"c{number}", content=(Text(text="found"),)),)))
    ids = (await kept.append(ann, session.id, drafts)).entries
    visitor = await enter()
    for place in ("", f"?before={ids[51]}", f"?after={ids[9]}", f"?at={ids[61]}", f"?at={ids[62]}"):
        await visitor.go(f"/s/{session.id}{place}")
        await visitor.is_in()
        await expect(visitor.page.get_by_text("no result")).to_have_count(0)
        await expect(visitor.page.get_by_text("of an earlier call")).to_have_count(0)


async def test_a_result_that_comes_later_is_put_into_the_card_of_its_call(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    call = ToolCall(id="1", name="Bash", kind="execute", input={"command": "make"})
    made = await session_of(kept, ann, say("Go"), Draft(role="assistant", parts=(Text(text="I will"), call)))
    visitor = await enter(f"/s/{made}")
    card = visitor.page.locator(".card")
    await expect(card).to_contain_text("no result")
    await card.locator("summary").click()
    await kept.append(
        ann, made, Draft(role="tool", parts=(ToolResult(id="1", content=(Text(text="made"),)),))
    )
    await expect(card.locator(".output")).to_have_text("made")
    await expect(card.locator(".output")).to_be_visible()
    await expect(visitor.page.locator("#feed > article")).to_have_count(2)


async def test_a_session_that_a_tool_has_started_is_read_within_its_card(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    parent = await kept.create(ann, session_id="claude:parent", title="Parent")
    child = await kept.fork(ann, parent.id, new_id="claude:parent:agent-7", title="Search the code")
    other = await kept.create(ann, session_id="claude:parent:agent-8", title="No child of it")
    await kept.append(ann, child.id, [say("Look for it"), say("It is in line 7", "assistant")])
    calls = tuple(
        ToolCall(id=name, name="Task", input={"description": name}) for name in ("first", "other", "gone")
    )
    told = {"first": {"agentId": "7"}, "other": {"session_id": other.id}, "gone": {"agentId": "9"}}
    results = tuple(ToolResult(id=name, output=output) for name, output in told.items())
    await kept.append(
        ann, parent.id, [Draft(role="assistant", parts=calls), Draft(role="tool", parts=results)]
    )
    visitor = await enter(f"/s/{parent.id}")
    page = visitor.page
    for each in await page.locator(".card").all():
        await each.locator("summary").first.click()
    inner = page.locator(".child")
    await expect(inner).to_have_count(1)
    await expect(page.get_by_text("It is in line 7")).to_have_count(0)
    await inner.get_by_text("Search the code").click()
    await expect(inner.get_by_text("It is in line 7")).to_be_visible()
    await expect(inner.get_by_role("button", name="Fork")).to_have_count(0)
    await inner.get_by_role("link", name="Open").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Search the code")


async def test_a_message_is_copied_as_markdown_and_shown_raw(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await session_of(kept, ann, say("Some **bold** <b>words</b>"))
    visitor = await enter(f"/s/{made}", permissions=["clipboard-read", "clipboard-write"])
    await visitor.page.locator(".entry").hover()
    await visitor.page.get_by_role("button", name="Copy").click()
    await expect(visitor.page.get_by_text("Copied.")).to_be_visible()
    assert await visitor.page.evaluate("navigator.clipboard.readText()") == "Some **bold** <b>words</b>"
    async with visitor.page.expect_navigation():
        await visitor.page.get_by_role("link", name="Raw").click()
    told = json.loads(await visitor.page.locator("pre").inner_text())
    assert told["parts"] == [{"type": "text", "text": "Some **bold** <b>words</b>"}]


async def test_a_session_is_renamed_and_tagged_where_it_is_read(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await session_of(kept, ann, say("Hello"))
    visitor = await enter(f"/s/{made}")
    await visitor.page.keyboard.press("r")
    await visitor.page.get_by_role("textbox", name="Title").fill("Another name")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Another name")
    await visitor.page.keyboard.press("t")
    await visitor.page.get_by_role("textbox", name="New tag").fill("tagged")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.locator(".tag")).to_have_count(1)
    assert (await kept.get(ann, made)).tags == ("tagged",)
    await kept.delete(ann, made)
    await expect(visitor.page.get_by_text("This session was deleted.")).to_be_visible()
    visitor.overlook(404)  # it may have been reading what was changed last


async def test_a_session_that_is_deleted_while_it_is_read_says_so(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await session_of(kept, ann, say("Hello"))
    visitor = await enter(f"/s/{made}")
    page, held = visitor.page, asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await arrives(deleted.wait(), "the end of the session")
        await route.continue_()

    deleted = asyncio.Event()
    await page.route("**/s/*?after=*", hold, times=1)
    await kept.append(ann, made, say("more"))
    await arrives(held.wait(), "the page to read what is new")
    await kept.delete(ann, made)
    deleted.set()
    await expect(page.get_by_text("This session was deleted.")).to_be_visible()
    await expect(page.get_by_text("Hello")).to_be_visible()
    visitor.overlook(404)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_wide_message_scrolls_within_itself_on_a_small_phone(
    enter: Enter, kept: Sessions, ann: Principal, scheme: str
) -> None:
    wide = "| " + " | ".join("column" * 3 for _ in range(12)) + " |\n|" + "---|" * 12
    made = await session_of(kept, ann, say(f"```\n{'x' * 900}\n```\n\n{wide}\n\n{'y' * 400}"))
    phone = {"width": 360, "height": 740}
    visitor = await enter(f"/s/{made}", viewport=phone, is_mobile=True, has_touch=True, color_scheme=scheme)
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= 360
