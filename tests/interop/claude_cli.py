"""The real command line goes on from what was written: `make interop`.

It is the program inside of the `claude-agent-sdk` package, run against a stand-in of its service on the loopback
interface. What it asks the model is what it takes for the conversation.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest

import hitherto
from hitherto.claude import HithertoSessionStore
from hitherto.claude.edit import rename_session, tag_session
from hitherto.claude.fork import fork_session
from hitherto.claude.list import get_session_info
from hitherto.claude.messages import get_session_messages
from hitherto.model import CONTINUES
from hitherto.presentation.plain_conversation import opening
from tests.claude.transcripts import Writer, session_id
from tests.cli.shell import Shell
from tests.interop import continuing
from tests.interop.continuing import AGAIN, ASKED, LOOKED, LOOKS, PAINTED, PICTURE, SUMMARY, continued
from tests.interop.messages_server import Json, MessagesServer, serving
from tests.support.homes import Home
from tests.support.waits import LIMIT

PROGRAM = Path(sdk.__file__).parent / "_bundled" / "claude"
QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
)
REMINDER = "<system-reminder>"
Said = list[tuple[str, list[str]]]

pytestmark = pytest.mark.limit(1_800)  # programs that take seconds to start, many times


class CommandLine:
    """The program in a home and a folder of its own."""

    def __init__(self, folder: Path, server: MessagesServer) -> None:
        self.server = server
        self.cwd = folder / "work"
        self.home = folder / "home"
        for made in (self.cwd, self.home):
            made.mkdir()

    @property
    def projects(self) -> Path:
        return self.home / ".claude" / "projects"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": "sk-test",
            **dict.fromkeys(QUIET, "1"),
        }

    def run(self, prompt: str, *options: str) -> Json:
        """One turn; what the program says about it."""
        done = subprocess.run(
            [PROGRAM, "-p", prompt, "--output-format", "json", "--model", "claude-sonnet-4-5", *options],
            env=self.environment,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said: Json = json.loads(done.stdout)
        return said

    def resume(self, name: str, prompt: str) -> Said:
        """Go on with a session; what the model was told, up to and including the prompt."""
        before = len(self.server.requests)
        self.run(prompt, "--resume", name, "--allowedTools", "Bash")
        return conversation(self.server.requests[before])


def conversation(request: Json) -> Said:
    """What was said, of a request to the model: without what the program adds to it each time anew."""
    said: Said = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [text for block in blocks if not (text := told(block)).startswith(REMINDER)]
        if texts:
            said.append((message["role"], texts))
    return said


def told(block: Json) -> str:
    if block["type"] == "text":
        return str(block["text"]).strip()
    shown = {name: value for name, value in block.items() if name != "cache_control"}
    return json.dumps(shown, sort_keys=True)


def answer(request: Json) -> list[Json]:
    """The model's part: a tool for who asks for it, else an answer that tells how much was said before."""
    last = request["messages"][-1]["content"]
    text = last if isinstance(last, str) else " ".join(map(str, last))
    if "RUN" in text and "tool_result" not in text:
        names = ("a", "b") if "RUN BOTH" in text else ("a",)
        number = len(request["messages"])
        return [
            {
                "type": "tool_use",
                "id": f"toolu_{number}{name}",
                "name": "Bash",
                "input": {"command": f"echo {name}"},
            }
            for name in names
        ]
    return [{"type": "text", "text": f"Answer {len(request['messages'])}."}]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    with serving() as server:
        server.answer = answer
        made = CommandLine(tmp_path, server)
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(made.home / ".claude"))
        monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
        yield made


@pytest.fixture
def talk(cli: CommandLine) -> str:
    """A session of several turns, with tools, and with characters that end lines elsewhere."""
    name: str = cli.run("First \u2028 question \u0085 here")["session_id"]
    cli.resume(name, "RUN it")
    cli.resume(name, "RUN BOTH of them")
    return name


