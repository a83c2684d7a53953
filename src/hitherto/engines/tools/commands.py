"""`run_command`: a shell command in the working directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from hitherto.engine import Finished, Host
from hitherto.engines.toolbox import Ran, Show, Tool
from hitherto.engines.tools.bounds import (
    COMMAND_BYTES,
    COMMAND_CHARS,
    COMMAND_SECONDS,
    COMMAND_SECONDS_MOST,
)
from hitherto.engines.tools.offering import Input, offered, said
from hitherto.engines.tools.roots import Roots

Seconds = Annotated[int, Meta(ge=1, le=COMMAND_SECONDS_MOST, description="The time limit; 120 if not given")]


class RunCommand(Input, frozen=True):
    """Run a shell command in the working directory and see what it prints, errors included.

    There is no input, and nothing stays: what was started in the background ends with the command. Of long output the
    end is shown. Variables that hold keys and tokens are not set.
    """

    command: Annotated[str, Meta(min_length=1, max_length=COMMAND_CHARS)]
    seconds: Seconds = COMMAND_SECONDS


def run_command(roots: Roots, host: Host) -> Tool:
    """Runs on the host. The roots are where it begins, not a bound: what a command may do is a matter of permission."""

    async def run(asked: RunCommand, show: Show) -> Ran:
        finished = await host.run(
            asked.command, roots.cwd, seconds=asked.seconds, output_bytes=COMMAND_BYTES, show=show
        )
        return said(
            "\n".join(_told(finished, asked.seconds)),
            is_error=finished.exit_code != 0,
            output={
                "exitCode": finished.exit_code,
                "signal": finished.signal,
                "timedOut": finished.timed_out,
                "cut": finished.cut,
            },
        )

    return offered(RunCommand, run, name="run_command", kind="execute", title=lambda it: it.command)


def _told(finished: Finished, seconds: int) -> Iterator[str]:
    if finished.cut:
        yield "(the beginning of the output is left out)"
    yield finished.output.removesuffix("\n") or "(no output)"
    if finished.timed_out:
        yield f"(ended after {seconds} s, its time limit)"
    elif finished.signal:
        yield f"(ended by {finished.signal})"
    elif finished.exit_code:
        yield f"(exit code {finished.exit_code})"
