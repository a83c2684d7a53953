"""`hitherto acp`. Editors do not wait for this module: `__main__` reads the plain options itself."""

from __future__ import annotations

import click

from hitherto.cli.command import JSON_OPTION, STORE_OPTION, examples_text

EXAMPLES = (
    "hitherto acp",
    "hitherto acp --store sqlite:////data/sessions.db --model anthropic:claude-sonnet-5",
    "hitherto acp --agent 'opencode acp'",
)


@click.command(epilog=examples_text(EXAMPLES))
@click.option(
    "--model",
    metavar="NAME",
    help="The model that answers, such as anthropic:claude-sonnet-5.  [env: HITHERTO_MODEL]",
)
@click.option(
    "--agent", metavar="COMMAND", help="Run as a proxy: start this ACP agent and record everything it does."
)
@click.option("--sign-in", "signs_in", is_flag=True, help="Ask for a model and its key, keep them, and end.")
def run(store: str | None, model: str | None, agent: str | None, signs_in: bool, as_json: bool) -> None:  # noqa: ARG001 - it speaks JSON
    """Run as an ACP agent on standard input and output, for editors.

    Your editor starts this command and speaks the Agent Client Protocol with it, one JSON object per line. With --agent,
    Hitherto runs between the editor and another ACP agent, records the sessions, and adds what the agent lacks, such as
    a session list. The command ends when its input ends.
    """
    from hitherto.acp.main import run_agent, sign_in

    if signs_in:
        sign_in()
        return
    if agent is not None and model is not None:
        raise click.UsageError("use either --agent or --model, not both: the other agent has its own model")
    run_agent(store, model, agent)


run.params += [JSON_OPTION, STORE_OPTION]