def test_a_fork_is_resumed_with_the_whole_conversation(cli: CommandLine, talk: str) -> None:
    fork = fork_session(talk).session_id
    theirs = cli.resume(talk, "And now?")
    assert cli.resume(fork, "And now?") == theirs
    assert len(theirs) >= 9
    assert theirs[0][1][-1] == "First \u2028 question \u0085 here"
    assert theirs[-1] == ("user", ["And now?"])


def test_a_fork_up_to_a_message_is_resumed_from_there(cli: CommandLine, talk: str) -> None:
    whole = cli.resume(talk, "And now?")
    answers = [message for message in get_session_messages(talk) if message.type == "assistant"]
    spoken = [message for message in answers if message.message["content"][0]["type"] == "text"]
    ends = [
        place for place, (role, texts) in enumerate(whole) if role == "assistant" and "Answer" in texts[0]
    ]
    # The answer to the last prompt came after it was asked.
    for message, end in zip(spoken[:-1], ends, strict=True):
        fork = fork_session(talk, up_to_message_id=message.uuid).session_id
        assert cli.resume(fork, "Go on") == [*whole[: end + 1], ("user", ["Go on"])]


def test_a_fork_of_a_compacted_session_is_resumed_with_what_was_kept(cli: CommandLine, talk: str) -> None:
    cli.server.answer = lambda _: [{"type": "text", "text": "<summary>They ran things.</summary>"}]
    cli.run("/compact", "--resume", talk)
    cli.server.answer = answer
    fork = fork_session(talk).session_id
    theirs = cli.resume(talk, "And now?")
    assert "They ran things." in json.dumps(theirs)
    assert "Answer" in json.dumps(theirs)
    assert cli.resume(fork, "And now?") == theirs


def test_a_fork_at_a_message_that_a_compaction_kept_ends_there(cli: CommandLine) -> None:
    writer = Writer(session_id(1), str(cli.cwd))
    made = [writer.user("q0"), writer.say("a0"), writer.user("q1"), writer.say("a1"), writer.user("q2")]
    made.append(writer.say("a2"))
    writer.compact(keep=[record["uuid"] for record in made[1:]], summary="In short.")
    writer.user("q3")
    writer.say("a3")
    writer.save(cli.projects)
    fork = fork_session(writer.session_id, up_to_message_id=made[3]["uuid"]).session_id
    said = cli.resume(fork, "Go on")
    assert [texts for _, texts in said] == [["In short."], ["a0"], ["q1"], ["a1"], ["Go on"]]


@pytest.mark.parametrize(("branch", "end"), [("sdk", "two"), ("cli", "one")])
def test_the_branch_that_was_forked_is_resumed(cli: CommandLine, branch: Any, end: str) -> None:
    writer = Writer(session_id(1), str(cli.cwd))
    writer.user("begin")
    start = writer.say("begun")
    writer.user("one")
    one = writer.say("end of one")
    writer.last = start["uuid"]
    writer.user("two")
    writer.say("end of two")
    writer.last_prompt("one", one["uuid"])
    writer.save(cli.projects)
    fork = fork_session(writer.session_id, branch=branch).session_id
    said = cli.resume(fork, "Go on")
    assert [texts for _, texts in said] == [["begin"], ["begun"], [end], [f"end of {end}"], ["Go on"]]


def test_a_fork_of_a_transcript_without_times_is_found(cli: CommandLine) -> None:
    writer = Writer(session_id(1), str(cli.cwd))
    for record in (writer.user("ask"), writer.say("answer")):
        del record["timestamp"]
    writer.save(cli.projects)
    said = cli.resume(fork_session(writer.session_id).session_id, "Go on")
    assert [texts for _, texts in said] == [["ask"], ["answer"], ["Go on"]]


def test_title_and_tag_survive_turns_of_the_command_line(cli: CommandLine, talk: str) -> None:
    rename_session(talk, "The barn")
    tag_session(talk, "later")
    for prompt in ("RUN it again", "And now?"):
        cli.resume(talk, prompt)
        for read in (get_session_info, sdk.get_session_info):
            info = read(talk)
            assert info is not None
            assert (info.custom_title, info.tag) == ("The barn", "later")


