"""A session by turns: a prompt, one line for what was done, the answer."""

from __future__ import annotations

import re

from playwright.async_api import expect

from hitherto.model import Draft, Principal, Text, ToolCall, ToolResult, Usage
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_session import unfolded

FOLDER = "/home/ann/shop"
LINES = "(root) => [...document.querySelectorAll('.work > details > summary')].map((each) => [...each.children].map((one) => one.textContent))"


def step(name: str, at: int, *, fails: bool = False, new: str | None = None) -> list[Draft]:
    """A call and its result, a second each."""
    path = {"file_path": f"{FOLDER}/app/{name}.py"}
    call = ToolCall(
        id=name,
        name="Read" if new is None else "Edit",
        kind="read" if new is None else "edit",
        input=path if new is None else {**path, "old_string": "one\ntwo\n", "new_string": new},
    )
    used = Usage(input=1_000, output=100, cost=0.01)
    result = ToolResult(id=name, is_error=fails, content=(Text(text=f"result of {name}"),))
    return [
        Draft(role="assistant", model="model-a", usage=used, parts=(call,), at=at),
        Draft(role="tool", parts=(result,), at=at + 1_000),
    ]


def asked(text: str, at: int, role: str = "user") -> Draft:
    return Draft(role=role, parts=(Text(text=text),), at=at, model=None if role == "user" else "model-a")  # type: ignore[arg-type]


async def test_what_was_done_is_one_line_that_unfolds_into_a_line_for_each_call(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    session = await kept.create(ann, title="Turns", cwd=FOLDER)
    first = [
        asked("Fix it", 0),
        *step("a", 1_000),
        *step("b", 3_000, fails=True),
        asked("Let me see.", 5_000, "assistant"),
        *step("c", 6_000, new="one\nthree\nfour\n"),
        asked("It is fixed.", 41_000, "assistant"),
    ]
    await kept.append(
        ann, session.id, [*first, asked("Thanks", 50_000), asked("Welcome.", 51_000, "assistant")]
    )
    visitor = await enter(f"/s/{session.id}")
    page = visitor.page
    await expect(page.get_by_text("It is fixed.")).to_be_visible()
    await expect(page.get_by_text("Let me see.")).to_have_count(0)
    assert await page.evaluate(LINES) == [["3 steps", "1 edit", "1 failed", "41 s", "$0.03"]]
    await unfolded(page)
    await expect(page.get_by_text("Let me see.")).to_be_visible()
    assert await page.evaluate(LINES) == [["3 steps", "1 edit", "1 failed", "41 s", "$0.03"]]
    await expect(page.locator(".steps .card > summary")).to_have_text(
        [
            re.compile(r"Read\s+app/a.py"),
            re.compile(r"Read\s+app/b.py\s+failed"),
            re.compile(r"Edit\s+app/c.py\s+\+2 −1"),
        ]
    )
    # The model stands where it changes, the time and the tokens when one looks.
    shown = page.locator(".steps .entry").nth(1).locator("header")
    await expect(shown).to_have_css("opacity", "0")
    await page.locator(".steps .entry").nth(1).hover()
    await expect(shown).to_have_css("opacity", "1")
    await expect(page.locator(".model:not(.again)")).to_have_count(1)
    # What comes is joined to its turn: what was the answer so far is a step if the turn goes on.
    await kept.append(ann, session.id, step("d", 60_000))
    await expect(page.locator(".work").last.locator(".card")).to_have_count(1)
    assert (await page.evaluate(LINES))[1] == ["1 step", "11 s", "$0.01"]
    await expect(page.locator(".work").last.get_by_text("Welcome.")).to_be_visible()
    await kept.append(ann, session.id, [*step("e", 62_000), asked("Now it is.", 64_000, "assistant")])
    await expect(page.locator("#feed > .entry").last).to_contain_text("Now it is.")
    assert (await page.evaluate(LINES))[1] == ["2 steps", "14 s", "$0.02"]
    await page.reload()
    await expect(page.locator(".card")).to_have_count(0)
    assert (await page.evaluate(LINES))[1] == ["2 steps", "14 s", "$0.02"]
    # While it runs, the newest turn is unfolded.
    await kept.catalog.set_status(ann, session.id, "running")
    await page.reload()
    await expect(page.locator(".work").last.locator(".card").first).to_be_visible()
    assert await page.locator(".work").first.locator(".card").count() == 0


async def test_a_turn_of_hundreds_of_steps_opens_with_its_prompt_and_is_read_in_parts(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    session = await kept.create(ann, title="Long turns", cwd=FOLDER)
    ids: list[str] = []
    for turn in range(3):
        start = turn * 1_000_000
        steps = [
            each for number in range(100) for each in step(f"{turn}-{number}", start + number * 2_000 + 1_000)
        ]
        drafts = [
            asked(f"Prompt {turn}", start),
            *steps,
            asked(f"Answer {turn}", start + 300_000, "assistant"),
        ]
        ids += (await kept.append(ann, session.id, drafts)).entries
    visitor = await enter(f"/s/{session.id}")
    page = visitor.page
    for turn in range(3):  # all of them fit on a screen, so all come at once
        await expect(page.get_by_text(f"Prompt {turn}")).to_be_visible()
        await expect(page.get_by_text(f"Answer {turn}")).to_be_visible()
    assert [each[0] for each in await page.evaluate(LINES)] == ["20+ steps"] * 3
    assert await page.locator(".card").count() == 0
    assert len([each for each in visitor.asked if "/s/" in each]) <= 4
    # In the middle of one: what is before and behind it comes when asked for.
    await visitor.go(f"/s/{session.id}?at={ids[303]}")
    await expect(page.locator(".entry.target")).to_be_in_viewport()
    await expect(page.get_by_text("Prompt 1")).to_be_visible()
    gap = page.locator(".work:has(.entry) .gap")
    await expect(gap).to_have_count(2)
    while await gap.count():
        number = await page.locator(".steps > .entry").count()
        await gap.first.get_by_role("link").click()
        await expect(page.locator(".steps > .entry").nth(number)).to_be_attached()
    assert await page.locator(".steps > .entry").count() == 100
    assert (
        await page.locator(".work:has(.entry) > details > summary > span").first.inner_text() == "100 steps"
    )
    found = await page.locator(".steps > .entry").evaluate_all(
        "(all) => all.map((each) => Number(each.ariaPosInSet))"
    )
    assert found == sorted(found)
    await expect(page.get_by_text("Prompt 0")).to_be_attached()
    await expect(page.get_by_text("Answer 2")).to_be_attached()
