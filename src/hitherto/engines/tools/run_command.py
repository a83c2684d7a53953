"""`run_command`: a shell command in the working directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec import Meta

from hitherto.engine import Finished, Host
from hitherto.engines.tool_calls import Show, Tool, ToolOutput
from hitherto.engines.tools.definition import Input, make_tool, text_output
from hitherto.engines.tools.limits import COMMAND_BYTES, COMMAND_CHARS, COMMAND_SECONDS, COMMAND_SECONDS_MOST
from hitherto.engines.tools.roots import ClientRoots, Roots
from hitherto.secrets import find

Seconds = Annotated[int, Meta(ge=1, le=COMMAND_SECONDS_MOST, description="The time limit; 120 if not given")]


class RunCommand(Input, frozen=True):
    """Run a shell command in the working directory and see what it prints, errors included.

    There is no input, and nothing stays: what was started in the background ends with the command. Of long output the
    end is shown. Variables that hold keys and tokens are not set.
    """

    command: Annotated[str, Meta(min_length=1, max_length=COMMAND_CHARS)]
    seconds: Seconds = COMMAND_SECONDS


def run_command(roots: Roots | ClientRoots, host: Host) -> Tool:
    """Runs on the host. The roots are where it begins, not a bound: what a command may do is a matter of permission."""

    async def run(args: RunCommand, show: Show) -> ToolOutput:
        finished = await host.run(
            args.command, roots.cwd, seconds=args.seconds, output_bytes=COMMAND_BYTES, show=show
        )
        return text_output(
            "\n".join(_render(finished, args.seconds)),
            is_error=finished.exit_code != 0,
            output={
                "exitCode": finished.exit_code,
                "signal": finished.signal,
                "timedOut": finished.timed_out,
                "cut": finished.cut,
            },
        )

    return make_tool(RunCommand, run, name="run_command", kind="execute", title=lambda it: it.command)


def _render(finished: Finished, seconds: int) -> Iterator[str]:
    if finished.cut:
        yield "(the beginning of the output is left out)"
    yield finished.output.removesuffix("\n") or "(no output)"
    if finished.timed_out:
        yield f"(ended after {seconds} s, its time limit)"
    elif finished.signal:
        yield f"(ended by {finished.signal})"
    elif finished.exit_code:
        yield f"(exit code {finished.exit_code})"


SECRET_NAME = re.compile(
    r"(?:^|_)(?:API)?KEYS?_|KEYS?$|TOKEN(?:_|$)|SECRET|PASSW(?:OR)?D|PASSPHRASE|PASS$|CREDENTIAL|_CREDS?$|_PWD$|(?:^|_)PAT$"
    r"|_AUTH$|AUTH_CONFIG|BEARER|COOKIE|WEBHOOK",
    re.IGNORECASE,
)
"""As in ANTHROPIC_API_KEY, AWS_ACCESS_KEY_ID, GITHUB_TOKEN, CLIENT_SECRET, PGPASSWORD; not TOKENIZERS_PARALLELISM."""
SECRET_VALUE = re.compile(
    r"://[^/\s@]*:[^/\s@]+@|(?:password|pwd|passwd|(?:account|access|shared)\w*key|sig|token|secret)\s*=\s*[^\s;&]",
    re.IGNORECASE,
)
"""An address with a password in it, whatever it is called: a database, a proxy, an account."""
PLACES = re.compile(r"PATH$")
"""Variables with folders in them, whose names may look random; without them hardly a command works."""
SHORTEST = 8
"""Below this many characters, a value is not looked for elsewhere: it may be a word."""


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables whose name does not say that they hold a secret, and whose value holds none.

    A command that prints its environment must not reveal the provider's API keys to the model. This is no
    sandbox: a command runs as the user, and can read whatever the user can.
    """
    return {name: value for name, value in variables.items() if not _is_secret(name, value)}


def secret_values(variables: Mapping[str, str]) -> Iterator[str]:
    """The values of those that are called secrets, the longest first."""
    values = {value for name, value in variables.items() if SECRET_NAME.search(name)}
    return (value for value in sorted(values, key=len, reverse=True) if len(value) >= SHORTEST)


def _is_secret(name: str, value: str) -> bool:
    if SECRET_NAME.search(name) or SECRET_VALUE.search(value):
        return True
    return not PLACES.search(name) and bool(find(value))
