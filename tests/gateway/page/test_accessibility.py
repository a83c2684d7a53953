"""What holds for every page: nothing that shuts somebody out, and a clear state when the server is away."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

import hitherto
from hitherto.model import LOCAL, Draft, Principal, Text, Thought, ToolCall, ToolResult
from hitherto.service import Sessions
from tests.gateway.events.test_subscriptions import numbers
from tests.gateway.page.browser import context_of
from tests.gateway.page.conftest import Enter
from tests.gateway.page.visitor import Visitor, leave
from tests.gateway.servers import serving
from tests.support.waits import NEVER

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
SERIOUS = "(await axe.run()).violations.filter((each) => ['serious', 'critical'].includes(each.impact))"
TOLD = f"async () => {SERIOUS}.map((each) => each.id + ': ' + each.nodes.map((node) => node.html).join(' '))"
WIDTHS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "tablet": {"viewport": {"width": 1024, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True},
}
LOOKS: dict[str, dict[str, Any]] = {
    f"{name}-{scheme}": {**look, "color_scheme": scheme}
    for name, look in WIDTHS.items()
    for scheme in ("light", "dark")
}
PLACES = {"list": "/", "inbox": "/inbox", "changes": "/changes", "usage": "/usage", "session": "/s/{}"}
OTHERS = {"search": "/?q=parser", "nothing": "/?q=nowhere", "find": "/s/{}?find=fix", "left": "/s/{}?first=1"}
"""Looked at once in a light and once in a dark page."""


async def talk(kept: Sessions, who: Principal) -> str:
    session = await kept.create(who, title="Fix the parser", cwd="/home/ann/code", tags=("work",))
    await kept.catalog.set_status(who, session.id, "running")
    call = ToolCall(id="1", name="Bash", kind="execute", input={"command": "make test", "env": {"A": 1}})
    edit = ToolCall(
        id="2", name="Edit", kind="edit", input={"file_path": "a.py", "old": "a = 1\n", "new": "a = 2\n"}
    )
    said = Text(
        text="# Heading\n\nSome `code`, a [link](https://a.example/), and\n\n```python\ndef f():\n    return 'x'  # y\n```\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    await kept.append(
        who,
        session.id,
        [
            Draft(role="user", parts=(Text(text="Please fix it"),)),
            Draft(role="assistant", model="m", parts=(Thought(text="Hm"), said, call, edit)),
            Draft(role="tool", parts=(ToolResult(id="1", is_error=True, content=(Text(text="\x1b[31mno\x1b[32myes\x1b[33mbut"),)),)),
        ],
    )  # fmt: skip
    await kept.compact(who, session.id, Draft(role="system", parts=(Text(text="In short"),)), keep=1)
    return session.id


@pytest.mark.parametrize("look", LOOKS)
async def test_nothing_shuts_anybody_out(
    enter: Enter, kept: Sessions, ann: Principal, look: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = await talk(kept, ann)
    visitor = await enter(**LOOKS[look])
    pictures = Path(os.environ.get("HITHERTO_SCREENSHOTS") or tmp_path_factory.mktemp("looks"))
    for name, path in (PLACES | (OTHERS if look in ("desktop-light", "phone-dark") else {})).items():
        await visitor.go(path.format(made))
        await visitor.is_in()
        await visitor.page.evaluate("for (const each of document.querySelectorAll('.card')) each.open = true")
        await visitor.page.screenshot(path=pictures / f"{name}-{look}.png")
        await visitor.page.evaluate(AXE)
        assert await visitor.page.evaluate(TOLD) == [], name
        assert await visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    await visitor.page.keyboard.press("Control+k")
    await expect(visitor.page.get_by_role("option").first).to_be_visible()
    await visitor.page.evaluate(AXE)
    assert await visitor.page.evaluate(TOLD) == []
    await visitor.page.keyboard.press("Escape")
    await leave(visitor.page)
    await expect(visitor.page.get_by_label("A token")).to_be_visible()
    await visitor.page.evaluate(AXE)
    assert await visitor.page.evaluate(TOLD) == []


async def test_a_server_that_goes_and_comes_back_is_noticed_and_nothing_is_missed(
    browser: Browser, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'hitherto.db'}"
    context = await context_of(browser)
    page = await context.new_page()
    async with hitherto.open(url) as kept:
        token, _ = await kept.tokens.create(LOCAL.owner)
        with serving(url, tokens={}) as first:
            visitor = Visitor(first, kept, token, page)
            await visitor.sign_in()
            port = first.port
            made = (await kept.create(LOCAL, title="Being read")).id
            reading = await context.new_page()
            await reading.goto(f"{visitor.base}/s/{made}")
            await expect(reading.get_by_text("No messages yet")).to_be_visible()
        await expect(reading.get_by_text("Cannot reach the server.")).to_be_visible()
        await expect(page.get_by_text("Cannot reach the server.")).to_be_visible()
        await kept.create(LOCAL, title="Made meanwhile")
        await kept.append(LOCAL, made, Draft(role="user", parts=(Text(text="Said meanwhile"),)))
        with serving(url, tokens={}, port=port):
            await expect(page.get_by_role("link", name="Made meanwhile")).to_be_visible()
            await expect(page.get_by_text("Reconnected.")).to_be_visible()
            await expect(reading.get_by_text("Said meanwhile")).to_be_visible()
            await expect(reading.get_by_text("Cannot reach the server.")).to_be_hidden()
    await context.close()


async def test_a_server_that_ends_does_not_wait_for_pages_that_are_open(
    browser: Browser, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'hitherto.db'}"
    context = await context_of(browser)
    page = await context.new_page()
    async with hitherto.open(url) as kept:
        token, _ = await kept.tokens.create(LOCAL.owner)
        # Neither the server nor the page ends the request that waits for news by itself.
        with serving(url, where={"grace": 600.0}, live=NEVER) as server:
            await page.add_init_script("AbortSignal.timeout = () => new AbortController().signal")
            async with page.expect_request("**/live?after=*"):
                await Visitor(server, kept, token, page).sign_in()
            await numbers(server, "hitherto_sockets", 1)
            server.signal()
            assert await server.ended() == 0
    await context.close()