def test_a_torn_tail_that_was_sealed_costs_the_command_line_nothing(cli: CommandLine, talk: str) -> None:
    before = cli.resume(talk, "And now?")
    (path,) = cli.projects.glob(f"*/{talk}.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"assistant","uuid":"torn","mess')
    rename_session(talk, "sealed")
    after = cli.resume(talk, "And then?")
    assert after[: len(before)] == before
    assert after[-1] == ("user", ["And then?"])
    info = get_session_info(talk)
    assert info is not None
    assert info.custom_title == "sealed"


async def test_a_session_kept_in_hitherto_is_resumed_where_its_files_are_not(
    cli: CommandLine, shared_home: Home, tmp_path: Path
) -> None:
    async def turn(prompt: str, name: str | None) -> str:
        """One turn in a home that has seen none before; the session's id."""
        home = tmp_path / prompt.replace(" ", "-")
        home.mkdir()
        options = sdk.ClaudeAgentOptions(
            session_store=HithertoSessionStore(sessions),
            resume=name,
            cwd=cli.cwd,
            model="claude-sonnet-4-5",
            env={**cli.environment, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")},
        )
        ended = [
            one
            async for one in sdk.query(prompt=prompt, options=options)
            if isinstance(one, sdk.ResultMessage)
        ]
        return ended[-1].session_id

    async with hitherto.open(shared_home.url) as sessions:
        name = await turn("Paint the barn", None)
        assert await turn("Blue instead", name) == name
        said = [texts[-1] for _, texts in conversation(cli.server.requests[-1])]
        assert said == ["Paint the barn", "Answer 1.", "Blue instead"]
        (session,) = [one for one in (await sessions.find(hitherto.LOCAL)).sessions if one.parent is None]
        assert session.title == "Paint the barn"
        assert [hit.session.id for hit in (await sessions.search(hitherto.LOCAL, "blue")).hits] == [
            session.id
        ]


def test_a_session_continued_in_claude_is_resumed_with_the_earlier_turns(
    cli: CommandLine, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    told = continued(shell, continuing.made(shell, cli.cwd), "claude")
    assert told["fidelity"] == "replayed"
    said = cli.resume(told["command"][-1], "And now?")
    picture, called, answered = (
        json.loads(text) for _, texts in said for text in texts if text.startswith("{")
    )
    assert picture["source"]["data"] == PICTURE
    assert (called["name"], called["input"]) == ("Bash", {"command": "ls"})
    assert answered["tool_use_id"] == called["id"]
    assert answered["content"] == [{"type": "text", "text": "barn.txt"}]
    words = [(role, [text for text in texts if not text.startswith("{")]) for role, texts in said]
    assert joined([(role, texts) for role, texts in words if texts]) == [
        ("user", f"{opening('Hitherto')}\n{ASKED}"),
        ("assistant", LOOKS),
        ("assistant", LOOKED),
        ("user", AGAIN),
        ("assistant", PAINTED),
        ("user", "And now?"),
    ]
    info = sdk.get_session_info(told["command"][-1])
    assert info is not None
    assert (info.custom_title, info.cwd) == ("The barn", str(cli.cwd))


def test_a_summary_is_what_claude_begins_with(cli: CommandLine, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    session = continuing.made(shell, cli.cwd, compacted=True)
    told = continued(shell, session, "claude")
    assert told["fidelity"] == "summarised"
    assert joined(cli.resume(told["command"][-1], "And now?")) == [
        ("user", f"{SUMMARY}\n{opening('Hitherto')}\n{AGAIN}"),
        ("assistant", PAINTED),
        ("user", "And now?"),
    ]
    shell.ok("sync")
    there = shell.ok("show", told["continued"], "--json").json
    assert there["session"]["meta"][CONTINUES] == session
    said = [part["text"] for entry in there["entries"] for part in entry["parts"] if part["type"] == "text"]
    assert said[-2:] == ["And now?", "Answer 3."]


def joined(said: Said) -> list[tuple[str, str]]:
    """What was said, without regard to how it is cut into pieces."""
    return [(role, "\n".join(texts)) for role, texts in said]
