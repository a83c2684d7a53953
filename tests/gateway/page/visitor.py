"""Somebody with a browser."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import ConsoleMessage, Page, Request, expect

from hitherto.gateway.auth.cookies import ZONE
from hitherto.model import Token
from hitherto.service import Sessions
from tests.gateway.servers import Server
from tests.support.waits import until

REPORT = """
document.addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective));
window.alert = window.confirm = () => console.error("a script has run");
"""


class Visitor:
    """A page in a browser of its own, and all that went wrong in it."""

    def __init__(self, server: Server, kept: Sessions, token: Token, page: Page) -> None:
        self.server, self.kept, self.token, self.page = server, kept, token, page
        self.complaints: list[str] = []
        self.asked: list[str] = []

    @property
    def base(self) -> str:
        return f"http://{self.server.host}"

    async def sign_in(self, path: str = "/") -> None:
        await self.page.goto(f"{self.base}/#code={await self.kept.signin.invite(self.token)}")
        await self.is_in()
        if path != "/":
            await self.go(path)
            await self.is_in()

    async def is_in(self) -> None:
        """The page is there, and its script has begun."""
        await expect(self.page.locator("#more")).to_be_visible()

    async def cookies(self) -> list[Any]:
        """What the browser keeps of the server, but for the time zone that it tells."""
        return [each for each in await self.page.context.cookies() if each.get("name") != ZONE]

    async def go(self, path: str) -> None:
        await self.page.goto(f"{self.base}{path}")

    async def becomes(self, expression: str, wanted: Any, given: Any = None) -> None:
        """Until a script in the page says that."""

        async def is_so() -> bool:
            return bool(await self.page.evaluate(expression, given) == wanted)

        await until(is_so, f"{expression} to be {wanted!r}")

    async def stop_the_clock(self) -> None:
        """From now on time passes in the page only when it is told to."""
        await self.page.clock.install()
        await self.page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))

    async def scrolled_through(self, more: str, rows: str) -> None:
        """Go down a list until there is no link to more of it."""

        async def over() -> bool:
            if not await self.page.locator(more).count():
                return True
            await self.page.locator(rows).last.scroll_into_view_if_needed()
            return False

        await until(over, "the end of the list")

    def overlook(self, *statuses: int) -> None:
        """Browsers note every answer of such a status by themselves."""
        noted = tuple(f"status of {status}" for status in statuses)
        self.complaints = [each for each in self.complaints if not any(note in each for note in noted)]

    def is_calm(self) -> None:
        """Nothing was complained about, nothing ran that is not ours, and nothing was asked of anybody else."""
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith((f"{self.base}/", "data:"))] == []


async def leave(page: Page) -> None:
    """Sign out, as everybody does."""
    await page.locator("#more > summary").click()
    await page.get_by_role("button", name="Sign out").click()


async def watched(visitor: Visitor) -> None:
    """Note what the browser says."""

    def told(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            visitor.complaints.append(f"{message.type}: {message.text}")

    def asked(request: Request) -> None:
        visitor.asked.append(request.url)

    visitor.page.on("console", told)
    visitor.page.on("pageerror", lambda error: visitor.complaints.append(f"exception: {error}"))
    visitor.page.on("request", asked)
    visitor.page.on("dialog", lambda dialog: visitor.complaints.append(f"dialog: {dialog.message}"))
    await visitor.page.add_init_script(REPORT)
