"""What somebody does in the page: choosing many, deleting with time to think, forking, saying something."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from playwright.async_api import expect

from hitherto.errors import SessionNotFound
from hitherto.model import Draft, Principal, Text, ToolCall, ToolResult, plain_text
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import begun, say, titles
from tests.gateway.servers import go
from tests.support.waits import until


async def said(kept: Sessions, who: Principal, session_id: str) -> list[str]:
    return [plain_text(entry) for entry in (await kept.history(who, session_id)).entries]


async def is_there(kept: Sessions, who: Principal, session_id: str) -> bool:
    try:
        await kept.get(who, session_id)
    except SessionNotFound:
        return False
    return True


async def test_many_are_tagged_and_put_away_together(enter: Enter, kept: Sessions, ann: Principal) -> None:
    ids = [await begun(kept, ann, title) for title in ("One", "Two", "Three")]
    visitor = await enter()
    page = visitor.page
    await page.get_by_label("Select One").check()
    await page.get_by_role("link", name="Two").focus()
    await page.keyboard.press("x")
    await expect(page.get_by_text("2 selected")).to_be_visible()
    await page.get_by_role("toolbar").get_by_role("button", name="Tag").click()
    await page.get_by_role("textbox", name="Tag for all selected").fill("both")
    await page.keyboard.press("Enter")
    await expect(page.locator(".tag", has_text="both")).to_have_count(2)
    assert [(await kept.get(ann, each)).tags for each in ids] == [("both",), ("both",), ()]
    await page.get_by_label("Select Three").check()
    await page.get_by_role("toolbar").get_by_role("button", name="Archive").click()
    await expect(page.get_by_role("link", name="Three")).to_have_count(0)
    assert (await kept.get(ann, ids[2])).archived
    await expect(page.get_by_role("toolbar")).to_be_hidden()


async def test_what_is_deleted_can_be_taken_back_for_ten_seconds(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = [await begun(kept, ann, title) for title in ("One", "Two")]
    visitor = await enter()
    page = visitor.page
    await visitor.stop_the_clock()
    await page.reload()
    await visitor.is_in()
    for name in ("One", "Two"):
        await page.get_by_label(f"Select {name}").check()
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("link", name="One")).to_be_hidden()
    await page.clock.run_for(9_000)
    await expect(page.get_by_text("Deleting 2 sessions in 1 s.")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await page.clock.run_for(20_000)
    assert sorted(await titles(visitor)) == ["One", "Two"]
    assert [await is_there(kept, ann, each) for each in ids] == [True, True]
    await page.get_by_label("Select One").check()
    await page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    await page.clock.run_for(10_000)
    await expect(page.get_by_label("Select One")).to_have_count(0)
    assert [await is_there(kept, ann, each) for each in ids] == [False, True]


async def test_a_session_is_pinned_put_away_and_deleted_where_it_is_read(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Mine", "hello")
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    for name, then in (("Pin", "Unpin"), ("Archive", "Unarchive")):
        await page.keyboard.press("o")
        await page.get_by_role("button", name=name).click()
        await expect(page.locator(f"#acts [data-act={name.lower()}]")).to_have_text(then)
    session = await kept.get(ann, made)
    assert (session.pinned, session.archived) == (True, True)
    await visitor.stop_the_clock()
    await page.reload()
    await visitor.is_in()
    await page.keyboard.press("o")
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Deleting this session")).to_be_visible()
    await page.clock.run_for(10_000)
    await page.wait_for_url(f"{visitor.base}/")
    assert not await is_there(kept, ann, made)


async def test_a_fork_keeps_an_answer_with_its_results_and_offers_a_prompt_to_be_written_anew(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "First question")
    await kept.append(
        ann,
        made,
        [
            Draft(role="assistant", parts=(Text(text="First answer"), ToolCall(id="1", name="look"))),
            Draft(role="tool", parts=(ToolResult(id="1", content=(Text(text="seen"),)),)),
            say("Second question"),
            say("Second answer", "assistant"),
        ],
    )
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await page.locator(".entry", has_text="Second question").hover()
    await (
        page.locator(".entry", has_text="Second question")
        .get_by_role("button", name="Edit in a fork")
        .click()
    )
    await expect(page.get_by_label("Write a prompt")).to_have_value("Second question")
    fork = page.url.rpartition("/")[2]
    assert fork != made
    assert await said(kept, ann, fork) == ["First question", "First answer", ""]
    assert (await kept.get(ann, fork)).parent == made
    assert len(await said(kept, ann, made)) == 5
    # The first of those in the page, and the first of all: nothing comes before it.
    await visitor.go(f"/s/{made}")
    await page.locator(".entry", has_text="First question").hover()
    await page.locator(".entry.prompt").first.get_by_role("button", name="Edit in a fork").click()
    await expect(page.get_by_label("Write a prompt")).to_have_value("First question")
    assert await said(kept, ann, page.url.rpartition("/")[2]) == []


async def test_an_answer_gone_back_to_is_kept_and_a_prompt_is_put_into_the_box(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk")
    texts = ["First question", "First answer", "Second question", "Second answer"]
    await kept.append(ann, made, [say(each, "assistant" if "answer" in each else "user") for each in texts])
    visitor, other = await enter(f"/s/{made}"), await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label("Write a prompt")
    await page.locator(".entry", has_text="First answer").hover()
    await page.locator(".entry", has_text="First answer").get_by_role("button", name="Rewind").click()
    await expect(page.get_by_text("Rewound.")).to_be_visible()
    for each in (page, other.page):
        await expect(each.locator("#feed > article")).to_have_count(2)
    assert (await said(kept, ann, made), await box.input_value()) == (texts[:2], "")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("Restored.")).to_be_visible()
    for each in (page, other.page):
        await expect(each.locator("#feed > article")).to_have_count(4)
    assert await said(kept, ann, made) == texts
    await page.locator(".entry", has_text="Second question").hover()
    await page.locator(".entry", has_text="Second question").get_by_role("button", name="Rewind").click()
    await expect(page.get_by_text("Rewound.")).to_be_visible()
    await expect(box).to_have_value("Second question")
    assert await said(kept, ann, made) == texts[:2]
    # What is in the box outlives the page, until it is sent.
    await page.reload()
    await expect(box).to_have_value("Second question")
    await box.press("Enter")
    await expect(page.locator("#feed > article")).to_have_count(4)
    await page.reload()
    await visitor.is_in()
    await expect(box).to_have_value("")
    for who in (visitor, other):  # the browser notes that the message it went on from was gone
        who.overlook(404)


async def test_what_is_busy_or_not_ones_own_to_change_is_told_and_nothing_is_lost(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    lease = await kept.leases.acquire(ann, made, "somebody else", ttl_ms=600_000)
    visitor = await enter(f"/s/{made}")
    page, box = visitor.page, visitor.page.get_by_label("Write a prompt")
    await page.locator(".entry").hover()
    await page.get_by_role("button", name="Rewind").click()
    await expect(page.locator("#notice")).to_contain_text("A turn is running in this session.")
    await box.fill("Not now")
    await box.press("Enter")
    await expect(page.locator("#sending .entry")).to_contain_text("Not now")
    await expect(box).to_have_value("")
    await kept.leases.release(ann, made, lease.fence)
    await expect(page.locator("#feed > article").last).to_contain_text("You said: Not now")
    await expect(box).to_have_value("")
    assert await said(kept, ann, made) == ["hello", "Not now", "You said: Not now"]
    visitor.overlook(409)


async def test_a_prompt_is_sent_and_its_answer_watched(
    enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    box = page.get_by_label("Write a prompt")
    await page.keyboard.press("c")
    await page.keyboard.type(f"wait {pipe}")
    await box.press("Enter")
    await expect(page.locator(".saying")).to_contain_text("Waiting.")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await asyncio.to_thread(go, pipe)
    await expect(page.locator("#feed")).to_contain_text("Waiting. Done.")
    await expect(page.locator(".saying")).to_have_count(0)
    await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    await box.fill(json.dumps(["Again."]))
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("#feed > article").last).to_contain_text("Again.")


async def test_an_answer_is_stopped(enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    visitor = await enter(f"/s/{made}")
    await visitor.page.get_by_label("Write a prompt").fill(f"wait {pipe}")
    await visitor.page.get_by_role("button", name="Send").click()
    await expect(visitor.page.locator(".saying")).to_contain_text("Waiting.")
    await visitor.page.get_by_role("button", name="Stop").click()
    await expect(visitor.page.get_by_role("button", name="Stop")).to_be_hidden()
    await expect(visitor.page.locator(".saying")).to_have_count(0)

    async def idle() -> bool:
        return (await kept.get(ann, made)).status == "idle"

    await until(idle, "the turn to end")
