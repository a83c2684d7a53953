"""The command line against a server does what it does against a store, and says the same."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitherto.errors import InvalidInput, StoreUnavailable
from hitherto.gateway.transport.limits import MESSAGE_BYTES
from hitherto.model import LOCAL, Draft, Image, Json, Principal
from hitherto.remote.address import parse_address, token_for
from hitherto.remote.connection import open_socket
from hitherto.service import Sessions
from tests.claude import transcripts
from tests.cli.shell import Done, Shell
from tests.gateway.servers import Server, serving
from tests.support.repositories import AGENT, PERSON, commit, edited, repository, write
from tests.support.waits import block_until, ended, line_of, output

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b1[78]\d{11}\b|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?")
DURATIONS = re.compile(r'("duration_ms": ?|^(?:[^\t\n]*\t){17})\d+|()\b\d+(?:\.\d)? s\b', re.MULTILINE)
CURSORS = re.compile(r'("cursor": ?|--cursor )"?[A-Za-z0-9_.=-]{20,}"?')


class Afar(Shell):
    """The same folder, whose commands talk to a server that serves the store in it."""

    def __init__(self, folder: Path, address: str, **environ: str) -> None:
        super().__init__(folder)
        self.address, self.environ = address, environ

    def variables(self) -> dict[str, str]:
        return {**super().variables(), "HITHERTO_STORE": self.address, **self.environ}


@pytest.fixture(scope="module")
def afar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Afar]:
    """A server as its user starts it; its token is found by itself."""
    folder = tmp_path_factory.mktemp("afar")
    here, data = Shell(folder), {"HITHERTO_DATA_DIR": str(folder / "data")}
    with here.start("serve", "--port", "0", "--json", env=data) as process:
        told = json.loads(line_of(process, "a server to say where it is"))
        yield Afar(folder, told["address"], **data)
        process.send_signal(signal.SIGTERM)
        output(process, "the server to end")
    assert process.returncode == 0


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with tokens of several people, whose engine does as a prompt says."""
    folder = tmp_path_factory.mktemp("crowd")
    everyone = {
        "ann": ("ann", ("read", "write", "run", "raw", "commands")),
        "ann-reads": ("ann", ("read",)),
        "ann-usual": ("ann", ("read", "write", "run")),
        "bob": ("bob", ("read", "write", "run")),
        "gone": ("ann", ("read",)),
    }
    with serving(f"sqlite:///{folder / 'sessions.db'}", tokens=everyone) as server:
        yield server, folder


def holder(crowd: tuple[Server, Path], name: str) -> Afar:
    server, folder = crowd
    return Afar(folder, f"http://{server.host}", HITHERTO_TOKEN=server.tokens[name].secret)


def test_which_session_wrote_a_line_is_told_by_a_server_that_sees_no_repository(
    afar: Afar, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "shop")
    made = afar.inside(lambda sessions: edited(sessions, folder))
    write(folder / "src/shop.py", (*PERSON, *AGENT))
    commit(folder)
    where, here = ("-C", str(folder), "--json"), Shell(afar.folder)
    for words in (
        ("why", "HEAD", *where),
        ("blame", "src/shop.py", *where),
        ("log", "src/shop.py", "--json"),
        ("log", "--limit", "1", "--json"),
    ):
        told = afar.ok(*words)
        assert made.session in told.out
        assert told == here.ok(*words)
    assert afar.ok("trace", *where).json["id"] == here.ok("trace", *where).json["id"]
    afar.inside(lambda sessions: sessions.delete(LOCAL, made.session))  # other tests see the same store


# The same story here and there


