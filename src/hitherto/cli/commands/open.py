"""`hitherto open`."""

from __future__ import annotations

from urllib.parse import quote

import click

from hitherto.cli.command import command, complete_session
from hitherto.cli.commands.page import sign_in_link
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal.browser import open_link
from hitherto.cli.terminal.output import Output
from hitherto.errors import NotFound
from hitherto.gateway.server.running import running_address
from hitherto.service import Sessions
from hitherto.settings import read_settings


@command("hitherto open @last", "hitherto open %3", "hitherto open")
@click.argument("session", required=False, shell_complete=complete_session)
async def run(sessions: Sessions, out: Output, *, session: str | None) -> None:
    """Open a session on the web page, or without SESSION the page itself, in your browser.

    The server has to run on this machine: start it with `hitherto serve`. The link signs you in. Without a browser, it is
    printed; it works once and expires after ten minutes.
    """
    folder = read_settings().data_dir
    if running_address(folder, sessions.admin.store_id) is None:
        raise NotFound("no server of this store runs on this machine: start one with `hitherto serve`")
    path = "/" if session is None else f"/s/{quote(await named_session(sessions, session), safe=':')}"
    link = await sign_in_link(sessions, path=path)
    if out.json:
        out.document({"page": link})
    elif not open_link(link, folder):
        out.line(link)
