"""The pictures in the documents: `python -m tests.gateway.page.pictures docs/images` draws them from a store made up for it."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

import hitherto
from hitherto.ids import now_ms
from hitherto.model import LOCAL, Draft, Text, Thought, ToolCall, ToolResult, Usage
from hitherto.service import Imported, Sessions
from hitherto.service.history.append import complete_draft
from hitherto.values.days import DAY_MS
from tests.gateway.page.browser import browser, context_of
from tests.gateway.page.visitor import Visitor
from tests.gateway.servers import serving

SEED = 7
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "is_mobile": True, "has_touch": True}
DARK = {"color_scheme": "dark"}
PROJECTS = ("github.com/ada/engine", "github.com/ada/heron", "github.com/ada/site", "notes")
AGENTS = ("claude", "codex", "gemini", "pi")
TITLES = (
    "Lease fencing in the writer thread",
    "Why does the parser drop the last line?",
    "Keyset pagination for the session list",
    "Backfill cost before March",
    "A flaky websocket test",
    "Draft the release notes for 0.9",
    "Profile startup: imports take 600 ms",
    "Translate the onboarding mail",
    "Contrast of the accent colour",
    "Rotate the signing keys",
    "Plan the offsite in Lisbon",
    "Move the cache out of the request path",
)
CODE = """The last line is lost when the file does not end with a newline: `readline` returns it, and the loop throws it away.

```python
def lines(file: IO[str]) -> Iterator[str]:
    for line in file:
        yield line.removesuffix("\\n")
```

I changed the reader and added a test for a file without a final newline."""


async def filled(sessions: Sessions, now: int) -> str:
    """Sessions of some months; returns the id of the one that is shown."""
    chance = random.Random(SEED)
    for number in range(140):
        at = now - int(chance.expovariate(1 / 22) * DAY_MS) - chance.randrange(DAY_MS // 3)
        await _old(sessions, chance, number, at)
    return await _shown(sessions, now)


async def _old(sessions: Sessions, chance: random.Random, number: int, at: int) -> None:
    agent, project = chance.choice(AGENTS), chance.choice(PROJECTS)
    usage = Usage(input=chance.randrange(2_000, 9_000), output=900, cost=chance.random() / 8)
    said = [
        Draft(
            role="user" if turn % 2 == 0 else "assistant",
            parts=(Text(text=chance.choice(TITLES)),),
            at=at + turn * 60_000,
            model=None if turn % 2 == 0 else "claude-sonnet-5",
            usage=None if turn % 2 == 0 else usage,
            tokens=None if turn % 2 == 0 else chance.randrange(2_000, 12_000),
        )
        for turn in range(2 * chance.randrange(1, 9))
    ]
    made = Imported(
        id=f"{agent}:{number:04d}",
        source=agent,
        created_at=at,
        updated_at=at + len(said) * 60_000,
        title=chance.choice(TITLES),
        cwd=f"/home/ada/{project.rpartition('/')[2]}",
        project=project,
        branch=chance.choice(("main", "main", "next")),
        agent_id=agent,
        tags=tuple(chance.sample(("review", "idea", "bug", "work"), chance.choice((0, 0, 1, 2)))),
    )
    entries = [complete_draft(draft, at, sessions.core.new_id) for draft in said]
    await sessions.transfer.sync(LOCAL, made, entries)


async def _shown(sessions: Sessions, now: int) -> str:
    session = await sessions.create(
        LOCAL, title="Why does the parser drop the last line?", cwd="/home/ada/engine", tags=("bug",)
    )
    run = ToolCall(
        id="c1", name="run_command", kind="execute", title="make test", input={"command": "make test"}
    )
    edit = ToolCall(
        id="c2",
        name="edit_file",
        kind="edit",
        title="Edit reader.py",
        input={
            "path": "/home/ada/engine/reader.py",
            "old": "    while line := file.readline():\n        yield line[:-1]\n",
            "new": '    for line in file:\n        yield line.removesuffix("\\n")\n',
        },
    )
    failed = (
        "\x1b[31mFAILED\x1b[0m tests/test_reader.py::test_a_file_without_a_final_newline\n1 failed, 41 passed"
    )
    usage = Usage(input=5_210, output=412, cost=0.021)
    await sessions.append(
        LOCAL,
        session.id,
        [
            Draft(role="user", parts=(Text(text="Why does the parser drop the last line of some files?"),), at=now - 90_000),
            Draft(
                role="assistant",
                parts=(Thought(text="Let me see whether it depends on the final newline."), Text(text="I will run the tests first."), run),
                at=now - 80_000,
                model="claude-sonnet-5",
                usage=usage,
            ),
            Draft(role="tool", parts=(ToolResult(id="c1", is_error=True, content=(Text(text=failed),)),), at=now - 70_000),
            Draft(role="assistant", parts=(Text(text="It does. The reader cuts the last character of every line."), edit), at=now - 60_000, model="claude-sonnet-5", usage=usage),
            Draft(role="tool", parts=(ToolResult(id="c2", content=(Text(text="changed"),)),), at=now - 50_000),
            Draft(role="assistant", parts=(Text(text=CODE),), at=now - 40_000, model="claude-sonnet-5", usage=usage),
        ],
    )  # fmt: skip
    await sessions.fork(LOCAL, session.id, title="The same, with a generator")
    return session.id


async def draw(folder: Path) -> None:
    """Make a store, show it, and keep what is seen."""
    with tempfile.TemporaryDirectory() as place:
        url = f"sqlite:///{Path(place) / 'hitherto.db'}"
        async with hitherto.open(url) as sessions:
            shown = await filled(sessions, now_ms())
            token, _ = await sessions.tokens.create(LOCAL.owner)
            with serving(url, tokens={}) as server:
                async with browser() as running:
                    for name, path, look in (
                        ("list", "/", DESKTOP),
                        ("session", f"/s/{shown}", DESKTOP | DARK),
                        ("usage", "/usage", DESKTOP),
                        ("phone", "/", PHONE | DARK),
                    ):
                        page = await _opened(running, look)
                        visitor = Visitor(server, sessions, token, page)
                        await visitor.sign_in(path)
                        if name == "session":
                            await _unfolded(page)
                        await page.screenshot(path=folder / f"{name}.png")
                        await page.context.close()


async def _unfolded(page: Any) -> None:
    """A session with what its turn did, from its prompt on, beside the list."""
    await expect(page.locator("#beside .row").first).to_be_visible()
    await page.locator(".work > details > summary").first.click()
    await expect(page.locator(".steps .card").first).to_be_visible()
    await page.evaluate("for (const each of document.querySelectorAll('.card')) each.open = true")
    await page.locator(".entry").first.scroll_into_view_if_needed()


async def _opened(running: Browser, look: dict[str, Any]) -> Any:
    return await (await context_of(running, **look)).new_page()


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1])))
