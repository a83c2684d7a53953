"""A session as somebody reads it: from its end or at a message, however long, and while it is being said."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import expect

from recollect.model import (
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
from recollect.service import Sessions
from tests.page.conftest import Enter
from tests.page.test_home import say
from tests.page.visiting import Visitor

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
    await expect(page.locator(".said .k").first).to_have_text("def")
    await expect(page.get_by_text("I wonder")).to_be_hidden()
    await page.get_by_text("Thought").click()
    await expect(page.get_by_text("I wonder")).to_be_visible()
    for told in ("a-model", "20 tokens out, 1.5k in", "$0.50"):
        await expect(page.locator(".entry.assistant header").first).to_contain_text(told)
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
    assert await page.locator("#feed > article").count() == 3  # the results stand in the cards of their calls


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
    assert await page.evaluate(SIZE) <= 200
    # And down again, to the end.
    while await page.locator("#newer").count():
        last = (await shown(visitor))[-1]
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await expect(page.get_by_text(f"Message {last + 1}.", exact=True)).to_be_attached()
    numbers = await shown(visitor)
    assert numbers == list(range(numbers[0], 500))
    assert await page.evaluate(SIZE) <= 200


async def test_a_very_long_session_sends_one_page_of_it(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, ids = await numbered(kept, ann, LONG)
    visitor = await enter()
    for path in (f"/s/{made}", f"/s/{made}?at={ids[LONG // 2]}"):
        reply = await visitor.page.goto(visitor.base + path)
        assert reply is not None
        assert len(await reply.body()) < 150_000
    await expect(visitor.page.locator(".entry.target")).to_have_text(re.compile(f"Message {LONG // 2}\\."))


async def test_a_link_to_a_message_opens_there(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, ids = await numbered(kept, ann, 300)
    visitor = await enter()
    for path in (f"/s/{made}?at={ids[100]}#m-{ids[100]}", f"/s/{made}#m-{ids[40]}"):
        await visitor.go(path)
        await expect(visitor.page.locator(".entry.target")).to_be_in_viewport()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("Message 40.")
    await visitor.page.locator(".entry.target .at").click()
    assert visitor.page.url.endswith(f"/s/{made}?at={ids[40]}#m-{ids[40]}")


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
        await kept.put_live(ann, made, encode(Live(entry="next", parts=(Text(text=text),))))
        await expect(visitor.page.locator(".saying .said")).to_have_text(text)
    await kept.put_live(ann, made, None)
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
    mark = visitor.page.locator(".entry.compaction")
    await expect(mark).to_contain_text("compacted here")
    await expect(visitor.page.get_by_text("In short: numbers.")).to_be_hidden()
    await mark.get_by_text("What stands for").click()
    await expect(visitor.page.get_by_text("In short: numbers.")).to_be_visible()
    assert await visitor.page.locator("#feed > article").count() == 21


async def test_one_jumps_from_prompt_to_prompt_and_to_failures(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await numbered(kept, ann, 200)
    await kept.append(ann, made, Draft(role="tool", parts=(ToolResult(id="x", is_error=True),)))
    await kept.append(ann, made, [say(f"Message {number}.", "assistant") for number in range(200, 260)])
    visitor = await enter(f"/s/{made}")
    target = visitor.page.locator(":focus")
    await visitor.page.keyboard.press("f")
    await expect(target).to_contain_text("failed")
    await visitor.page.keyboard.press("p")
    await expect(target).to_contain_text("Message 190.")
    await visitor.page.get_by_role("button", name="Previous prompt").click()
    await expect(visitor.page.locator(".entry.target").first).to_contain_text("Message 180.")


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
    await visitor.page.keyboard.press("e")
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_wide_message_scrolls_within_itself_on_a_small_phone(
    enter: Enter, kept: Sessions, ann: Principal, scheme: str
) -> None:
    wide = "| " + " | ".join("column" * 3 for _ in range(12)) + " |\n|" + "---|" * 12
    made = await session_of(kept, ann, say(f"```\n{'x' * 900}\n```\n\n{wide}\n\n{'y' * 400}"))
    phone = {"width": 360, "height": 740}
    visitor = await enter(f"/s/{made}", viewport=phone, is_mobile=True, has_touch=True, color_scheme=scheme)
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= 360
