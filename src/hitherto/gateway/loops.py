"""The event loop that a server runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_quickly(work: Coroutine[Any, Any, T]) -> T:
    """Run this to its end, on the quicker event loop where there is one."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.run(work)
    return uvloop.run(work)
