"""`hitherto serve` and `hitherto page` print addresses that sign in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.gateway.page.test_signin import OPENED, post
from tests.gateway.server.test_start import environment, server_of, started
from tests.gateway.servers import Reply, Server
from tests.support.paths import ROOT
from tests.support.waits import LIMIT


def page(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "page", *arguments)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hitherto", *arguments],
        cwd=ROOT,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def opened(server: Server, address: str) -> Reply:
    """The list, as somebody sees it who opens this address."""
    place, _, code = address.partition("/#code=")
    assert place == f"http://127.0.0.1:{server.port}"
    reply = post(server, "/signin", {"code": code})
    assert reply.status == 200
    cookie = reply.headers["set-cookie"].partition(";")[0]
    return server.request("GET", "/", {**OPENED, "Cookie": cookie})


def test_the_address_that_a_server_prints_signs_in_and_so_does_that_of_the_command(tmp_path: Path) -> None:
    with started(tmp_path) as (process, told):
        server = server_of(process, told)
        assert b"No sessions yet" in opened(server, told["page"]).body
        again = page(tmp_path, "--address", told["address"])
        assert again.stderr == ""
        assert b"No sessions yet" in opened(server, again.stdout.strip()).body
        asked = json.loads(page(tmp_path, "--json", "--address", f"{told['address']}/").stdout)
        assert b"No sessions yet" in opened(server, asked["page"]).body


def test_without_a_server_there_is_nothing_to_open(tmp_path: Path) -> None:
    assert run(tmp_path, "new").returncode == 0
    done = page(tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "hitherto serve" in done.stderr
