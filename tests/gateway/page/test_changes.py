"""What was changed: the files of a session with their whole difference, and which sessions changed a file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from playwright.async_api import expect

from hitherto.model import Draft, Principal, Text, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_accessibility import AXE, LOOKS, TOLD
from tests.gateway.page.test_list import say
from tests.support.labelled_commits import git

FOLDER = "/home/ann/shop"


def call(name: str, tool: str, path: str, *, fails: bool = False, **given: str) -> list[Draft]:
    """A call that changes a file, and its result."""
    asked = ToolCall(id=name, name=tool, kind="edit", input={"file_path": f"{FOLDER}/{path}", **given})
    made = {"type": "create", "filePath": f"{FOLDER}/{path}", "structuredPatch": []}
    done = ToolResult(
        id=name, is_error=fails, content=(Text(text="done"),), output=made if tool == "Write" else None
    )
    return [Draft(role="assistant", parts=(asked,)), Draft(role="tool", parts=(done,))]


async def test_the_files_of_a_session_have_their_whole_difference_and_lead_to_its_messages(
    enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    session = await kept.create(ann, title="Retries", cwd=FOLDER)
    drafts = [
        say("Go"),
        *call("1", "Write", "app/new.py", content="one = 1\ntwo = 2\n"),
        *call("2", "Edit", "app/old.py", old_string="a = 1", new_string="a = 2"),
        *call("3", "Edit", "app/old.py", old_string="a = 2", new_string="a = 3"),
        *call("4", "Edit", "app/new.py", old_string="two = 2", new_string="two = 22"),
        *call("5", "Edit", "app/old.py", fails=True, old_string="nowhere", new_string="x"),
        say("Done.", "assistant"),
    ]
    ids = (await kept.append(ann, session.id, drafts)).entries
    other = await kept.create(ann, title="Another", cwd=FOLDER)
    await kept.append(ann, other.id, call("1", "Edit", "app/old.py", old_string="b", new_string="c"))
    visitor = await enter(f"/s/{session.id}", permissions=["clipboard-read", "clipboard-write"])
    page = visitor.page
    await visitor.go(f"/changes?session={session.id}")
    await visitor.is_in()
    await expect(page.get_by_role("navigation", name="Files").get_by_role("link")).to_have_text(
        ["new.py", "old.py"]
    )
    files = page.locator(".file")
    # What was changed again and again is one hunk, and leads to who changed it last.
    await expect(files.nth(1).locator(".diff code > span")).to_have_text(["-a = 1", "+a = 3"])
    await expect(files.nth(1).locator(".hunk")).to_have_count(1)
    await expect(files.nth(1).get_by_text("1 edit without lines that are left")).to_be_visible()
    await expect(files.nth(0).locator(".diff code > span")).to_have_text(["+one = 1", "+two = 22"])
    await expect(files.nth(0).locator(".diff [data-n='2']")).to_have_text("+two = 22")
    # The patch of a file that was made can be applied.
    await files.nth(0).get_by_role("button", name="Copy as a patch").click()
    await expect(page.get_by_text("Copied.")).to_be_visible()
    patch = await page.evaluate("navigator.clipboard.readText()")
    (tmp_path / "new.patch").write_text(patch)
    await asyncio.to_thread(git, tmp_path, "apply", "new.patch")
    assert (tmp_path / "app/new.py").read_text() == "one = 1\ntwo = 22\n"
    await files.nth(1).locator(".hunk .by a").click()
    await expect(page.locator(f"#m-{ids[5]}.target .card")).to_be_visible()
    await page.keyboard.press("e")
    await expect(page.locator(f"#m-{ids[3]}.target")).to_be_visible()
    await page.keyboard.press("J")
    await expect(page.get_by_text("No later prompt.")).to_be_visible()
    # Which sessions changed this file, and what was changed last.
    await page.go_back()
    await files.nth(1).get_by_role("heading").get_by_role("link").click()
    await expect(page.locator("tbody td:nth-child(2) a")).to_have_text(["Another", "Retries"])
    await visitor.go("/changes")
    await expect(page.locator("tbody tr")).to_have_count(3)
    await visitor.go("/changes?session=none-such")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    visitor.overlook(404)


async def test_nothing_of_the_changes_shuts_anybody_out(enter: Enter, kept: Sessions, ann: Principal) -> None:
    session = await kept.create(ann, title="Retries", cwd=FOLDER)
    await kept.append(
        ann, session.id, call("1", "Write", "app/new.py", content="def one():\n    return '1'\n")
    )
    for look in ("desktop-light", "phone-dark"):
        visitor = await enter(f"/changes?session={session.id}", **LOOKS[look])
        for path in (f"/changes?session={session.id}", "/changes"):
            await visitor.go(path)
            await visitor.is_in()
            await visitor.page.evaluate(AXE)
            assert await visitor.page.evaluate(TOLD) == [], (look, path)