class Teller:
    """Runs commands one after the other and keeps what they said, with ids by the order in which they were seen."""

    def __init__(self, shell: Shell) -> None:
        self.shell, self.folder = shell, shell.folder
        self.told: list[tuple[tuple[str, ...], Done]] = []
        self._names: dict[str, str] = {}

    def do(self, *arguments: str, stdin: str | bytes = "") -> str:
        done = self.shell.invoke(*arguments, stdin=stdin)
        self.told.append((arguments, done))
        return done.out.strip()

    def comparable(self) -> list[Done]:
        """How each command ended, under what it was called with."""
        return [Done(done.code, self._plain(done.out), self._plain(done.err)) for _, done in self.told]

    def _plain(self, text: str) -> str:
        text = UUID.sub(lambda found: self._names.setdefault(found[0], f"id-{len(self._names)}"), text)
        text = DURATIONS.sub(r"\1\2a while", text)
        return CURSORS.sub("a cursor", TIMES.sub("a time", text)).replace(str(self.folder), "folder")


def story(teller: Teller) -> None:
    """Nearly everything that can be done from a shell."""
    do, folder = teller.do, teller.folder
    one = do("new", "--cwd", "/srv/parser", "--tag", "work", "--title", "Ünicode ✓")
    two = do("new", "--no-cwd", "--agent", "coder", "--channel", "chat", "--json")
    first = do("append", one, "Why does the parser fail?")
    second = do("append", one[:-1], "--role", "assistant", "-", stdin="It reads too far.\nBy one.\n")
    do("append", one, "more", "--json")
    do("append", one, stdin=b"\xff")
    do("append", json.loads(two)["id"], "hello from two")
    for options in (
        (),
        ("--json",),
        ("--tag", "work"),
        ("--limit", "1"),
        ("--agent", "coder", "--json"),
        ("--text", "ünic"),
    ):
        do("list", *options)
    pages: tuple[tuple[str, ...], ...] = (
        (),
        ("--json",),
        ("--limit", "1"),
        ("--after", first),
        ("--before", second),
        ("--around", second, "--limit", "2"),
        ("--all", "--json"),
        ("--view", "conversation"),
        ("--limit", "0"),
    )
    for page in pages:
        do("show", one, *page)
    for words in (
        ("parser",),
        ("parser", "--json"),
        ("reads", "far", "--limit", "1"),
        ("half",),
        ("nowhere",),
        ("title:ünicode",),
    ):
        do("search", *words)
    do("show", "0")
    do("rename", one, "Parser")
    do("rename", one, "x" * 600)
    do("tag", one, "later", "-r", "work", "--json")
    do("tag", one, "")
    do("pin", one)
    do("archive", one, json.loads(two)["id"])
    do("list", "--archived", "only")
    do("archive", "--undo", one)
    fork = do("fork", one, "--at", first, "--title", "A fork")
    do("show", fork, "--json")
    do("rewind", one, first)
    checkpoint = json.loads(do("checkpoints", one, "--json"))["checkpoints"][0]["id"]
    do("checkpoints", one)
    do("episodes", one)
    do("restore", one, checkpoint)
    do("fork", one, "--checkpoint", checkpoint, "--json")
    do("restore", one, "no-such")
    do("erase", fork, first, "--yes")
    do("show", fork)
    do("erase", fork, "no-such", "--yes")
    do("move", one, "/srv/elsewhere")
    do("move", "--folder", "/srv/elsewhere", "/srv/again")
    for format in ("jsonl", "json", "markdown", "html"):
        do("export", one, "--format", format)
    do("export", one, "--redact")
    exported, lines = folder / "out.jsonl", str(folder / "out.jsonl")
    do("export", "--all", "-o", lines)
    do("export", "--all", "-o", lines, "--force", "--json")
    do("import", lines)
    do("import", lines, "--json")
    do("import", lines, "--new-id")
    do("import", lines, "--untrusted")
    do("import", "-", stdin="{}\n")
    do("import", "-", stdin=exported.read_bytes().replace(b"reads too far", b"reads too near"))
    do("delete", one, "--yes")
    odd = exported.read_bytes().replace(b"reads too far", b"reads \\ud83d far").replace(b"Parser", b"Odd")
    do("import", "-", stdin=odd)
    do("import", "-", "--include-deleted", stdin=odd)
    do("show", one, "--json")
    do("show", one)
    do("search", "reads", "--json")
    do("export", one)
    do("delete", fork)
    do("delete", fork, "--yes", "--json")
    do("delete", fork, "--yes")
    do("import", "-", "--json", stdin=exported.read_bytes())
    do("show", "no such")
    do("resume", one)
    do("list", "--cursor", "nonsense")
    do("search", "parser", "--limit", "100000")
    do("new", "--cwd", "relative/../x")
    do("append", one, "")


