"""The inbox: what waits for somebody, of all agents, answered where it stands; and its number everywhere."""

from __future__ import annotations

from playwright.async_api import expect

from hitherto.model import Entry, Principal, Status, Text, ToolCall
from hitherto.service import Imported, Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import begun, say

NOTED = """
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "default";
  static async requestPermission() { return (Notification.permission = "granted"); }
  constructor(title, {body}) { super(); told.push(`${title}: ${body}`); }
};
"""
HIDE = """
Object.defineProperty(document, "hidden", {configurable: true, get: () => true});
document.dispatchEvent(new Event("visibilitychange"));
"""


async def test_what_waits_runs_failed_or_is_new_is_in_the_inbox_and_is_answered_there(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    origin = await begun(kept, ann, "Old", "hello")
    states: dict[str, Status] = {"Runs": "running", "Broke": "failed", "Cut off": "interrupted"}
    for title, status in states.items():
        await kept.catalog.set_status(ann, await begun(kept, ann, title, "hello"), status)
    late = await begun(kept, ann, "Read before", "hello")
    taken = Imported(id="pi:old", source="pi", created_at=1, updated_at=2, title="Of long ago")
    await kept.transfer.sync(ann, taken, [Entry(id="a", at=2, role="user", parts=(Text(text="hello"),))])
    visitor = await enter()
    page = visitor.page
    await page.add_init_script(NOTED)
    for each in (origin, late):  # read, and not new any more
        await page.goto(f"{visitor.base}/s/{each}")
        await expect(page.locator("#feed")).to_contain_text("hello")
    await kept.append(ann, late, say("and more", "assistant"))
    await expect(page.locator("#feed")).to_contain_text("and more")
    await page.goto("about:blank")
    await kept.append(ann, late, say("unseen", "assistant"))
    await visitor.go("/")
    await visitor.is_in()
    await page.keyboard.press("i")
    sections = page.locator("#inbox > section")
    await expect(sections).to_have_count(3)
    for name, titles in {
        "Running": ["Runs"],
        "Failed or interrupted": ["Cut off", "Broke"],
        "New": ["Read before"],
    }.items():
        rows = page.get_by_role("region", name=name).locator(".row .name")
        await expect(rows).to_have_text(titles)
    # A fork of what is old asks: it is the first of all, and its number is in the title of every page.
    fork = await kept.fork(ann, origin, title="A fork")
    lease = await kept.leases.acquire(ann, fork.id, "a turn", ttl_ms=600_000)
    asked = ToolCall(id="c1", name="Bash", kind="execute", input={"command": "make all"})
    await page.get_by_role("button", name="Notify me").click()
    await expect(page.get_by_role("button", name="Stop notifications")).to_be_visible()
    await page.evaluate(HIDE)
    await kept.questions.ask(ann, fork.id, asked, fence=lease.fence)
    waits = page.get_by_role("region", name="Waiting for your answer")
    await expect(waits.locator(".row .name")).to_have_text(["A fork"])
    await expect(page).to_have_title("(1) Inbox · Hitherto")
    await visitor.becomes("told", ["Waiting for your answer: A fork"])
    await expect(waits).to_contain_text("make all")
    await waits.get_by_role("button", name="Allow once").click()
    await expect(page.get_by_text("Allow once: answered.")).to_be_visible()
    assert await kept.questions.answered(ann, fork.id, "c1") == "allow_once"
    await kept.leases.release(ann, fork.id, lease.fence)
    await kept.append(ann, fork.id, say("done", "assistant"))
    await expect(page).to_have_title("Inbox · Hitherto")


async def test_nothing_in_the_inbox_is_told_so(enter: Enter) -> None:
    visitor = await enter("/inbox")
    await expect(visitor.page.get_by_text("Nothing waits for you")).to_be_visible()
