"""The real Codex goes on from what was written, and what it writes is read as it reads it itself: `make interop`.

It is the program inside of the package `@openai/codex`, run against a stand-in of its service on the loopback interface.
What it asks the model is what it takes for the conversation.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitherto.model import CONTINUES
from hitherto.presentation.plain_conversation import opening
from hitherto.sources.codex.source import CodexSource
from tests.cli.shell import Shell
from tests.interop import continuing
from tests.interop.continuing import AGAIN, ASKED, LOOKED, LOOKS, PAINTED, PICTURE, SUMMARY, continued
from tests.interop.packages import CODEX, NODE, install
from tests.interop.responses_server import Json, ResponsesServer, call, message, serving
from tests.sources.census import assert_counted
from tests.support.waits import LIMIT

Said = list[tuple[str, str]]
# Nothing but the loopback interface is reached, whatever the program would like to fetch.
NOWHERE = "http://127.0.0.1:9"
CONFIG = """
model = "gpt-5"
model_provider = "stand-in"
check_for_update_on_startup = false

[model_providers.stand-in]
name = "stand-in"
base_url = "{url}"
wire_api = "responses"
env_key = "STAND_IN_KEY"

[analytics]
enabled = false
"""
INJECTED = ("<environment_context>", "<skills_instructions>")

pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


class CommandLine:
    """The program in a home and a folder of its own."""

    def __init__(self, folder: Path, server: ResponsesServer) -> None:
        self.server = server
        self.cwd, self.home = folder / "work", folder / "codex"
        for made in (self.cwd, self.home):
            made.mkdir()
        (self.home / "config.toml").write_text(CONFIG.format(url=server.url))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "STAND_IN_KEY": "sk-test",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1",
        }

    def run(self, *options: str) -> list[Json]:
        """One turn; the events that the program tells of."""
        done = subprocess.run(
            [NODE, CODEX, "exec", *options],
            env=self.environment,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def begin(self, prompt: str) -> str:
        """A new session; its id."""
        events = self.run("--skip-git-repo-check", "--json", prompt)
        return str(events[0]["thread_id"])

    def resume(self, name: str, prompt: str) -> Said:
        """Go on with a session; what the model was told, up to and including the prompt."""
        before = len(self.server.requests)
        self.run("resume", "--skip-git-repo-check", "--json", name, prompt)
        return conversation(self.server.requests[before])

    def ask(self, method: str, **params: Any) -> Json:
        """What the program's own server answers."""
        with subprocess.Popen(
            [NODE, CODEX, "app-server"],
            env=self.environment,
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            client = {"clientInfo": {"name": "stand-in", "version": "1"}}
            for number, (name, given) in enumerate([("initialize", client), (method, params)]):
                process.stdin.write(json.dumps({"id": number, "method": name, "params": given}) + "\n")
                process.stdin.flush()
                answers = map(json.loads, process.stdout)
                answer: Json = next(each for each in answers if each.get("id") == number)
            process.stdin.close()
        result: Json = answer["result"]
        return result


def conversation(request: Json) -> Said:
    """What was said, of a request to the model: without what the program adds to it each time anew."""
    said = [
        (item["role"], text_of(item["content"])) for item in request["input"] if item["type"] == "message"
    ]
    return [(role, text) for role, text in said if role != "developer" and not text.startswith(INJECTED)]


def text_of(content: list[Json]) -> str:
    return "\n".join(piece.get("text", "") for piece in content)


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    install()


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    with serving() as server:
        server.answer = lambda request: [message(f"Answer {len(conversation(request))}.")]
        made = CommandLine(tmp_path, server)
        monkeypatch.setenv("CODEX_HOME", str(made.home))
        monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
        yield made


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_a_session_continued_in_codex_is_resumed_with_the_earlier_turns(
    codex: CommandLine, shell: Shell
) -> None:
    told = continued(shell, continuing.made(shell, codex.cwd), "codex")
    assert told["fidelity"] == "replayed"
    assert codex.resume(told["command"][-1], "And now?") == [
        ("user", opening("Hitherto")),
        ("user", f"\n{ASKED}"),
        ("assistant", LOOKS),
        ("assistant", LOOKED),
        ("user", AGAIN),
        ("assistant", PAINTED),
        ("user", "And now?"),
    ]
    items = codex.server.requests[-1]["input"]
    called, answered = (item for item in items if item["type"].startswith("function_call"))
    assert (called["name"], json.loads(called["arguments"])) == ("exec_command", {"cmd": "ls"})
    assert answered["call_id"] == called["call_id"]
    assert answered["output"].endswith("barn.txt")
    assert PICTURE in json.dumps(items)


def test_a_session_continued_in_codex_is_listed_and_shown_there(codex: CommandLine, shell: Shell) -> None:
    told = continued(shell, continuing.made(shell, codex.cwd), "codex")
    (listed,) = codex.ask("thread/list")["data"]
    assert (listed["id"], listed["cwd"]) == (told["command"][-1], str(codex.cwd))
    assert listed["preview"] == ASKED
    assert shown(codex, listed["id"]) == [
        ("user", f"{ASKED}\n"),
        ("assistant", LOOKS),
        ("assistant", LOOKED),
        ("user", AGAIN),
        ("assistant", PAINTED),
    ]


def test_a_summary_is_what_codex_begins_with(codex: CommandLine, shell: Shell) -> None:
    told = continued(shell, continuing.made(shell, codex.cwd, compacted=True), "codex")
    assert told["fidelity"] == "summarised"
    assert codex.resume(told["command"][-1], "And now?") == [
        ("user", SUMMARY),
        ("user", opening("Hitherto")),
        ("user", AGAIN),
        ("assistant", PAINTED),
        ("user", "And now?"),
    ]


def test_what_codex_adds_is_taken_in_behind_what_was_given_to_it(codex: CommandLine, shell: Shell) -> None:
    session = continuing.made(shell, codex.cwd)
    told = continued(shell, session, "codex")
    codex.resume(told["command"][-1], "And now?")
    assert shell.ok("sync", "--json").json["updated"] == 1
    assert taken_in(shell, told["continued"])[-2:] == [("user", "And now?"), ("assistant", "Answer 6.")]
    there = shell.ok("show", told["continued"], "--json").json["session"]["meta"]
    assert there[CONTINUES] == session


def test_sessions_of_codex_are_read_as_it_lists_and_shows_them(codex: CommandLine, shell: Shell) -> None:
    names = [codex.begin("Paint the barn"), codex.begin("Mow the lawn")]
    codex.resume(names[0], "Blue instead")
    used = [call("exec_command", {"cmd": "echo grass"})]
    codex.server.answer = lambda request: [message("Done.")] if "grass\\n" in json.dumps(request) else used
    codex.resume(names[1], "Run it")
    report = shell.ok("sync", "--json").json
    assert (report["new"], report["damaged_records"], report["unknown_records"]) == (2, 0, 0)
    listed = {each["id"]: each for each in codex.ask("thread/list", sourceKinds=["exec"])["data"]}
    assert set(listed) == set(names)
    for name, theirs in listed.items():
        ours = shell.ok("show", f"codex:{name}", "--json").json["session"]
        assert (ours["title"], ours["cwd"], ours["meta"]["path"]) == (
            theirs["name"] or theirs["preview"],
            theirs["cwd"],
            theirs["path"],
        )
        assert ours["created_at"] // 1000 == theirs["createdAt"]
        assert taken_in(shell, f"codex:{name}") == shown(codex, name)


def test_pictures_that_it_was_given_or_looked_at_are_kept_and_every_record_is_counted(
    codex: CommandLine, shell: Shell
) -> None:
    path = codex.cwd / "dot.png"
    path.write_bytes(base64.b64decode(PICTURE))
    look = call("view_image", {"path": str(path)})
    codex.server.answer = lambda request: [look if "LOOK" in str(request["input"][-1]) else message("A dot.")]
    begun = codex.run("--skip-git-repo-check", "--json", "What is it?", "-i", str(path))
    codex.resume(begun[0]["thread_id"], "LOOK again")
    shell.ok("sync")
    parts = [
        part
        for entry in shell.ok("show", f"codex:{begun[0]['thread_id']}", "--all", "--json").json["entries"]
        for part in entry["parts"]
    ]
    pictures = [part for part in parts if part["type"] == "image"]
    results = [part["content"] for part in parts if part["type"] == "tool_result"]
    assert [part["data"] for part in (*pictures, *results[0])] == [PICTURE, PICTURE]
    source = CodexSource(codex.home)
    for found in source.find():
        assert_counted(found, source.read(found, None))


def taken_in(shell: Shell, session: str) -> Said:
    """What was said in a session, as we have it; of commands what they were."""
    said: Said = []
    for entry in shell.ok("show", session, "--all", "--json").json["entries"]:
        for part in entry["parts"]:
            if part["type"] == "text":
                said.append((entry["role"], part["text"]))
            elif part["type"] == "tool_call":
                said.append(("command", part["input"]["cmd"]))
            elif part["type"] == "tool_result":
                said.append(("output", part["content"][0]["text"].strip()))
    return said


def shown(codex: CommandLine, name: str) -> Said:
    """The same, as the program shows it."""
    said: Said = []
    for turn in codex.ask("thread/read", threadId=name, includeTurns=True)["thread"]["turns"]:
        for item in turn["items"]:
            if item["type"] == "userMessage":
                said.append(("user", text_of(item["content"])))
            elif item["type"] == "agentMessage":
                said.append(("assistant", item["text"]))
            elif item["type"] == "commandExecution":
                # It is shown with the shell around it.
                command = shlex.split(item["command"])[-1]
                said += [("command", command), ("output", (item["aggregatedOutput"] or "").strip())]
    return said
