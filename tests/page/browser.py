"""A real Chromium: the one of the system, installed by the set-up if it is missing, or Playwright's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from playwright.async_api import Browser, Error, Playwright, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")


@cache
def installed() -> str | None:
    """The system's Chromium; where tests run as root on Debian it is installed if there is none."""
    if found := _found():
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], check=False, capture_output=True)  # noqa: S607
        subprocess.run(
            INSTALL, check=True, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    return _found()


def _found() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """A browser, without a window. Fails, and says what to do, where there is none."""
    async with async_playwright() as playwright:
        running = await _launched(playwright)
        try:
            yield running
        finally:
            await running.close()


async def _launched(playwright: Playwright) -> Browser:
    try:
        return await playwright.chromium.launch(
            executable_path=installed(), chromium_sandbox=False, args=list(FLAGS)
        )
    except Error as error:
        raise AssertionError(
            f"these tests need Chromium: install it, or run `playwright install chromium`\n{error}"
        ) from error