def test_every_command_says_the_same_and_ends_alike_here_and_there(afar: Afar, tmp_path: Path) -> None:
    here, there = Teller(Shell(tmp_path)), Teller(afar)
    for teller in (here, there):
        story(teller)
    for (arguments, _), one, other in zip(here.told, here.comparable(), there.comparable(), strict=True):
        assert other == one, arguments
    assert {0, 2, 3, 4} <= {done.code for _, done in here.told}
    assert any(
        "reads \\ud83d far" in done.out for _, done in there.told
    )  # half of a surrogate pair is not lost


def test_transcripts_of_this_machine_are_taken_in_there_and_brought_back(afar: Afar, tmp_path: Path) -> None:
    session, projects = f"claude:{transcripts.session_id(1)}", tmp_path / "claude" / "projects"
    writer = transcripts.Writer(transcripts.session_id(1), str(tmp_path))
    writer.user("How do I prune a quince tree?")
    writer.say("In late winter.")
    transcript = writer.save(projects)
    afar = Afar(afar.folder, afar.address, **afar.environ, CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))
    assert afar.ok("sync").out == "1 transcript: 1 new, 0 updated, 0 unchanged.\n"
    assert afar.ok("sync", "--json").json["unchanged"] == 1
    assert session in afar.ok("search", "quince").out
    assert afar.ok("resume", session).out.endswith(f"claude --resume {transcripts.session_id(1)}\n")
    assert afar.invoke("append", session, "x").err.endswith("[read_only]\n")
    data = transcript.read_bytes()
    transcript.unlink()
    assert "1 kept after the agent deleted the file" in afar.ok("sync").out
    assert afar.ok("restore", session).out == f"{transcript}\n"
    assert transcript.read_bytes() == data


def test_what_needs_the_store_itself_says_so(afar: Afar) -> None:
    for command in (("doctor",), ("backup", "copy.db"), ("token", "list"), ("token", "create", "--owner", "x"),
                    ("page",), ("prune", "--keep", "1"), ("serve",), ("admin", "distribute")):  # fmt: skip
        done = afar.invoke(*command)
        assert (done.code, done.out) == (2, ""), command
        assert "server" in done.err, command
        assert done.err.endswith("[invalid_input]\n"), command
    told = afar.ok("stats", "--json").json["store"]
    assert told == {"kind": "server", "address": afar.address, "owner": "local"}


def test_a_session_there_does_not_go_on_in_an_agent_here(afar: Afar, tmp_path: Path) -> None:
    afar = Afar(afar.folder, afar.address, **afar.environ, CODEX_HOME=str(tmp_path / "codex"))
    own = afar.ok("new", "--cwd", str(tmp_path)).out.strip()
    afar.ok("append", own, "Hello")
    done = afar.invoke("continue", own, "--in", "codex")
    assert (done.code, done.out) == (2, "")
    assert "server" in done.err
    assert not (tmp_path / "codex").exists()


def test_changes_are_followed_as_they_happen(afar: Afar) -> None:
    before = afar.inside(lambda sessions: sessions.changes.newest(LOCAL))
    with afar.start("watch", "--after", str(before), "--json") as process:
        made = afar.ok("new").out.strip()
        assert json.loads(line_of(process, "the first change"))["session"] == made
        afar.ok("rename", made, "Watched")
        assert json.loads(line_of(process, "the next change"))["kind"] == "rename"
        process.send_signal(signal.SIGINT)
        _, err = output(process, "the command to end")
    assert (process.returncode, err.strip()) == (130, b"")


