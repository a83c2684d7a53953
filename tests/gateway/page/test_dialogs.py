"""What is shown before something is done: what a compaction leaves out, what checkpoints hold, what an export replaces."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import expect

from hitherto.model import Principal, Token
from hitherto.service import Imported, Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_actions import said
from tests.gateway.page.test_list import begun, say
from tests.gateway.page.visitor import Visitor

SECRET = "ghp_" + "a1B2c3D4e5" * 4
LONG = "and so on " * 60
READ = "address => fetch(address, {headers: {'X-Hitherto': '1'}}).then((answer) => answer.text())"


async def long_talk(kept: Sessions, who: Principal) -> tuple[str, list[str]]:
    """A session of twelve exchanges, and the ids of its messages."""
    made = await begun(kept, who, "A long talk", cwd="/home/ann/my code")
    drafts = [
        say(f"{kind} {number} {LONG}", "assistant" if kind == "Answer" else "user")
        for number in range(12)
        for kind in ("Question", "Answer")
    ]
    return made, list((await kept.append(who, made, drafts)).entries)


async def opened(visitor: Visitor, name: str) -> None:
    """Open one of the sheets above the session."""
    await visitor.page.keyboard.press("o")
    await visitor.page.locator("#acts").get_by_role("link", name=name).click()
    await expect(visitor.page.get_by_role("dialog").get_by_role("heading", level=1)).to_be_visible()


async def test_a_compaction_is_looked_at_done_and_taken_back(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, _ = await long_talk(kept, ann)
    before = await said(kept, ann, made)
    visitor = await enter(f"/s/{made}")
    page, sheet = visitor.page, visitor.page.get_by_role("dialog", name="Compact this session")
    await opened(visitor, "Compact…")
    for told in ("22 messages leave", "A summary replaces them", "2 messages stay", "Question 11"):
        await expect(sheet).to_contain_text(told)
    await expect(sheet.get_by_label("Prompts that leave the context").get_by_role("link")).to_have_count(11)
    await page.keyboard.press("Escape")
    await expect(sheet).to_be_hidden()
    assert await kept.checkpoints(ann, made) == []
    await opened(visitor, "Compact…")
    await sheet.get_by_role("button", name="Compact").click()
    await expect(page.get_by_text("a summary replaces 22 messages in the context")).to_be_visible()
    await expect(page.locator(".following.folded")).to_contain_text("22 earlier messages not in the context")
    assert len(await said(kept, ann, made)) == 3
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("Restored.")).to_be_visible()
    assert await said(kept, ann, made) == before
    visitor.overlook(404)  # the summary that it went on from is gone


async def test_a_compaction_that_would_change_nothing_says_why(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Short", "One question")
    visitor = await enter(f"/s/{made}")
    await opened(visitor, "Compact…")
    sheet = visitor.page.get_by_role("dialog")
    await expect(sheet).to_contain_text("Nothing to compact: there is nothing to summarise")
    await expect(sheet.get_by_role("button", name="Compact")).to_have_count(0)
    await sheet.get_by_role("button", name="Close").click()
    await expect(sheet).to_be_hidden()


async def test_a_checkpoint_is_looked_at_branched_from_and_restored(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made, ids = await long_talk(kept, ann)
    visitor = await enter(f"/s/{made}")
    page = visitor.page
    await opened(visitor, "Checkpoints…")
    await expect(page.get_by_role("dialog")).to_contain_text("No checkpoints yet")
    await page.keyboard.press("Escape")
    await kept.rewind(ann, made, ids[0])
    await kept.append(ann, made, say("Another way"))
    await expect(page.locator("#feed > article")).to_have_count(2)  # it is read anew by itself
    await visitor.is_in()
    visitor.overlook(404)  # what it went on from is gone
    await opened(visitor, "Checkpoints…")
    row = page.get_by_role("dialog").get_by_role("listitem")
    await expect(row).to_contain_text("Before a rewind")
    await expect(row).to_contain_text("24 messages")
    await row.get_by_role("link", name="View").click()
    await expect(page.get_by_role("heading", name="Before a rewind")).to_be_visible()
    await expect(page.locator(".feed > article").last).to_contain_text("Answer 11")
    await expect(page.locator(".feed").get_by_role("button", name="Fork")).to_have_count(0)
    # What only the checkpoint has is read by itself, too, and has an address.
    shown = page.locator(".feed > article").last
    address = await shown.get_by_role("link", name="Raw").get_attribute("href")
    assert "Answer 11" in await page.evaluate(READ, address)
    await shown.locator(".at").click()
    await expect(page.locator(".feed > article", has_text="Answer 11")).to_be_visible()
    await page.get_by_role("button", name="Branch").click()
    await expect(page.get_by_label("Write a prompt")).to_be_visible()
    branch = page.url.rpartition("/")[2]
    assert branch != made
    assert len(await said(kept, ann, branch)) == 24
    await visitor.go(f"/s/{made}")
    await visitor.is_in()
    other = await enter(f"/s/{made}")
    await expect(other.page.locator("#feed > article")).to_have_count(2)
    await opened(visitor, "Checkpoints…")
    await page.get_by_label("Keep the messages that were added since").check()
    await row.get_by_role("button", name="Restore").click()
    await expect(page.get_by_text("Restored. Messages added since were kept.")).to_be_visible()
    told = await said(kept, ann, made)
    assert (len(told), told[-1]) == (25, "Another way")
    for each in (page, other.page):  # what came in between is there, too
        await expect(each.locator("#feed > article")).to_have_count(25)
        await expect(each.locator("#feed > article").last).to_contain_text("Another way")


async def test_a_long_checkpoint_is_read_in_pages(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Long", *(f"Message {each}." for each in range(100)))
    await kept.reset(ann, made)
    (checkpoint,) = await kept.checkpoints(ann, made)
    visitor = await enter(f"/checkpoint?session={made}&id={checkpoint.id}")
    page, shown = visitor.page, visitor.page.locator(".feed > article")
    await expect(shown).to_have_count(40)
    await expect(shown.last).to_contain_text("Message 99.")
    await page.get_by_role("link", name="Older messages").click()
    await expect(shown.last).to_contain_text("Message 59.")
    await page.get_by_role("link", name="Newer messages").click()
    await expect(shown.first).to_contain_text("Message 60.")
    await page.get_by_role("button", name="Restore").click()
    await expect(page.locator("#feed > article").last).to_contain_text("Message 99.")
    assert (await kept.get(ann, made)).message_count == 100


async def test_an_export_is_reviewed_before_it_is_downloaded(
    enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    made = await begun(kept, ann, "Deploy <it>", f"Use {SECRET} for that, <b>please</b>", "and nothing else")
    visitor = await enter(f"/s/{made}", accept_downloads=True)
    page, sheet = visitor.page, visitor.page.get_by_role("dialog")
    await opened(visitor, "Export…")
    await expect(sheet).to_contain_text("1 secret replaced")
    await expect(sheet.locator(".snippet")).to_have_text(
        "Use [redacted: github token] for that, <b>please</b>"
    )
    await expect(sheet).not_to_contain_text(SECRET)
    for name, file in {
        "Page": "deploy-it.html",
        "Markdown": "deploy-it.md",
        "JSON lines": "deploy-it.jsonl",
        "JSON The": "deploy-it.json",
    }.items():
        if not await sheet.is_visible():
            await opened(visitor, "Export…")
        await sheet.get_by_role("link", name=name).click()
        await expect(sheet.locator("[aria-current]")).to_contain_text(name.split()[0])
        async with page.expect_download() as got:
            await sheet.get_by_role("button", name="Download").click()
        download = await got.value
        assert download.suggested_filename == file
        await download.save_as(tmp_path / file)
        text = (tmp_path / file).read_text()
        assert SECRET not in text
        assert "[redacted: github token]" in text
        await expect(page.get_by_text(f"Downloaded {file}.")).to_be_visible()
    assert json.loads((tmp_path / "deploy-it.json").read_text())["metadata"]["message_count"] == 2
    await opened(visitor, "Export…")
    await sheet.get_by_label("Include secrets").check()
    async with page.expect_download() as got:
        await sheet.get_by_role("button", name="Download").click()
    await (await got.value).save_as(tmp_path / "raw.html")
    assert SECRET in (tmp_path / "raw.html").read_text()


async def test_the_command_that_goes_on_elsewhere_is_copied(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    uuid = "550e8400-e29b-41d4-a716-446655440000"
    taken = Imported(
        id=f"claude:{uuid}",
        source="claude",
        created_at=1,
        updated_at=2,
        title="Theirs",
        cwd="/home/ann/my code",
    )
    await kept.transfer.sync(ann, taken, [])
    own, _ = await long_talk(kept, ann)
    visitor = await enter(f"/s/claude:{uuid}", permissions=["clipboard-read", "clipboard-write"])
    page, sheet = visitor.page, visitor.page.get_by_role("dialog")
    await opened(visitor, "Resume in…")
    await expect(sheet.get_by_role("heading", name="In Claude Code")).to_be_visible()
    await sheet.get_by_role("button", name="Copy").first.click()
    await expect(page.get_by_text("Copied.")).to_be_visible()
    line = f"cd '/home/ann/my code' && claude --resume {uuid}"
    assert await page.evaluate("navigator.clipboard.readText()") == line
    await visitor.go(f"/resume?session={own}")  # by itself it is a page
    await expect(page.get_by_role("region", name="Command")).to_have_text(
        f"cd '/home/ann/my code' && hitherto chat {own}"
    )
    await page.get_by_role("button", name="Close").click()
    await page.wait_for_url(f"{visitor.base}/s/{own}")


async def test_what_only_reads_can_look_and_take_along_and_change_nothing(
    enter: Enter, kept: Sessions, ann: Principal, token: Token
) -> None:
    made, ids = await long_talk(kept, ann)
    await kept.rewind(ann, made, ids[3])
    reader = (await kept.tokens.create(ann.owner, scopes=("read",)))[0]
    await kept.tokens.revoke(token.id)
    visitor = await enter(f"/s/{made}", as_=reader)
    page = visitor.page
    await page.keyboard.press("o")
    names = ["Changes", "Checkpoints…", "Compare…", "Export…", "Resume in…"]
    await expect(page.locator("#acts li")).to_have_text(names)
    await page.keyboard.press("Escape")
    await opened(visitor, "Checkpoints…")
    await expect(page.get_by_role("dialog").get_by_role("button")).to_have_text(["Close"])
    await page.keyboard.press("Escape")
    await opened(visitor, "Export…")
    await expect(page.get_by_label("Include secrets")).to_have_count(0)
    await expect(page.get_by_role("button", name="Rewind")).to_have_count(0)
