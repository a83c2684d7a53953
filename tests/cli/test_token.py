"""`hitherto token`: made once, listed without its secret, revoked for good."""

from __future__ import annotations

import pytest

from hitherto.model import Token
from hitherto.values.scopes import MEANINGS, USUAL
from tests.cli.shell import Shell, plain


def known(shell: Shell, secret: str) -> Token | None:
    return shell.inside(lambda sessions: sessions.tokens.verify(secret))


def test_a_token_stands_alone_on_stdout_so_that_a_shell_can_take_it(shell: Shell) -> None:
    done = shell.run("token", "create", "--owner", "alice", "--label", "laptop")
    assert done.code == 0
    (secret,) = done.lines
    token = known(shell, secret)
    assert token is not None
    assert (token.owner, token.scopes, token.label) == ("alice", USUAL, "laptop")
    assert done.err == f"Token {token.id} for alice: read, write, run. Copy it now; it is not shown again.\n"


def test_a_token_is_printed_as_json_once(shell: Shell) -> None:
    done = shell.ok("token", "create", "--owner", "bob", "--scope", "admin", "--scope", "read", "--json")
    assert set(done.json) == {"token", "id", "owner", "scopes", "expires_at", "reach"}
    assert (done.json["owner"], done.json["scopes"], done.err) == ("bob", ["read", "admin"], "")
    token = known(shell, done.json["token"])
    assert token is not None
    assert token.id == done.json["id"]


def test_tokens_are_listed_without_their_secrets(shell: Shell) -> None:
    made = [shell.ok("token", "create", "--owner", name, "--json").json for name in ("alice", "bob")]
    shell.ok("token", "revoke", made[1]["id"])
    listed = shell.ok("token", "list")
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (each["id"], each["owner"], "read write run") for each in made
    ]
    assert [bool(row[4]) for row in rows] == [False, True]
    as_json = shell.ok("token", "list", "--json")
    assert [set(each) for each in as_json.json["tokens"]] == [set(Token.__struct_fields__)] * 2
    assert [line.split("\t")[0] for line in shell.ok("token", "list", "--owner", "bob").lines] == [
        made[1]["id"]
    ]
    on_terminal = plain(shell.terminal("token", "list").out)
    assert on_terminal.split()[:6] == ["ID", "CREATED", "OWNER", "SCOPES", "REVOKED", "LABEL"]
    for shown in (listed.out, as_json.out, on_terminal):
        assert not any(each["token"] in shown for each in made)


def test_a_token_may_be_restricted_and_replaced(shell: Shell) -> None:
    given = ("--expires", "90d", "--channel", "irc", "--channel", "sms", "--key", "agent:*:irc:*")
    made = shell.ok("token", "create", "--owner", "alice", *given, "--json").json
    assert (made["reach"]["channels"], made["reach"]["agents"]) == (["irc", "sms"], [])
    token = known(shell, made["token"])
    assert token is not None
    assert token.expires_at == made["expires_at"] > token.created_at
    row = shell.ok("token", "list").out.rstrip("\n").split("\t")
    assert (bool(row[6]), row[7], row[8]) == (True, "", "channels=irc,sms keys=agent:*:irc:*")
    assert plain(shell.terminal("token", "list").out).split()[6] == "EXPIRES"
    (secret,) = shell.ok("token", "rotate", made["id"]).lines
    assert known(shell, made["token"]) is None
    assert known(shell, secret) == token
    assert shell.invoke("token", "rotate", "no such").code == 3
    assert shell.invoke("token", "create", "--owner", "a", "--scope", "admin", "--agent", "x").code == 2


def test_a_store_without_tokens_says_so_to_people_only(shell: Shell) -> None:
    shell.ok("new")
    assert shell.ok("token", "list").out == ""
    assert shell.ok("token", "list", "--json").json == {"tokens": []}
    assert "No tokens." in shell.terminal("token", "list").out


def test_a_revoked_token_is_good_for_nothing(shell: Shell) -> None:
    made = shell.ok("token", "create", "--owner", "alice", "--json").json
    done = shell.ok("token", "revoke", made["id"])
    assert done.out == f"Revoked {made['id']}\n"
    assert known(shell, made["token"]) is None
    again = shell.invoke("token", "revoke", made["id"], "--json")
    assert (again.code, again.out) == (3, "")
    assert again.err.endswith("[not_found]\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create",),
        ("create", "--owner", "alice", "--scope", "root"),
        ("create", "--owner", ""),
        ("create", "--owner", "x" * 1_000),
        ("create", "--owner", "alice", "--label", "x" * 1_000),
        ("revoke",),
        ("steal",),
        (),
    ],
)
def test_wrong_usage_makes_no_token(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell.ok("new")
    done = shell.invoke("token", *arguments)
    assert (done.code, done.out) == (2, "")
    assert shell.ok("token", "list").out == ""


def test_the_help_tells_what_each_scope_is_for(shell: Shell) -> None:
    done = shell.ok("token", "--help")
    for scope, meaning in MEANINGS.items():
        assert f"{scope} " in done.out
        assert meaning in done.out
