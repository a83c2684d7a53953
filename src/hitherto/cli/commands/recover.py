"""`hitherto recover`."""

from __future__ import annotations

import click

from hitherto import composition
from hitherto.cli.command import JSON_OPTION, examples_text
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.output import Output, progress
from hitherto.presentation import formats
from hitherto.settings import store_url

EXAMPLES = ("hitherto recover ~/sessions.db ~/recovered.db", "hitherto list --store ~/recovered.db")


@click.command(epilog=examples_text(EXAMPLES))
@click.argument("store", type=click.Path())
@click.argument("new", type=click.Path())
def run(store: str, new: str, as_json: bool) -> int:
    """Copy what can be read of a damaged store into a new store, and say what is missing.

    STORE is the damaged SQLite file; it stays as it is. NEW must not exist yet. The exit code is 1 if anything is missing.
    """
    out = Output(as_json=as_json)
    with progress("Recovering", None):
        done = composition.recover(store_url(store), store_url(new))
    if out.json:
        out.document({"sessions": done.sessions, "messages": done.messages, "missing": done.missing})
    else:
        for each in done.missing:
            out.row("missing", each)
        told = f"{formats.counted(done.sessions, 'session')}, {formats.counted(done.messages, 'message')}"
        out.note(f"Recovered {told} into {new}")
    return exit_codes.FAILED if done.missing else exit_codes.OK


run.params += [JSON_OPTION]
