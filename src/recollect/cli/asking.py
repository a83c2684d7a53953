"""What a command hears from its user: an answer, a text, lines."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import click

from recollect.cli.exits import Declined
from recollect.cli.output import clean
from recollect.errors import InvalidInput, TooLarge
from recollect.limits import ENTRY_BYTES

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if the user agrees; without a terminal nobody can, so `--yes` is needed there."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: give --yes if you mean it")
    with interruptible():
        try:
            agreed = click.confirm(clean(question), err=True)
        except click.Abort:
            click.echo(err=True)  # behind the ^C that the terminal shows
            raise
    if not agreed:
        raise Declined("nothing was done")


def given_text(argument: str | None) -> str:
    """The argument, or all of stdin without its last newline."""
    if argument is not None and argument != "-":
        return argument
    with interruptible():
        data = sys.stdin.buffer.read(ENTRY_BYTES + 1)
    if len(data) > ENTRY_BYTES:
        raise TooLarge(f"a message may have at most {ENTRY_BYTES} bytes")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the message is not UTF-8: {error}") from None


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a stream as they come, which ^C ends at once."""
    while True:
        with interruptible():
            line = stream.readline()
        if not line:
            return
        yield line


@contextmanager
def interruptible() -> Iterator[None]:
    """Let ^C interrupt a read; otherwise the event loop would hear of it only when the read is over."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # ^C came just before
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)
