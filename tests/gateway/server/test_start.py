"""`hitherto serve`: where it listens and where it does not, the token of its user, what it writes."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import hitherto
from hitherto.cli import app
from hitherto.errors import InvalidInput
from hitherto.gateway.auth.local_token import token_file
from hitherto.gateway.serve import ListenAddress, SafeFormatter, checked_address
from hitherto.ids import now_ms
from hitherto.model import LOCAL
from tests.gateway.servers import Reply, Server, Token
from tests.support.paths import ROOT
from tests.support.waits import LIMIT, block_until, in_time, line_of, or_killed, output

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there in the clear
SECRET = "hth_" + "Ab-_" * 10 + "xyz"
LIST = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'


def environment(folder: Path, **more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("HITHERTO_")}
    home = {"HOME": str(folder / "home"), "HITHERTO_DATA_DIR": str(folder / "data")}
    return {**own, **home, **more}


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "hitherto", "serve", *arguments],
        cwd=ROOT,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        umask=0,
    )


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """A server, and what it has told; it writes nothing else, and ends in good order."""
    process = start(folder, "--port", "0", "--json", *arguments)
    try:
        line = line_of(process, "a server to say where it is")
        assert line, output(process, "the end of a server that did not start")[1].decode()
        yield process, json.loads(line)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = output(process, "the server to end")
    assert (process.returncode, out, err) == (0, b"", b"")


def failed(folder: Path, *arguments: str) -> tuple[int, str]:
    """How a start that comes to nothing ends."""
    done = subprocess.run(
        [sys.executable, "-m", "hitherto", "serve", *arguments],
        cwd=ROOT,
        env=environment(folder),
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def server_of(process: subprocess.Popen[bytes], told: Any) -> Server:
    secret = Path(told["token_file"]).read_text().strip()
    port = int(told["address"].rsplit(":", 1)[1])
    return Server(process, port, {"ann": Token("", secret, "local")})


def test_the_first_start_makes_a_token_that_only_its_user_can_read(tmp_path: Path) -> None:
    with started(tmp_path) as (process, told):
        kept = Path(told["token_file"])
        assert kept == tmp_path / "data" / "token"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert kept.parent.stat().st_mode & 0o777 == 0o700
        assert server_of(process, told).post(LIST).json["result"]["total"] == 0
        for path in kept.parent.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path


def test_the_next_start_keeps_the_token(tmp_path: Path) -> None:
    secrets = []
    for _ in range(2):
        with started(tmp_path) as (_, told):
            secrets.append(Path(told["token_file"]).read_text())
    assert secrets[0] == secrets[1]
    (tmp_path / "data" / "token").write_text("something else")
    with started(tmp_path) as (process, told):
        assert server_of(process, told).post(LIST).status == 200


def test_each_store_has_a_token_file_of_its_own(tmp_path: Path) -> None:
    files = {token_file(tmp_path, store, "a").name for store in ("a", "b", "c")}
    assert "token" in files
    assert len(files) == 3
    with started(tmp_path, "--store", str(tmp_path / "other.db")) as (process, told):
        assert Path(told["token_file"]).name.startswith("token-")
        assert server_of(process, told).post(LIST).status == 200


def test_a_person_is_told_the_address_and_where_the_token_is(tmp_path: Path) -> None:
    process = start(tmp_path, "--port", "0")
    first = line_of(process, "a server to say where it is").decode()
    assert first.startswith("Hitherto is running at http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, err = output(process, "the server to end")
    assert process.returncode == 0
    secret = (tmp_path / "data" / "token").read_text().strip()
    assert secret not in first + out.decode() + err.decode()


def test_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    with started(tmp_path) as (_, told):
        port = int(told["address"].rsplit(":", 1)[1])
        heard = [line.split()[1] for path in ("tcp", "tcp6") for line in listening(path)]
        own = [address for address in heard if address.endswith(f":{port:04X}")]
        assert own == [f"0100007F:{port:04X}"]


def listening(path: str) -> list[str]:
    lines = Path("/proc/net", path).read_text().splitlines()[1:]
    return [line for line in lines if line.split()[3] == "0A"]


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""])
def test_beyond_this_machine_it_does_not_start_in_the_clear(tmp_path: Path, host: str) -> None:
    code, told = failed(tmp_path, "--host", host, "--port", "0")
    assert code == 2
    assert "--tls-cert" in told
    assert "--behind-proxy" in told
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_on_this_machine_it_may_start_anywhere(host: str) -> None:
    assert checked_address(ListenAddress(host=host)).host == host


def test_a_certificate_needs_its_key_and_both_their_files(tmp_path: Path) -> None:
    for place in (
        ListenAddress(tls_cert="x"),
        ListenAddress(tls_key="x"),
        ListenAddress(tls_cert=str(tmp_path / "no"), tls_key=str(tmp_path / "no")),
        ListenAddress(host=EVERYWHERE, origins=("example.org",)),
        ListenAddress(host=EVERYWHERE, origins=("http://hitherto.example.org",)),
        ListenAddress(
            host=EVERYWHERE, origins=("https://hitherto.example.org", "http://hitherto.example.org")
        ),
    ):
        with pytest.raises(InvalidInput):
            checked_address(place)


def test_a_bad_certificate_or_key_is_told_by_its_file(tmp_path: Path) -> None:
    cert, key = map(str, certificate(tmp_path))
    (tmp_path / "other").mkdir()
    other = str(certificate(tmp_path / "other")[1])
    bad = str(tmp_path / "bad.pem")
    Path(bad).write_text("no certificate")
    locked = str(tmp_path / "locked.pem")
    Path(locked).write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    checked_address(ListenAddress(tls_cert=cert, tls_key=key))
    for given, told in (
        ((bad, key), f"{bad} is not a PEM certificate"),
        ((cert, bad), f"{bad} is not a PEM private key without a password"),
        ((cert, locked), f"{locked} is not a PEM private key without a password"),
        ((cert, other), f"the key in {other} does not match the certificate in {cert}"),
    ):
        with pytest.raises(InvalidInput) as refused:
            checked_address(ListenAddress(tls_cert=given[0], tls_key=given[1]))
        assert refused.value.message == told


def test_a_port_in_use_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = failed(tmp_path, "--port", str(port))
    assert code == 2
    assert told.startswith(f"hitherto: cannot listen on 127.0.0.1 port {port}: ")
    assert told.count("\n") == 1


def test_a_store_that_cannot_be_opened_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    code, told = failed(tmp_path, "--port", "0", "--store", str(tmp_path / "file" / "s.db"))
    assert (code, told.count("\n")) == (5, 1)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by nobody else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    cert, kept = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kept.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return cert, kept


def fetched(address: str, trusted: Path, **headers: str) -> Reply:
    context = ssl.create_default_context(cafile=str(trusted))
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - an address of this test's
    with in_time(address), urllib.request.urlopen(request, context=context, timeout=LIMIT) as answer:  # noqa: S310
        return Reply(answer.status, dict(answer.headers.items()), answer.read())


def test_with_tls_it_may_be_reached_from_elsewhere(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    given = ("--host", EVERYWHERE, "--name", "localhost", "--tls-cert", str(cert), "--tls-key", str(key))
    with started(tmp_path, *given) as (_, told):
        port = int(told["address"].rsplit(":", 1)[1])
        assert told["address"] == f"https://localhost:{port}"
        secret = Path(told["token_file"]).read_text().strip()
        known = {"Authorization": f"Bearer {secret}", "Origin": f"https://127.0.0.1:{port}"}
        reply = fetched(f"https://127.0.0.1:{port}/metrics", cert, **known)
        assert reply.status == 200
        with pytest.raises(urllib.error.HTTPError, match="403"):
            fetched(f"https://127.0.0.1:{port}/metrics", cert, Origin=f"http://127.0.0.1:{port}")
        variables = {"HITHERTO_STORE": f"https://127.0.0.1:{port}", "HITHERTO_TOKEN": secret}
        trusting = CliRunner().invoke(app, ["new"], env={**variables, "HITHERTO_CA_FILE": str(cert)})
        assert (trusting.exit_code, trusting.stderr) == (0, "")
        doubting = CliRunner().invoke(app, ["new"], env=variables)
        assert (doubting.exit_code, "is not valid: self-signed certificate" in doubting.stderr) == (5, True)


def test_old_sessions_are_put_away_if_somebody_asks_for_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'data' / 'hitherto.db'}"

    async def made(now: Callable[[], int]) -> str:
        async with hitherto.open(store, now=now) as sessions:
            return (await sessions.create(LOCAL)).id

    old, fresh = asyncio.run(made(lambda: 1_000_000_000_000)), asyncio.run(made(now_ms))
    process = start(tmp_path, "--port", "0", "--json", "--archive-after", "90d")
    server = server_of(process, json.loads(line_of(process, "a server to say where it is")))
    block_until(
        lambda: server.call("session.get", {"session_id": old})["status"] == "archived",
        "the old session to be put away",
    )
    assert server.call("session.get", {"session_id": fresh})["status"] == "idle"
    process.send_signal(signal.SIGTERM)
    assert output(process, "the server to end")[1] == b"hitherto: archived 1 old sessions\n"


# What is written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"token {SECRET} seen", "token (secret) seen"),
        (f"Authorization: Bearer {SECRET}", "Authorization: (secret)"),
        ("two\nlines\r\nof it", "two lines  of it"),
        ("\x1b[2Jcleared\x07 \u202etxt", " [2Jcleared   txt"),
    ],
)
def test_what_is_logged_holds_no_secret_and_forges_no_line(text: str, written: str) -> None:
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "%s", (text,), None)
    assert SafeFormatter("%(message)s").format(record) == written


def test_hostile_requests_leave_nothing_in_the_log(tmp_path: Path) -> None:
    with started(tmp_path) as (process, told):
        server = server_of(process, told)
        with server.plain() as connection:
            connection.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
            with in_time("an answer"):
                connection.recv(1_000)
        server.request("GET", "/x?token=canary", [("X-Canary", "canary")])
        server.post(b'{"canary')
        server.upgrade("/ws", [("Authorization", "Bearer canary")])
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        with or_killed(process, "the server to end"):
            logged = process.stderr.read()
        assert b"canary" not in logged
        assert logged in (b"", b"hitherto: Invalid HTTP request received.\n")
