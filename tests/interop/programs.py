"""Agents of other makers, each in a home and a folder of its own, with a model on the loopback interface."""

from __future__ import annotations

import json
import os
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from tests.engines import provider
from tests.engines.provider import KEY, Provider, Step, ToolUse
from tests.interop import generate_server
from tests.interop.generate_server import GenerateServer
from tests.interop.packages import GEMINI, GOOSE, NODE, OPENCODE
from tests.support.waits import LIMIT

Json = dict[str, Any]
Said = list[tuple[str, str]]
# Nothing but the loopback interface is reached, whatever a program would like to fetch.
NOWHERE = "http://127.0.0.1:9"
SUBJECTS = ("barn", "lawn")
"""What conversations are about."""
RUN = "Run it"
COMMAND = "echo grass"
DELEGATE = "Let another one see to the barn"


class Listed(NamedTuple):
    """A session as the program lists it."""

    id: str
    title: str
    cwd: str
    messages: int | None = None
    """How many there are, if it tells."""


class Program(ABC):
    """See the module. `home` holds all that the program keeps."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None:
        self.work, self.home = folder / "work", folder / self.name
        for made in (self.work, self.home):
            made.mkdir()

    @abstractmethod
    def variables(self) -> dict[str, str]:
        """The part of the environment by which its sessions are found."""

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """The part by which it finds its model, and stays with it."""

    @abstractmethod
    def say(self, prompt: str, session: str | None = None) -> None:
        """One turn, in a new session or in one that is there."""

    @abstractmethod
    def listed(self) -> list[Listed]:
        """The sessions that it lists, newest first."""

    @abstractmethod
    def said(self, session: str) -> Said:
        """What was said in a session, as it tells it itself."""

    def begin(self, prompt: str) -> str:
        """A new session; its id."""
        before = {each.id for each in self.listed()}
        self.say(prompt)
        (made,) = {each.id for each in self.listed()} - before
        return made

    @property
    def environment(self) -> dict[str, str]:
        proxies = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
        own = {**self.variables(), **self.settings()}
        return {"HOME": str(self.home), "PATH": os.defpath, "LANG": "C.UTF-8", **proxies, **own}

    def run(self, *command: str | Path) -> str:
        """What a command says."""
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


class Opencode(Program):
    name = "opencode"
    binary = OPENCODE

    def __init__(self, folder: Path, model: Provider) -> None:
        super().__init__(folder)
        self.model = model
        options = {"baseURL": f"{model.url}/v1", "apiKey": KEY}
        offered = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"gpt": {}}}
        chosen = {"model": "stand-in/gpt", "small_model": "stand-in/gpt", "provider": {"stand-in": offered}}
        self._config = self.home / "stand-in.json"
        self._config.write_text(json.dumps({**chosen, "autoupdate": False, "share": "disabled"}))

    def variables(self) -> dict[str, str]:
        return {"XDG_DATA_HOME": str(self.home / "data")}

    def settings(self) -> dict[str, str]:
        places = {f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {
            **places,
            "OPENCODE_CONFIG": str(self._config),
            **{f"OPENCODE_DISABLE_{what}": "1" for what in off},
        }

    def say(self, prompt: str, session: str | None = None) -> None:
        self.run(OPENCODE, "run", *(("--session", session) if session else ()), prompt)

    def listed(self) -> list[Listed]:
        rows = json.loads(self.run(OPENCODE, "session", "list", "--format", "json") or "[]")
        return [Listed(row["id"], row["title"], row["directory"]) for row in rows]

    def said(self, session: str) -> Said:
        said: Said = []
        for message in json.loads(self.run(OPENCODE, "export", session))["messages"]:
            for part in message["parts"]:
                if part["type"] == "text":
                    said.append((message["info"]["role"], part["text"]))
                elif part["type"] == "tool":
                    state = part["state"]
                    said += [("command", state["input"]["command"]), ("output", output_in(state["output"]))]
        return said


class Goose(Program):
    name = "goose"
    binary = GOOSE

    def __init__(self, folder: Path, model: Provider) -> None:
        super().__init__(folder)
        self.model = model

    def variables(self) -> dict[str, str]:
        return {"GOOSE_PATH_ROOT": str(self.home)}

    def settings(self) -> dict[str, str]:
        chosen = {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o", "GOOSE_MODE": "auto"}
        model = {"OPENAI_HOST": self.model.url, "OPENAI_API_KEY": KEY}
        return {**chosen, **model, "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_ENABLED": "false"}

    def say(self, prompt: str, session: str | None = None) -> None:
        again = ("--resume", "--session-id", session) if session else ()
        self.run(GOOSE, "run", "--no-profile", "--with-builtin", "developer", *again, "--text", prompt)

    def listed(self) -> list[Listed]:
        rows = json.loads(self.run(GOOSE, "session", "list", "--format", "json"))
        return [Listed(row["id"], row["name"], row["working_dir"], row["message_count"]) for row in rows]

    def said(self, session: str) -> Said:
        told = self.run(GOOSE, "session", "export", "--session-id", session, "--format", "json")
        said: Said = []
        for message in json.loads(told)["conversation"]:
            for block in message["content"] if message["metadata"]["userVisible"] else ():
                if block["type"] == "text":
                    said.append((message["role"], block["text"]))
                elif block["type"] == "toolRequest":
                    said.append(("command", block["toolCall"]["value"]["arguments"]["command"]))
                elif block["type"] == "toolResponse":
                    said.append(("output", output_in(block["toolResult"]["value"]["content"][0]["text"])))
        return said


class Gemini(Program):
    """It tells of its sessions only what they are called; what was said in one is what it gives to its model again. What
    came of a call it gives twice."""

    name = "gemini"
    ROW = re.compile(r"^ +\d+\. (.*) \([^()]*\) \[([0-9a-f-]{36})\]$", re.MULTILINE)

    def __init__(self, folder: Path, model: GenerateServer) -> None:
        super().__init__(folder)
        self.model = model
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            # Else it deletes sessions that it has gone on with in another minute.
            "general": {"enableAutoUpdate": False, "sessionRetention": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def variables(self) -> dict[str, str]:
        return {"GEMINI_CLI_HOME": str(self.home)}

    def settings(self) -> dict[str, str]:
        return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": self.model.url}

    def say(self, prompt: str, session: str | None = None) -> None:
        again = ("--resume", session) if session else ()
        options = ("--skip-trust", "--approval-mode", "yolo", "--model", "gemini-2.5-pro")
        self.run(NODE, GEMINI, *options, *again, "--prompt", prompt)

    def listed(self) -> list[Listed]:
        told = self.run(NODE, GEMINI, "--skip-trust", "--list-sessions")
        return [Listed(id, title, str(self.work)) for title, id in self.ROW.findall(told)][::-1]

    def said(self, session: str) -> Said:
        """As it is told to the model with one more prompt, without that."""
        before = len(self.model.requests)
        self.say("And now?", session)
        said: Said = []
        for content in self.model.requests[before]["contents"]:
            for part in content["parts"]:
                if "functionCall" in part:
                    said.append(("command", part["functionCall"]["args"]["command"]))
                elif "functionResponse" in part:
                    said.append(("output", output_in(part["functionResponse"]["response"]["output"])))
                elif "text" in part and not part["text"].startswith("<session_context>"):
                    said.append(("assistant" if content["role"] == "model" else "user", part["text"]))
        return [each for each, before in zip(said[:-1], [None, *said], strict=False) if each != before]


def output_in(told: str) -> str:
    """What a command said, of what is told about it."""
    found = re.search(r"^Output: (.*)$", told, re.MULTILINE)
    return found[1] if found else told.strip()


@contextmanager
def running(name: str, folder: Path) -> Iterator[Program]:
    """One of the programs, with its model."""
    if name == Gemini.name:
        with generate_server.serving() as server:
            server.answer = _generated
            yield Gemini(folder, server)
    else:
        with provider.serving() as model:
            model.otherwise = answered
            yield {Opencode.name: Opencode, Goose.name: Goose}[name](folder, model)


def answered(body: Json) -> list[Step]:
    """The model's answer: a title to a program that wants one, a command if it is to run one, another agent's work if it is to
    delegate it, else its number."""
    first, *rest = body["messages"]
    if "title" in first["content"][:80]:
        return [entitled(json.dumps(rest))]
    if RUN in json.dumps(rest[-1]):
        names = [tool["function"]["name"] for tool in body["tools"]]
        (shell,) = {"bash", "shell"}.intersection(names)
        return [ToolUse(shell, {"command": COMMAND, "description": "Says grass"})]
    if DELEGATE in json.dumps(rest[-1]):
        task = {"description": "The lawn", "prompt": "Mow the lawn", "subagent_type": "general"}
        return [ToolUse("task", task)]
    return [f"Answer {len(rest)}."]


def _generated(body: Json) -> list[Json]:
    """The same on Gemini's wire."""
    *_, last = body["contents"]
    said = json.dumps(last)
    if "ONE sentence" in said:
        return [{"text": entitled(said)}]
    if RUN in said:
        return [{"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND}}}]
    return [{"text": f"Answer {len(body['contents'])}."}]


def entitled(said: str) -> str:
    """What a conversation is called that begins with one of `SUBJECTS`."""
    return next(f"About the {subject}" for subject in SUBJECTS if subject in said)