def test_long_sessions_go_there_and_come_back_in_pieces(afar: Afar, tmp_path: Path) -> None:
    """Longer than a message may be, and longer than a page of a history is."""

    async def work(sessions: Sessions) -> str:
        made, picture = await sessions.create(LOCAL), Image(mime_type="image/png", data="long" * 900_000)
        for number in range(10):
            await sessions.append(LOCAL, made.id, Draft(id=f"m{number}", role="user", parts=(picture,)))
        return made.id

    here = Shell(tmp_path)
    session = here.inside(work)
    exported = tmp_path / "long.jsonl"
    here.ok("export", session, "-o", str(exported))
    assert exported.stat().st_size > MESSAGE_BYTES
    assert afar.ok("import", str(exported)).out == f"Imported {session}: 10 messages\n"
    assert afar.ok("import", str(exported)).out == f"Skipped {session}: already imported\n"
    back = tmp_path / "back.jsonl"
    afar.ok("export", session, "-o", str(back))
    assert back.read_bytes() == exported.read_bytes()
    for options in (("--limit", "3"), ("--after", "m1", "--limit", "3")):
        pages = [shell.ok("show", session, "--json", *options).json for shell in (afar, here)]
        assert pages[0].pop("session")["message_count"] == pages[1].pop("session")["message_count"] == 10
        assert pages[0] == pages[1]


# Prompts


def test_a_prompt_is_answered_there_and_told_as_it_is_answered(crowd: tuple[Server, Path]) -> None:
    ann = holder(crowd, "ann-usual")
    done = ann.ok("prompt", "--json", "Hello").json
    assert (done["stop_reason"], done["text"]) == ("end_turn", "You said: Hello")
    script = json.dumps(["One ", {"thought": "hm"}, "two", {"notice": "careful"}, {"context": [5, 10]}])
    told = ann.ok("prompt", "--stream-json", "--session", done["session"], script)
    updates = [json.loads(line) for line in told.lines]
    kinds = [update["update"] for update in updates]
    assert {"stored", "said", "notice", "context"} < set(kinds)
    assert (kinds.count("stored"), kinds[-1]) == (2, "ended")
    entries = ann.ok("show", done["session"], "--json").json["entries"]
    assert [entry["role"] for entry in entries] == ["user", "assistant"] * 2
    assert ann.ok("chat", stdin="Hello\n/title Mine\n").out == "  You said: Hello\n"


def until_said(process: subprocess.Popen[bytes]) -> None:
    """Read what a prompt tells until the model has begun to speak."""
    while b'"said"' not in (line := line_of(process, "the first words")):
        assert line, "the command has ended"


def test_a_turn_that_fails_there_fails_here(crowd: tuple[Server, Path]) -> None:
    failed = holder(crowd, "ann-usual").invoke(
        "prompt", json.dumps(["So far. ", {"fail": "the line is dead"}])
    )
    assert failed.code == 6
    assert "the line is dead [model_unreachable]" in failed.err
    refused = holder(crowd, "ann-usual").invoke("prompt", "--mcp", "x=true", "Hello")
    assert (refused.code, refused.err.endswith("[invalid_input]\n")) == (2, True)


def test_an_interrupt_cancels_the_turn_there_and_keeps_what_was_said(crowd: tuple[Server, Path]) -> None:
    ann = holder(crowd, "ann-usual")
    with ann.start("prompt", "--stream-json", json.dumps(["Begun. ", {"hang": True}])) as process:
        until_said(process)
        process.send_signal(signal.SIGINT)
        out, _ = output(process, "the command to end")
    ended = json.loads(out.splitlines()[-1])
    assert (process.returncode, ended["stop_reason"]) == (130, "cancelled")
    entries = ann.ok("show", ended["session"], "--json").json["entries"]
    assert entries[-1]["parts"][0]["text"] == "Begun. "


CALL: Json = {"call": {"id": "c", "name": "run_command", "kind": "execute", "input": {"command": "ls"}}}


