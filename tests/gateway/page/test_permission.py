"""What a tool asks is answered on the page, in whichever browser, or by whoever else is asked; who is first decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Page, expect

from hitherto.model import Principal, Token
from hitherto.permissions import REMEMBERED, Choice
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_actions import said
from tests.gateway.page.test_list import begun
from tests.support.waits import until

COMMAND: dict[str, Any] = {
    "name": "Bash",
    "kind": "execute",
    "input": {"command": "make <all>", "timeout": 5},
}
EDIT: dict[str, Any] = {
    "name": "Edit",
    "kind": "edit",
    "input": {"file_path": "a.py", "old_string": "one", "new_string": "two"},
}


def asking(*calls: dict[str, Any]) -> str:
    """A prompt that has these tools ask."""
    steps: list[Any] = []
    for number, call in enumerate(calls):
        steps += [{"call": {"id": f"t{number}", **call}}, {"permit": True}, {"result": "ran"}]
    return json.dumps(["Well. ", *steps, "Over."])


async def prompted(page: Page, text: str) -> None:
    await page.get_by_label("Write a prompt").fill(text)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("Allow once", "allow_once"),
        ("Always allow", "allow_always"),
        ("Reject", "reject_once"),
        ("Always reject", "reject_always"),
    ],
)
async def test_each_answer_does_what_it_says(
    enter: Enter, kept: Sessions, ann: Principal, name: str, choice: Choice
) -> None:
    made = await begun(kept, ann, "Talk")
    visitor = await enter(f"/s/{made}")
    page, question = visitor.page, visitor.page.get_by_role("region", name="A tool asks for permission")
    await prompted(page, asking(COMMAND))
    await expect(question).to_contain_text("Bash wants to run a command")
    await expect(question.get_by_label("Command")).to_have_text("make <all>")
    await expect(page.locator(".about .status.waiting")).to_have_text("waiting for permission")
    await page.keyboard.press("Escape")
    await page.keyboard.press("y")
    await expect(question.get_by_role("button", name="Allow once")).to_be_focused()
    await question.get_by_role("button", name=name, exact=True).click()
    await expect(question).to_have_count(0)
    await expect(page.locator("#feed > article").last).to_contain_text("Over.")
    allowed = choice.startswith("allow")
    await expect(page.locator(".card .status.failed")).to_have_count(0 if allowed else 1)
    known = (await kept.get(ann, made)).meta.get(REMEMBERED, {})
    assert list(known.values()) == ([allowed] if choice.endswith("always") else [])


async def test_whoever_answers_first_decides_and_the_others_see_it(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk")
    here, there = await enter(f"/s/{made}"), await enter(f"/s/{made}")
    await prompted(here.page, asking(COMMAND, EDIT))
    for page in (here.page, there.page):
        await expect(page.locator(".asking")).to_contain_text("wants to run a command")
    await there.page.get_by_role("button", name="Allow once").click()
    for page in (here.page, there.page):
        await expect(page.locator(".asking")).to_contain_text("Edit wants to change a file")
        await expect(page.locator(".asking .diff .added")).to_have_text("+two")
    asked = await kept.questions.pending(ann, made)
    assert asked is not None
    assert await kept.questions.answer(ann, made, asked.id, "reject_once")  # in another process
    for page in (here.page, there.page):
        await expect(page.locator(".asking")).to_have_count(0)
        await expect(page.locator("#feed > article").last).to_contain_text("Over.")
    assert "refused by the user" in str((await kept.history(ann, made)).entries)


async def test_a_turn_that_waits_is_stopped(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Talk")
    visitor = await enter(f"/s/{made}")
    await prompted(visitor.page, asking(COMMAND))
    await expect(visitor.page.locator(".asking")).to_be_visible()
    await visitor.page.reload()
    await expect(visitor.page.locator(".asking")).to_be_visible()
    await visitor.page.get_by_role("button", name="Stop").click()
    await expect(visitor.page.locator(".asking")).to_have_count(0)
    await expect(visitor.page.get_by_role("button", name="Stop")).to_be_hidden()

    async def idle() -> bool:
        return (await kept.get(ann, made)).status == "idle"

    await until(idle, "the turn to end")
    assert len(await said(kept, ann, made)) == 3


class TestWithoutTheRight:
    @pytest.fixture
    async def token(self, kept: Sessions, ann: Principal) -> Token:
        return (await kept.tokens.create(ann.owner, scopes=("read", "write", "run")))[0]

    async def test_who_may_start_no_programs_sees_the_question_and_cannot_answer(
        self, enter: Enter, kept: Sessions, ann: Principal
    ) -> None:
        made = await begun(kept, ann, "Talk")
        visitor = await enter(f"/s/{made}")
        await prompted(visitor.page, asking(COMMAND))
        await expect(visitor.page.locator(".asking")).to_contain_text("your token lacks the scope")
        await expect(visitor.page.locator(".asking").get_by_role("button")).to_have_count(0)
        await visitor.page.get_by_role("button", name="Stop").click()
        await expect(visitor.page.locator(".asking")).to_have_count(0)
