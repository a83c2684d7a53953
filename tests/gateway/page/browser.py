"""A real Chromium: the one of the system, installed by the set-up if it is missing, or Playwright's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Error, Playwright, async_playwright, expect

from hitherto.gateway import page
from tests.support.waits import LIMIT

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
LIMIT_MS = LIMIT * 1_000
SHARED = Path(page.__file__).with_name("static") / "shared.js"
(PASSING,) = re.findall(r"const PASSING = ([\d_]+);", SHARED.read_text())
STANDING = f"""
const begin = setTimeout;
window.setTimeout = (work, after, ...more) => begin(work, after === {PASSING} ? {LIMIT_MS:.0f} : after, ...more);
"""
"""What the page says for some seconds stays until somebody has looked, however long that takes."""
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")
PACKAGES = ("chromium-headless-shell", "chromium")
"""The first does the same without the parts for a screen, and takes half the time; not every Debian has it."""


@cache
def installed() -> str | None:
    """The system's Chromium; where tests run as root on Debian it is installed if there is none."""
    if found := _found():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        silent = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("apt-get", "update"), *((*INSTALL, package) for package in PACKAGES)):
            if not _found():
                subprocess.run(command, check=False, capture_output=True, env=silent, timeout=10 * LIMIT)
    return _found()


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


async def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """Pages of their own in a browser, with which one has as much patience as with everything."""
    context = await browser.new_context(**options)
    context.set_default_timeout(LIMIT_MS)
    context.set_default_navigation_timeout(LIMIT_MS)
    await context.add_init_script(STANDING)
    return context


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser, without a window. Fails, and says what to do, where there is none."""
    expect.set_options(timeout=LIMIT_MS)
    async with async_playwright() as playwright:
        running = await _launched(playwright)
        try:
            yield running
        finally:
            await running.close()


async def _launched(playwright: Playwright) -> Browser:
    try:
        return await playwright.chromium.launch(
            executable_path=installed(), chromium_sandbox=False, args=list(FLAGS), timeout=LIMIT_MS
        )
    except Error as error:
        raise AssertionError(
            f"these tests need Chromium: install it, or run `playwright install chromium`\n{error}"
        ) from error
