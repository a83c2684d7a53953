"""The command line: a table of commands. The module of a command is imported when the command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from hitherto import __version__
from hitherto.cli.terminal import exit_codes


class CommandRow(NamedTuple):
    """A row of the overview: the module that defines the command as `run`, and one line of help."""

    module: str
    help: str


COMMANDS: dict[str, CommandRow] = {
    "list": CommandRow("hitherto.cli.commands.list", "List sessions, most recently active first."),
    "show": CommandRow("hitherto.cli.commands.show", "Show a session and its messages."),
    "search": CommandRow("hitherto.cli.commands.search", "Find sessions by what was said in them."),
    "diff": CommandRow("hitherto.cli.commands.diff", "Show what a session changed in files."),
    "log": CommandRow("hitherto.cli.commands.log", "List who changed a file, or what changed last."),
    "why": CommandRow(
        "hitherto.cli.commands.why", "Show which sessions made a commit, and the prompts behind it."
    ),
    "blame": CommandRow(
        "hitherto.cli.commands.blame", "Show which session wrote each line of a file, and why."
    ),
    "trace": CommandRow(
        "hitherto.cli.commands.trace", "Print which lines agents wrote, as Agent Trace records."
    ),
    "sync": CommandRow("hitherto.cli.commands.sync", "Import your agents' sessions and keep them in sync."),
    "sources": CommandRow(
        "hitherto.cli.commands.sources", "Show which agents have sessions to import, and how many."
    ),
    "resume": CommandRow("hitherto.cli.commands.resume", "Resume a session in the agent it came from."),
    "continue": CommandRow("hitherto.cli.commands.continue_", "Continue a session in another agent."),
    "prompt": CommandRow("hitherto.cli.commands.prompt", "Run one prompt and print the answer."),
    "chat": CommandRow(
        "hitherto.cli.commands.chat", "Chat in the terminal, in a new or an existing session."
    ),
    "new": CommandRow("hitherto.cli.commands.new", "Create an empty session."),
    "append": CommandRow("hitherto.cli.commands.append", "Add a message to a session."),
    "rename": CommandRow("hitherto.cli.commands.rename", "Change the title of a session."),
    "tag": CommandRow("hitherto.cli.commands.tag", "Add or remove tags."),
    "archive": CommandRow("hitherto.cli.commands.archive", "Archive or unarchive sessions."),
    "pin": CommandRow("hitherto.cli.commands.pin", "Pin sessions to protect them from pruning."),
    "fork": CommandRow("hitherto.cli.commands.fork", "Start a new session from any message of another."),
    "rewind": CommandRow("hitherto.cli.commands.rewind", "Go back to an earlier message of a session."),
    "checkpoints": CommandRow("hitherto.cli.commands.checkpoints", "List the checkpoints of a session."),
    "episodes": CommandRow(
        "hitherto.cli.commands.episodes", "List the parts of a session from one reset to the next."
    ),
    "restore": CommandRow(
        "hitherto.cli.commands.restore", "Restore a checkpoint, or a transcript that an agent deleted."
    ),
    "erase": CommandRow("hitherto.cli.commands.erase", "Permanently blank one message."),
    "delete": CommandRow("hitherto.cli.commands.delete", "Permanently delete sessions."),
    "move": CommandRow("hitherto.cli.commands.move", "Update the folder of a session after you moved it."),
    "export": CommandRow(
        "hitherto.cli.commands.export", "Export sessions as JSON lines, JSON, Markdown or HTML."
    ),
    "import": CommandRow("hitherto.cli.commands.import_", "Import sessions from an export."),
    "prune": CommandRow(
        "hitherto.cli.commands.prune", "Archive or delete old sessions by age, count or size."
    ),
    "stats": CommandRow("hitherto.cli.commands.stats", "Show statistics about your sessions and the store."),
    "project": CommandRow("hitherto.cli.commands.project", "List, rename and merge projects."),
    "usage": CommandRow(
        "hitherto.cli.commands.usage", "Show what your sessions used and cost, by day, week or month."
    ),
    "statusline": CommandRow(
        "hitherto.cli.commands.statusline", "Print cost and context in one line, for an agent's status bar."
    ),
    "backup": CommandRow("hitherto.cli.commands.backup", "Copy the whole store, even while it is in use."),
    "restore-backup": CommandRow(
        "hitherto.cli.commands.restore_backup", "Put a backup in place of the store."
    ),
    "doctor": CommandRow(
        "hitherto.cli.commands.doctor", "Check the store; with --repair, mend its indexes and counts."
    ),
    "recover": CommandRow(
        "hitherto.cli.commands.recover", "Copy what can be read of a damaged store into a new one."
    ),
    "watch": CommandRow("hitherto.cli.commands.watch", "Follow changes as they happen."),
    "token": CommandRow(
        "hitherto.cli.commands.token", "Create, list, replace and revoke access tokens for the server."
    ),
    "admin": CommandRow("hitherto.cli.commands.admin", "Set up the database of a store."),
    "serve": CommandRow("hitherto.cli.commands.serve", "Start the server: web page, gateway, ACP and MCP."),
    "page": CommandRow(
        "hitherto.cli.commands.page", "Print a sign-in link to the web page of a running server."
    ),
    "open": CommandRow("hitherto.cli.commands.open", "Open a session on the web page, in your browser."),
    "acp": CommandRow("hitherto.cli.commands.acp", "Run as an ACP agent, for editors."),
    "mcp": CommandRow(
        "hitherto.cli.commands.mcp", "Run as an MCP server, so that agents can search your history."
    ),
    "completion": CommandRow(
        "hitherto.cli.commands.completion", "Print the completion script for your shell."
    ),
}


class Commands(click.Group):
    """The group of `COMMANDS`: it makes overview and completion from the table, and reports all errors in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(COMMANDS[cmd_name].module).run
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], COMMANDS, n=3, cutoff=0.5)
            if near and args[0] not in COMMANDS:
                raise click.UsageError(f"{error.message} Did you mean {_either(near)}?", ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        found = [CompletionItem(name, help=COMMANDS[name].help) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the pipe has left, as in `hitherto list | head`
            exit_codes.silence(sys.stdout)
            return exit_codes.OK

    def main(  # type: ignore[override]  # never returns, whatever the mode
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command and end the process with its exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name or "hitherto", **extra)
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place that reports every failure
            code = exit_codes.report(error)
        sys.exit(code if isinstance(code, int) else exit_codes.OK)


def _either(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


@click.command(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="hitherto")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Hitherto keeps every conversation you have with your agents.

    On a terminal, `hitherto` alone lets you choose a session: type to find it. Start with `hitherto serve`, or with `hitherto sync`, then `hitherto list` and `hitherto search`. Name a SESSION by the first
    characters of its id, %3 (the third of the last list), @last, or words of its title. Run `hitherto COMMAND --help` for the
    options and examples of a command.
    """
    if ctx.invoked_subcommand is not None:
        return
    from hitherto.cli.start import start

    if not start(_run):
        click.echo(ctx.get_help())


def _run(*words: str) -> int:
    """Run a command and return its exit code."""
    try:
        with app.make_context("hitherto", list(words)) as ctx:
            code = app.invoke(ctx)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - reported like every failure
        return exit_codes.report(error)
    return code if isinstance(code, int) else exit_codes.OK
