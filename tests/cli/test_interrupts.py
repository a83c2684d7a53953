"""^C: whatever a command is doing, it ends, and in order where that can be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

import pytest

from hitherto.cli.terminal import input as terminal
from hitherto.cli.terminal.input import bare_interrupts, interrupts

Work = Callable[[], Awaitable[None]]


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupted(work: Work) -> None:
    """Run it as a command does, and see it end by the interrupt."""

    async def whole() -> None:
        with interrupts():
            await work()

    with pytest.raises(KeyboardInterrupt), bare_interrupts():
        asyncio.run(whole())


def test_a_command_that_waits_is_cancelled_and_cleans_up_in_order() -> None:
    done = list[str]()

    async def work() -> None:
        asyncio.get_running_loop().call_soon(press)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("cleaned up")

    interrupted(work)
    assert done == ["cleaned up"]


def test_a_command_that_never_pauses_is_interrupted_where_it_is() -> None:
    async def work() -> None:
        press()
        while True:
            pass

    interrupted(work)


def test_an_interrupt_that_nobody_heard_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "UNHEARD_SECONDS", 0.01)

    async def work() -> None:
        with contextlib.suppress(KeyboardInterrupt):  # as a finaliser does
            press()
            while True:
                pass
        await asyncio.Event().wait()

    interrupted(work)


def test_a_second_one_does_not_wait_for_the_first() -> None:
    async def work() -> None:
        press()
        press()
        raise AssertionError("it went on")

    interrupted(work)
