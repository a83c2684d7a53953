"""The command line: a table of commands, each in a module of its own that is imported when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from hitherto import __version__
from hitherto.cli.terminal import exit_codes


class Listed(NamedTuple):
    """A command as the overview shows it: the module that has it as `run`, and one line of help."""

    module: str
    help: str


COMMANDS: dict[str, Listed] = {
    "list": Listed("hitherto.cli.commands.list", "Sessions, newest activity first."),
    "show": Listed("hitherto.cli.commands.show", "One session and what was said in it."),
    "search": Listed("hitherto.cli.commands.search", "Find sessions by what was said in them."),
    "sync": Listed("hitherto.cli.commands.sync", "Take in the sessions that other agents keep."),
    "sources": Listed(
        "hitherto.cli.commands.sources", "The agents whose sessions are taken in, and what they have."
    ),
    "resume": Listed(
        "hitherto.cli.commands.resume", "The command that goes on with a session in its own agent."
    ),
    "continue": Listed("hitherto.cli.commands.continue_", "Go on with a session in another agent."),
    "prompt": Listed("hitherto.cli.commands.prompt", "Have one prompt answered."),
    "chat": Listed("hitherto.cli.commands.chat", "Talk in a session, new or old."),
    "new": Listed("hitherto.cli.commands.new", "Make an empty session."),
    "append": Listed("hitherto.cli.commands.append", "Add a message to a session."),
    "rename": Listed("hitherto.cli.commands.rename", "Give a session a title."),
    "tag": Listed("hitherto.cli.commands.tag", "Add and remove tags."),
    "archive": Listed("hitherto.cli.commands.archive", "Put sessions away, or take them back."),
    "pin": Listed("hitherto.cli.commands.pin", "Pin sessions, so that pruning never touches them."),
    "fork": Listed("hitherto.cli.commands.fork", "Start a new session from a point of another."),
    "rewind": Listed("hitherto.cli.commands.rewind", "Go back to an earlier message."),
    "checkpoints": Listed(
        "hitherto.cli.commands.checkpoints", "Earlier states that a session can go back to."
    ),
    "restore": Listed(
        "hitherto.cli.commands.restore", "Go back to a checkpoint, or bring a vanished transcript back."
    ),
    "erase": Listed("hitherto.cli.commands.erase", "Blank one message for good."),
    "delete": Listed("hitherto.cli.commands.delete", "Delete sessions for good."),
    "move": Listed("hitherto.cli.commands.move", "Say that a folder is now elsewhere."),
    "export": Listed("hitherto.cli.commands.export", "Write sessions as JSON lines."),
    "import": Listed("hitherto.cli.commands.import_", "Read sessions from an export."),
    "prune": Listed("hitherto.cli.commands.prune", "Put old sessions away, by policy."),
    "stats": Listed("hitherto.cli.commands.stats", "Numbers about sessions and store."),
    "backup": Listed("hitherto.cli.commands.backup", "Copy the whole store while it is in use."),
    "doctor": Listed("hitherto.cli.commands.doctor", "Check the store and mend what is derived."),
    "watch": Listed("hitherto.cli.commands.watch", "Follow changes as they happen."),
    "token": Listed("hitherto.cli.commands.token", "Make, list and revoke tokens for the server."),
    "serve": Listed("hitherto.cli.commands.serve", "Serve sessions over HTTP and WebSocket."),
    "page": Listed("hitherto.cli.commands.page", "An address that opens the page of a running server."),
    "acp": Listed("hitherto.cli.commands.acp", "Be an agent for editors (Agent Client Protocol)."),
    "mcp": Listed(
        "hitherto.cli.commands.mcp", "Let agents look up earlier sessions (Model Context Protocol)."
    ),
    "completion": Listed("hitherto.cli.commands.completion", "The completion script of a shell."),
}


class Commands(click.Group):
    """The group over `COMMANDS`: overview and completion come from the table, errors end in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(COMMANDS[cmd_name].module).run
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [name for name in COMMANDS if name.startswith(incomplete)]
        found = [CompletionItem(name, help=COMMANDS[name].help) for name in named]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # whoever reads has enough, as in `hitherto list | head`
            exit_codes.silence(sys.stdout)
            return exit_codes.OK

    def main(  # type: ignore[override]  # never returns, whatever the mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and end the process with its exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name or "hitherto", **extra)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place that words every failure
            code = exit_codes.report(error)
        sys.exit(code if isinstance(code, int) else exit_codes.OK)


@click.command(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="hitherto")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Hitherto keeps every conversation with every agent.

    Sessions may be named by any beginning of their id that fits only one. `hitherto COMMAND --help` tells more about
    a command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