@pytest.mark.parametrize(
    ("name", "answers", "ran"),
    [
        ("ann", [("on't ever: ", "y\n")], True),
        ("ann", [("on't ever: ", "n\n")], False),
        ("ann-usual", [], False),
    ],
    ids=["allowed", "refused", "may not answer"],
)
def test_a_tool_is_asked_about_here_if_the_token_may_have_it_run(
    crowd: tuple[Server, Path], name: str, answers: list[tuple[str, str]], ran: bool
) -> None:
    shell = holder(crowd, name)
    script = json.dumps([CALL, {"permit": True}, {"result": "it has run"}])
    done = shell.terminal("prompt", script, answers=answers)
    assert done.code == 0, done
    newest = shell.ok("list", "--limit", "1", "--json").json["sessions"][0]["id"]
    assert ("it has run" in shell.ok("show", newest, "--json").out.partition('"role": "tool"')[2]) == ran


# Tokens, and servers that are not there


def test_a_wrong_token_a_revoked_one_and_one_without_the_right_are_refused(
    crowd: tuple[Server, Path],
) -> None:
    server, folder = crowd
    wrong = Afar(folder, f"http://{server.host}", HITHERTO_TOKEN="hth_" + "x" * 43)
    done = wrong.invoke("list")
    assert (done.code, "does not accept this token" in done.err) == (5, True)
    gone = holder(crowd, "gone")
    gone.ok("list")
    assert gone.inside(lambda sessions: sessions.tokens.revoke(server.tokens["gone"].id))
    assert gone.invoke("list") == done
    refused = holder(crowd, "ann-reads").invoke("new")
    assert (refused.code, "a token with the scope write" in refused.err) == (5, True)
    usual = holder(crowd, "ann-usual")
    session = usual.ok("new").out.strip()
    assert "a token with the scope raw" in usual.invoke("export", session).err
    usual.ok("export", session, "--redact")


def test_a_token_that_is_revoked_while_a_command_runs_ends_it(crowd: tuple[Server, Path]) -> None:
    server, folder = crowd

    async def issue(sessions: Sessions) -> tuple[str, str]:
        await sessions.create(Principal(owner="ann"))
        token, secret = await sessions.tokens.create("ann", scopes=["read"])
        return token.id, secret

    token, secret = Shell(folder).inside(issue)
    short = Afar(folder, f"http://{server.host}", HITHERTO_TOKEN=secret)
    with short.start("watch", "--after", "0", "--json") as process:
        assert line_of(process, "the first change")
        assert Shell(folder).inside(lambda sessions: sessions.tokens.revoke(token))
        _, err = output(process, "the command to end")
    assert (process.returncode, b"does not accept this token" in err) == (5, True)
    assert secret.encode() not in err


def test_somebody_elses_session_looks_missing(crowd: tuple[Server, Path]) -> None:
    ann, bob = holder(crowd, "ann"), holder(crowd, "bob")
    session = ann.ok("new", "--title", "Hers").out.strip()
    missing = session[:-1] + ("0" if session[-1] != "0" else "1")
    for command in (["show"], ["rename", "", "x"], ["delete", "", "--yes"], ["export"], ["fork"], ["watch"]):
        told = []
        for each in (session, missing):
            arguments = (
                [*command, each] if "" not in command else [each if part == "" else part for part in command]
            )
            done = bob.invoke(*arguments)
            told.append((done.code, done.out, done.err.replace(each, "it")))
        assert told[0] == told[1] == (3, "", "hitherto: no session 'it' [session_not_found]\n"), command
    assert session not in bob.ok("list").out


def test_a_server_that_leaves_in_the_middle_is_told_of_and_one_that_is_not_there_too(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'sessions.db'}", noisy=True) as server:
        shell = Afar(tmp_path, f"http://{server.host}", HITHERTO_TOKEN=server.tokens["ann"].secret)
        with shell.start("prompt", "--stream-json", json.dumps(["Begun. ", {"hang": True}])) as process:
            until_said(process)
            server.signal()
            # It ends politely: nothing new is taken.
            block_until(lambda: shell.invoke("list").code != 0, "the server to take nothing new")
            server.signal()
            ended(server.process, "the server to end")
            _, err = output(process, "the command to end")
    assert process.returncode == 5
    assert b"[store_unavailable]" in err
    assert b"Traceback" not in err
    done = shell.invoke("list")
    assert (done.code, done.err) == (
        5,
        f"hitherto: cannot reach {shell.address}: Connection refused; is `hitherto serve` running there?"
        " [store_unavailable]\n",
    )


