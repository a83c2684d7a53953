"""The transport over two descriptors, without an agent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hitherto.acp import pipes
from hitherto.acp.pipes import Pipes
from hitherto.rpc.errors import Gone
from hitherto.rpc.transport import FrameTooLong, Lines
from tests.support.waits import arrives


@asynccontextmanager
async def piped(lines: Lines | None = None) -> AsyncIterator[tuple[Pipes, int, int]]:
    """A transport, and the ends of its pipes that a client has: to write to and to read from."""
    (source, to_agent), (from_agent, target) = os.pipe(), os.pipe()
    transport = Pipes(source, target, lines)
    try:
        yield transport, to_agent, from_agent
    finally:
        transport.close()
        for number in (source, to_agent, from_agent, target):
            try:
                os.close(number)
            except OSError:  # the test has closed it
                continue


def test_of_a_line_that_is_too_long_the_beginning_is_kept() -> None:
    lines = Lines(longest=10)
    for chunk in (b'{"id":7,"m', b"ethod", b"x" * 5_000 + b"\nnext\n"):
        lines.feed(chunk)
    with pytest.raises(FrameTooLong) as dropped:
        lines.take()
    assert dropped.value.head == b'{"id":7,"method'
    lines.put_back(dropped.value)
    with pytest.raises(FrameTooLong):
        lines.take()
    assert lines.take() == b"next"


async def arriving(source: int) -> None:
    """Return when there is something to take."""
    there, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(source, there.set)
    await arrives(there.wait(), "something to take")
    loop.remove_reader(source)


def take(source: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(source, size - len(data))
        assert chunk, "there is no more of it"
        data += chunk
    return data


async def test_what_was_read_ahead_comes_first() -> None:
    lines = Lines()
    lines.feed(b"one\ntw")
    async with piped(lines) as (transport, to_agent, _):
        os.write(to_agent, b"o\nthree")
        os.close(to_agent)
        assert [await transport.receive() for _ in range(4)] == [b"one", b"two", b"three", None]


async def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_taken() -> None:
    async with piped(Lines(longest=10)) as (transport, to_agent, _):
        os.write(to_agent, b"x" * 11 + b"\nshort\n" + b"y" * 10 + b"\n" + b"z" * 50)
        os.close(to_agent)
        with pytest.raises(FrameTooLong):
            await transport.receive()
        assert [await transport.receive() for _ in range(2)] == [b"short", b"y" * 10]
        with pytest.raises(FrameTooLong):
            await transport.receive()
        assert await transport.receive() is None


async def test_a_sender_waits_for_its_reader_and_what_it_sends_arrives_whole() -> None:
    data = os.urandom(8 * 1024 * 1024)
    async with piped() as (transport, _, from_agent):
        sending = asyncio.ensure_future(transport.send(data))
        await arriving(from_agent)
        assert not sending.done()
        assert await arrives(asyncio.to_thread(take, from_agent, len(data)), "all that was sent") == data
        await arrives(sending, "the end of what is sent")


async def test_a_sender_that_is_cancelled_leaves_no_half_message() -> None:
    first, second = b"a" * 4 * 1024 * 1024 + b"\n", b"second\n"
    async with piped() as (transport, _, from_agent):
        sending = asyncio.ensure_future(transport.send(first))
        await arriving(from_agent)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await arrives(sending, "the end of what is sent")
        next_line = asyncio.ensure_future(transport.send(second))
        taken = asyncio.to_thread(take, from_agent, len(first + second))
        assert await arrives(taken, "all that was sent") == first + second
        await arrives(next_line, "the end of what is sent")


async def test_a_reader_that_has_left_is_noticed() -> None:
    async with piped() as (transport, _, from_agent):
        sending = asyncio.ensure_future(transport.send(b"x" * 4 * 1024 * 1024))
        await arriving(from_agent)
        os.close(from_agent)
        with pytest.raises(Gone):
            await arrives(sending, "the end of what is sent")
        with pytest.raises(Gone):
            await transport.send(b"more")


async def test_a_client_that_neither_speaks_nor_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "LINGER_SECONDS", 0.05)
    async with piped() as (transport, to_agent, _):
        sending = asyncio.ensure_future(transport.send(b"x" * 4 * 1024 * 1024))
        os.close(to_agent)
        assert await transport.receive() is None
        with pytest.raises(Gone):
            await arrives(sending, "the end of what is sent")
