"""`recollect acp`. An editor never comes here: `__main__` reads the plain options itself, without the command line."""

from __future__ import annotations

import click

from recollect.cli.command import JSON_OPTION, STORE_OPTION, shown_examples

EXAMPLES = (
    "recollect acp",
    "recollect acp --store sqlite:////data/sessions.db --model anthropic:claude-sonnet-5",
)


@click.command(epilog=shown_examples(EXAMPLES))
@click.option("--model", metavar="NAME", help="The model that answers.  [env: RECOLLECT_MODEL]")
def run(store: str | None, model: str | None, as_json: bool) -> None:  # noqa: ARG001 - it speaks nothing but JSON
    """Be an ACP agent on standard input and output, for editors.

    Speaks the Agent Client Protocol: one JSON object per line, until its input ends.
    """
    from recollect.acp.command import run_agent

    run_agent(store, model)


run.params += [JSON_OPTION, STORE_OPTION]
