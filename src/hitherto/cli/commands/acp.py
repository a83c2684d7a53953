"""`hitherto acp`. An editor never comes here: `__main__` reads the plain options itself, without the command line."""

from __future__ import annotations

import click

from hitherto.cli.command import JSON_OPTION, STORE_OPTION, shown_examples

EXAMPLES = (
    "hitherto acp",
    "hitherto acp --store sqlite:////data/sessions.db --model anthropic:claude-sonnet-5",
    "hitherto acp --agent 'opencode acp'",
)


@click.command(epilog=shown_examples(EXAMPLES))
@click.option("--model", metavar="NAME", help="The model that answers.  [env: HITHERTO_MODEL]")
@click.option("--agent", metavar="COMMAND", help="Stand in front of the ACP agent that this command starts.")
def run(store: str | None, model: str | None, agent: str | None, as_json: bool) -> None:  # noqa: ARG001 - it speaks JSON
    """Be an ACP agent on standard input and output, for editors.

    Speaks the Agent Client Protocol: one JSON object per line, until its input ends.
    """
    from hitherto.acp.main import run_agent

    if agent is not None and model is not None:
        raise click.UsageError(
            "--agent and --model exclude each other: the agent behind has a model of its own"
        )
    run_agent(store, model, agent)


run.params += [JSON_OPTION, STORE_OPTION]
