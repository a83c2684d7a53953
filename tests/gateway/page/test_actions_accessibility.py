"""What is shown before something is done, to everybody and whatever it says: nobody is shut out, and nothing runs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from hitherto.gateway.page.templates import named
from hitherto.model import Draft, Principal, Text, ToolCall
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_accessibility import AXE, LOOKS, TOLD
from tests.gateway.page.test_dialogs import LONG, SECRET, opened
from tests.gateway.page.test_hostile_sessions import entry, is_harmless, taken
from tests.gateway.page.test_list import say
from tests.support.hostile_texts import MARKUP, PAYLOADS

SHEETS = {
    "compact": "Compact…",
    "checkpoints": "Checkpoints…",
    "relatives": "Compare…",
    "export": "Export…",
    "resume": "Resume in…",
}


@pytest.fixture
async def family(kept: Sessions, ann: Principal) -> AsyncIterator[tuple[str, str, str]]:
    """A session that waits for an answer, a fork of it, and a checkpoint of the fork."""
    made = await kept.create(ann, title="Move the parser to a streaming reader", cwd="/home/ann/code")
    drafts = [say(f"Step {each}: {LONG}", "assistant" if each % 2 else "user") for each in range(16)]
    ids = (await kept.append(ann, made.id, [*drafts, say(f"Deploy with {SECRET}")])).entries
    fork = await kept.fork(ann, made.id, at=ids[5], title="Move the parser: with a rope instead")
    await kept.append(ann, fork.id, [say("What if we used a rope?"), say("It costs 3 %.", "assistant")])
    await kept.rewind(ann, fork.id, ids[3])
    lease = await kept.leases.acquire(ann, made.id, "a turn", ttl_ms=600_000)
    call = ToolCall(id="c", name="Bash", kind="execute", input={"command": "make all", "timeout": 60})
    await kept.questions.ask(ann, made.id, call, fence=lease.fence)
    (checkpoint,) = await kept.checkpoints(ann, fork.id)
    yield made.id, fork.id, checkpoint.id
    await kept.leases.release(ann, made.id, lease.fence)


@pytest.mark.parametrize("look", ["desktop-light", "phone-dark"])
async def test_nobody_is_shut_out_of_what_can_be_done(
    enter: Enter, family: tuple[str, str, str], look: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, fork, checkpoint = family
    visitor = await enter(f"/s/{made}", **LOOKS[look])
    page = visitor.page
    pictures = Path(os.environ.get("HITHERTO_SCREENSHOTS") or tmp_path_factory.mktemp("looks"))

    async def is_fine(name: str) -> None:
        await page.screenshot(path=pictures / f"{name}-{look}.png")
        await page.evaluate(AXE)
        assert await page.evaluate(TOLD) == [], name
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name

    await expect(page.locator(".asking")).to_be_in_viewport()
    await is_fine("asking")
    await page.keyboard.press("g")
    await page.keyboard.press("o")
    await is_fine("menu")
    await page.keyboard.press("Escape")
    for name, told in SHEETS.items():
        await opened(visitor, told)
        await is_fine(name)
        await page.keyboard.press("Escape")
    for name, path in {
        "compare": f"/compare?a={made}&b={fork}",
        "checkpoint": f"/checkpoint?session={fork}&id={checkpoint}",
        "export-page": f"/export?session={made}&format=jsonl",
    }.items():
        await visitor.go(path)
        await visitor.is_in()
        await is_fine(name)


async def test_hostile_sessions_are_looked_at_and_do_nothing(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await taken(kept, ann, MARKUP[0])
    drafts = [entry(text, number) for number, text in enumerate(PAYLOADS)]
    secrets = [
        Draft(role="user", parts=(Text(text=f"{text} {SECRET} {text}"),), model=None) for text in MARKUP
    ]
    ids = (await kept.append(ann, made, [*drafts, *secrets])).entries
    fork = await kept.fork(ann, made, at=ids[2], title=MARKUP[1])
    await kept.append(ann, fork.id, secrets)
    await kept.rewind(ann, fork.id, ids[1])
    (checkpoint,) = await kept.checkpoints(ann, fork.id)
    visitor = await enter(viewport={"width": 360, "height": 700})
    for path in (
        *(f"/{name}?session={named(made)}" for name in ("compaction", "checkpoints", "resume")),
        *(f"/export?session={named(made)}&format={named(name)}" for name in ("html", "jsonl", MARKUP[0])),
        f"/checkpoint?session={fork.id}&id={checkpoint.id}",
        f"/compare?a={named(made)}",
        f"/compare?a={named(made)}&b={fork.id}",
    ):
        await visitor.go(path)
        await visitor.is_in()
        await is_harmless(visitor)
    lease = await kept.leases.acquire(ann, made, "a turn", ttl_ms=600_000)
    for text in MARKUP[:10]:
        asked = ToolCall(id=text, name=text, kind=text, title=text, input={"command": text, text: text})
        await kept.questions.ask(ann, made, asked, fence=lease.fence)
        await visitor.go(f"/s/{named(made)}")
        await expect(visitor.page.locator(".asking")).to_be_visible()
        await is_harmless(visitor)
    await visitor.page.get_by_role("button", name="Reject", exact=True).click()
    await expect(visitor.page.locator(".asking")).to_have_count(0)
    assert await kept.questions.answered(ann, made, MARKUP[9]) == "reject_once"
    await kept.leases.release(ann, made, lease.fence)
