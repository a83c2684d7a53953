"""Two browsers and an editor's agent, a process of its own, on one session: each sees at once what the others do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from hitherto.model import LOCAL, Principal
from hitherto.service import Sessions
from tests.acp.wire import Agent, is_update, running, texts
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_list import begun
from tests.gateway.page.test_permission import COMMAND, asking, prompted


@pytest.fixture
def ann() -> Principal:
    """The owner for whom agents on this machine work."""
    return LOCAL


@pytest.fixture
async def agent(url: str, tmp_path: Path) -> AsyncIterator[Agent]:
    async with running(tmp_path, "-m", "tests.acp.scripted_agent", url) as started:
        await started.initialize()
        yield started


async def test_each_sees_what_the_others_say_ask_and_change(
    enter: Enter, kept: Sessions, ann: Principal, agent: Agent, tmp_path: Path
) -> None:
    made = await begun(kept, ann, "Shared", "hello", cwd=str(tmp_path))
    await agent.load(made, tmp_path)
    agent.on.pop("session/request_permission")  # whoever sits there does not answer
    one, other = await enter(f"/s/{made}"), await enter(f"/s/{made}")
    pages = (one.page, other.page)

    await agent.prompt(made, "from the editor")
    for page in pages:
        await expect(page.locator("#feed > article").last).to_contain_text("You said: from the editor")

    await prompted(one.page, "from the page")
    await agent.until(lambda _: "You said: from the page" in texts(agent.updates(made)))
    assert "from the page" in texts(agent.updates(made), "user_message_chunk")
    await expect(other.page.locator("#feed > article").last).to_contain_text("You said: from the page")

    turn = await agent.begin_prompt(made, asking(COMMAND))
    for page in pages:
        await expect(page.locator(".asking")).to_contain_text("Bash wants to run a command")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await other.page.get_by_role("button", name="Allow once").click()
    assert (await agent.answer(turn))["stopReason"] == "end_turn"
    for page in pages:
        await expect(page.locator(".asking")).to_have_count(0)
        await expect(page.locator("#feed > article").last).to_contain_text("Over.")

    await one.page.locator("#acts").get_by_label("Actions").click()
    await one.page.get_by_role("button", name="Rename").click()
    await one.page.get_by_role("textbox", name="Title").fill("Ours")
    await one.page.keyboard.press("Enter")
    await expect(other.page.get_by_role("heading", name="Ours")).to_be_visible()
    told = await agent.until(
        lambda message: (
            is_update(made, "session_info_update")(message)
            and message["params"]["update"].get("title") == "Ours"
        )
    )
    assert told["params"]["sessionId"] == made
