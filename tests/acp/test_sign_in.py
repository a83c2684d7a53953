"""Signing in to a model provider, from an editor and in a terminal."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hitherto.acp.sign_in import SignIn, forget_sign_in, keep_sign_in, read_sign_in, use_sign_in
from hitherto.errors import InvalidInput
from tests.acp.wire import Agent, Refusal, environment, running, url_of
from tests.support.paths import ROOT

KEPT = SignIn(model="anthropic:claude-sonnet-5", variable="ANTHROPIC_API_KEY", key="sk-secret")
ASKED = b"(it is not shown): "
TERMINAL = {"auth": {"terminal": True}}


def signed_in(folder: Path, *answers: str) -> tuple[int, bytes]:
    """`hitherto acp --sign-in` with these answers, typed in a terminal: how it ends, and what it shows."""
    ours, theirs = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "hitherto", "acp", "--store", url_of(folder), "--sign-in"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=ROOT,
        env=environment(folder, {"HITHERTO_DATA_DIR": str(folder / "data")}),
    )
    with program:
        os.close(theirs)
        os.write(ours, "".join(f"{each}\n" for each in answers[:2]).encode())
        assert program.stderr is not None
        assert program.stdout is not None
        shown = b""
        while not shown.endswith(ASKED) and (more := os.read(program.stderr.fileno(), 4096)):
            shown += more
        if shown.endswith(ASKED):  # what is typed before that is thrown away
            os.write(ours, f"{answers[2]}\n".encode())
        shown += program.stdout.read() + program.stderr.read()
        os.close(ours)
    return program.returncode, shown


async def opened(agent: Agent, folder: Path) -> str:
    return str((await agent.call("session/new", {"cwd": str(folder), "mcpServers": []}))["sessionId"])


async def test_a_prompt_without_a_key_says_how_to_sign_in_and_signing_in_mends_it(tmp_path: Path) -> None:
    env = {"HITHERTO_DATA_DIR": str(tmp_path / "data")}
    command = ("-m", "hitherto", "acp", "--store", url_of(tmp_path))
    async with running(tmp_path, *command, env=env) as agent:
        greeting = await agent.initialize(TERMINAL)
        assert [method["id"] for method in greeting["authMethods"]] == ["sign-in", "environment"]
        assert greeting["authMethods"][0]["args"] == ["--sign-in"]
        assert greeting["agentCapabilities"]["auth"] == {"logout": {}}
        with pytest.raises(Refusal, match="hitherto acp --sign-in") as refused:
            await agent.prompt(await opened(agent, tmp_path), "Hello")
        assert (refused.value.code, refused.value.error["data"]["code"]) == (-32000, "model_missing")
        with pytest.raises(Refusal) as refused:
            await agent.call("authenticate", {"methodId": "environment"})
        assert refused.value.code == -32000
        with pytest.raises(Refusal) as refused:
            await agent.call("authenticate", {"methodId": "sign-in"})
        assert refused.value.code == -32602
    code, shown = signed_in(tmp_path, "anthropic", "", "sk-secret")
    assert code == 0
    assert b"sk-secret" not in shown
    assert stat.S_IMODE((tmp_path / "data" / "sign-in.json").stat().st_mode) == 0o600
    async with running(tmp_path, *command, env=env) as agent:
        greeting = await agent.initialize()
        assert [method["id"] for method in greeting["authMethods"]] == ["environment"]
        made = await agent.call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        (model,) = (option for option in made["configOptions"] if option["id"] == "model")
        assert KEPT.model in json.dumps(model["options"])
        assert await agent.call("authenticate", {"methodId": "environment"}) == {}
        assert await agent.call("logout", {}) == {}
        assert not (tmp_path / "data" / "sign-in.json").exists()
        with pytest.raises(Refusal) as refused:
            await agent.call("authenticate", {"methodId": "environment"})
        assert refused.value.code == -32000


@pytest.mark.parametrize("answers", [("nobody",), ("openai", "", "")])
def test_what_is_no_provider_or_no_key_keeps_nothing(tmp_path: Path, answers: tuple[str, ...]) -> None:
    assert signed_in(tmp_path, *answers)[0] != 0
    assert not (tmp_path / "data" / "sign-in.json").exists()


def test_a_key_of_the_environment_takes_precedence_and_stays(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "sk-mine"}
    keep_sign_in(tmp_path, KEPT)
    assert use_sign_in(tmp_path, environ) == KEPT
    forget_sign_in(tmp_path, environ)
    assert environ == {"ANTHROPIC_API_KEY": "sk-mine"}
    assert read_sign_in(tmp_path) is None


def test_a_file_that_others_can_read_or_that_is_damaged_is_refused(tmp_path: Path) -> None:
    keep_sign_in(tmp_path, KEPT)
    (tmp_path / "sign-in.json").chmod(0o640)
    with pytest.raises(InvalidInput, match="chmod 600"):
        read_sign_in(tmp_path)
    (tmp_path / "sign-in.json").chmod(0o600)
    (tmp_path / "sign-in.json").write_text("{")
    with pytest.raises(InvalidInput, match="sign in again"):
        read_sign_in(tmp_path)