def test_no_token_is_ever_printed(crowd: tuple[Server, Path]) -> None:
    server, folder = crowd
    secret = server.tokens["ann"].secret
    ann = holder(crowd, "ann")
    inside = Afar(folder, f"http://{secret}@{server.host}", HITHERTO_TOKEN=secret)
    asked = Afar(folder, f"http://{server.host}/?token={secret}", HITHERTO_TOKEN=secret)
    odd = Afar(folder, f"http://{server.host}", HITHERTO_TOKEN=f"{secret} and more")
    for shell, commands in (
        (
            ann,
            [
                ("list",),
                ("stats", "--json"),
                ("show", "none"),
                ("prompt", "-v", "Hello"),
                ("export", "--all"),
            ],
        ),
        (inside, [("list",), ("serve",), ("doctor", "--json")]),
        (asked, [("list",)]),
        (odd, [("list", "--json")]),
    ):
        for command in commands:
            done = shell.run(*command) if shell is ann else shell.invoke(*command)
            assert secret not in done.out + done.err, command
            assert shell is ann or done.code == 2, command
    assert secret not in inside.run("acp").err


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "http://192.0.2.1:8787", "http://127.0.0.1.example.org", "http://localhost.example.org",
     "http://[2001:db8::1]:8787", "http://", "https://", "http://127.0.0.1:port", "http://u:p@127.0.0.1"],
)  # fmt: skip
def test_no_token_goes_anywhere_in_the_clear(address: str) -> None:
    with pytest.raises(InvalidInput):
        parse_address(address)


async def test_a_redirect_is_not_followed() -> None:
    asked: list[bytes] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        where = b"http://127.0.0.1:%d/elsewhere" % port
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % where)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(StoreUnavailable, match="status 302"):
            await open_socket(parse_address(f"http://127.0.0.1:{port}"), "hth_secret")
    assert len(asked) == 1


def test_addresses_are_taken_as_people_write_them() -> None:
    for text, socket in {
        "https://hitherto.example.org": "wss://hitherto.example.org/ws",
        "https://example.org:8443/under/": "wss://example.org:8443/under/ws",
        "http://127.0.0.1:8787/": "ws://127.0.0.1:8787/ws",
        "http://[::1]:8787": "ws://[::1]:8787/ws",
        "http://localhost:8787": "ws://localhost:8787/ws",
    }.items():
        assert parse_address(text).socket == socket


def test_the_token_is_the_environments_else_a_files_else_the_servers_own(tmp_path: Path) -> None:
    near, far = parse_address("http://127.0.0.1:1"), parse_address("https://example.org")
    environ = {"HITHERTO_DATA_DIR": str(tmp_path)}
    with pytest.raises(InvalidInput, match="needs a token"):
        token_for(near, environ)
    _keep(tmp_path / "token-0123", "hth_other")
    assert token_for(near, environ) == "hth_other"
    _keep(tmp_path / "token", "hth_own")
    assert token_for(near, environ) == "hth_own"
    with pytest.raises(InvalidInput, match="needs a token"):
        token_for(far, environ)
    named = {**environ, "HITHERTO_TOKEN_FILE": str(_keep(tmp_path / "mine", "hth_mine"))}
    assert token_for(far, named) == token_for(near, named) == "hth_mine"
    assert token_for(far, {**named, "HITHERTO_TOKEN": "hth_set"}) == "hth_set"
    (tmp_path / "mine").chmod(0o644)
    with pytest.raises(InvalidInput, match="other users can read"):
        token_for(far, named)
    for broken in ("no such", "."):
        with pytest.raises(InvalidInput):
            token_for(far, {"HITHERTO_TOKEN_FILE": str(tmp_path / broken)})


def _keep(path: Path, secret: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(f"{secret}\n")
    return path
