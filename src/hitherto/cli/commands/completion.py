"""`hitherto completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hitherto.cli.command import JSON_OPTION, examples_text
from hitherto.cli.terminal.output import Output

VARIABLE = "_HITHERTO_COMPLETE"
"""The variable by which click's script asks the program for completions."""


@click.command(
    params=[JSON_OPTION],
    epilog=examples_text(
        (
            "hitherto completion bash >> ~/.bashrc",
            "hitherto completion zsh >> ~/.zshrc",
            "hitherto completion fish > ~/.config/fish/completions/hitherto.fish",
        )
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def run(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script for your shell. It completes commands, options and session ids."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion script for {shell}")
    script = kind(ctx.find_root().command, {}, "hitherto", VARIABLE).source()
    if as_json:
        Output(as_json=True).document({"shell": shell, "script": script})
    else:
        click.echo(script)
