"""Sessions that go on in another agent: what is written for it, and that nothing else is touched."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

import hitherto
from hitherto.claude.list import get_session_info
from hitherto.claude.messages import get_session_messages
from hitherto.errors import InvalidCwd, InvalidInput
from hitherto.model import (
    CONTINUED_IN,
    CONTINUES,
    LOCAL,
    Draft,
    Image,
    Json,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    plain_text,
)
from hitherto.presentation.labels import result_text
from hitherto.service import Sessions
from hitherto.sources import AGENTS
from hitherto.sources.handoff.continue_ import TARGETS, Continuation, Continued, Tell
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync
from tests.claude import transcripts
from tests.sources.agent_home import House
from tests.sources.gemini import gemini_files

NEW = "019a8c0e-3333-7000-8000-000000000001"
NOON = 1_794_744_000_000
PICTURE = Image(mime_type="image/png", data="aGk=")


class Desk:
    """Both agents' folders, a store, and a session to go on with."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.folder, self.sessions = folder, sessions
        self.work = folder / "a work"
        self.work.mkdir()

    async def session(self, *drafts: Draft, cwd: str | None = "") -> str:
        """A session of ours in which these were said."""
        folder = str(self.work) if cwd == "" else cwd
        made = await self.sessions.create(LOCAL, cwd=folder, title="The barn")
        if drafts:
            await self.sessions.append(LOCAL, made.id, drafts)
        return made.id

    async def continue_session(
        self, session: str, agent: str, cwd: str | None = None, tell: Tell = lambda _: None
    ) -> Continued:
        ledger = Ledger(self.folder / "data" / "ledger.db")
        try:
            going = Continuation(self.sessions, LOCAL, ledger, now=lambda: NOON, new_id=lambda: NEW)
            return await going.continue_session(session, agent, cwd, tell)
        finally:
            ledger.close()

    async def sync(self, agent: str) -> None:
        ledger = Ledger(self.folder / "data" / "ledger.db")
        try:
            source = AGENTS[agent].at(AGENTS[agent].home(os.environ))
            report = await Sync(self.sessions, LOCAL, ledger).run([source], source.find())
        finally:
            ledger.close()
        assert not report.failed

    async def context(self, session: str) -> list[tuple[str, str]]:
        page = await self.sessions.history(LOCAL, session, limit=10_000)
        said = [entry for entry in page.entries if not entry.meta.get("meta")]
        return [(entry.role, plain_text(entry)) for entry in said if plain_text(entry)]

    async def parts(self, session: str) -> list[Part]:
        page = await self.sessions.history(LOCAL, session, limit=10_000)
        return [part for entry in page.entries for part in entry.parts]

    async def meta(self, session: str) -> Json:
        return (await self.sessions.get(LOCAL, session)).meta

    def files(self) -> dict[str, str]:
        """All files of both agents, and what is in them."""
        house = House(self.folder, self.sessions, AGENTS["claude"].at(self.folder))
        folders = ("claude", "codex", "gemini/.gemini/tmp")
        found = {path: sum for name in folders for path, sum in house.hashes(self.folder / name).items()}
        return {path: sum for path, sum in found.items() if not path.endswith(".project_root")}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "gemini"))
    monkeypatch.setenv("TZ", "UTC")
    async with hitherto.open(f"sqlite:///{tmp_path / 'store.db'}") as sessions:
        yield Desk(tmp_path, sessions)


def written(done: Continued) -> Path:
    assert done.path is not None
    return Path(done.path)


def say(text: str, role: Role = "user") -> Draft:
    return Draft(role=role, parts=(Text(text=text),))


TALK = (
    say("Look \u2028 at the barn"),
    Draft(
        role="assistant",
        model="gpt-5",
        parts=(Text(text="I look."), ToolCall(id="1", name="Bash", input={"command": "ls"})),
    ),
    Draft(role="tool", parts=(ToolResult(id="1", content=(Text(text="barn.txt"),)),)),
    say("It is red.", "assistant"),
    say("Blue instead: sk-ant-api03-secret"),
)


CALL = f"call_{NEW.replace('-', '')}_2"
TOOLS = {
    "claude": ("Bash", {"command": "ls"}),
    "codex": ("exec_command", {"cmd": "ls"}),
    "gemini": ("run_shell_command", {"command": "ls"}),
}


@pytest.mark.parametrize("agent", TARGETS)
async def test_what_is_written_is_read_back_as_it_was_said(desk: Desk, agent: str) -> None:
    session = await desk.session(*TALK)
    done = await desk.continue_session(session, agent)
    assert (done.fidelity, done.messages, done.continued) == ("replayed", 4, f"{agent}:{NEW}")
    said = await desk.context(done.continued)
    assert [text for role, text in said if role != "tool"] == [
        "Look \u2028 at the barn",
        "I look.",
        "It is red.",
        "Blue instead: sk-ant-api03-secret",
    ]
    parts = await desk.parts(done.continued)
    (call,) = (part for part in parts if isinstance(part, ToolCall))
    (result,) = (part for part in parts if isinstance(part, ToolResult))
    assert (call.name, call.input) == TOOLS[agent]
    assert (result.id, result.is_error) == (call.id, False)
    assert result_text(result).endswith("barn.txt")
    assert written(done).stat().st_mode & 0o777 == 0o600
    assert list(desk.files()) == [str(written(done))]


async def test_claudes_own_functions_read_it_back(desk: Desk) -> None:
    await desk.continue_session(await desk.session(*TALK), "claude")
    said = [one.message["content"] for one in get_session_messages(NEW, directory=desk.work)]
    given = {"id": CALL, "name": "Bash", "input": {"command": "ls"}}
    answer = {"tool_use_id": CALL, "content": [{"type": "text", "text": "barn.txt"}], "is_error": False}
    assert said == [
        "Look \u2028 at the barn",
        [{"type": "text", "text": "I look."}],
        [{"type": "tool_use", **given}],
        [{"type": "tool_result", **answer}],
        [{"type": "text", "text": "It is red."}],
        "Blue instead: sk-ant-api03-secret",
    ]
    info = get_session_info(NEW, directory=desk.work)
    assert info is not None
    assert (info.custom_title, info.cwd) == ("The barn", str(desk.work))


async def test_codex_files_it_by_day(desk: Desk) -> None:
    done = await desk.continue_session(await desk.session(*TALK), "codex")
    expected = desk.folder / "codex/sessions/2026/11/15" / f"rollout-2026-11-15T12-00-00-{NEW}.jsonl"
    assert done.path == str(expected)


@pytest.mark.parametrize("agent", TARGETS)
async def test_what_is_left_behind_is_told_before_anything_is_written(desk: Desk, agent: str) -> None:
    looked = ToolResult(id="2", content=(Text(text="x" * 20_000), PICTURE))
    parts = (
        Thought(text="Hm."),
        ToolCall(id="1", name="Hologram"),
        ToolCall(id="2", name="Bash", input={"command": "ls"}),
    )
    notified = Draft(
        role="system", parts=(Text(text="The subagent is done."),), meta={"origin": "task-notification"}
    )
    body = Draft(
        role="system", parts=(Text(text="Do as the skill says."),), meta={"meta": True, "body": True}
    )
    talk = (
        Draft(role="user", parts=(Text(text="See"), PICTURE)),
        Draft(role="assistant", parts=parts),
        Draft(role="tool", parts=(ToolResult(id="1"), looked)),
        notified,
        body,
    )
    session, told = await desk.session(*talk), list[str]()

    def tell(sentences: Sequence[str]) -> None:
        assert desk.files() == {}
        told.extend(sentences)

    done = await desk.continue_session(session, agent, tell=tell)
    expected = ["1 thought is left out", "1 tool call is told as text", "1 result is shortened"]
    pictures = 2 if agent != "gemini" else 1
    assert sorted(told) == sorted([*expected, *(["1 picture is only named"] if pictures == 1 else [])])
    assert done.left_behind == tuple(told)
    data = written(done).read_text()
    assert data.count("aGk=") == pictures + (agent == "codex")  # which tells of a prompt twice
    assert "The subagent is done." in data
    assert "Do as the skill says." in data
    there = [part for part in await desk.parts(done.continued) if isinstance(part, Image)]
    assert [part.data for part in there] == ["aGk="]


async def test_gemini_finds_its_project_by_what_it_has_noted(desk: Desk) -> None:
    home = desk.folder / "gemini" / ".gemini"
    gemini_files.mark(home, "barn-7", str(desk.work))
    done = await desk.continue_session(await desk.session(*TALK), "gemini")
    assert written(done).parent == home / "tmp" / "barn-7" / "chats"
    other = desk.folder / "A Barn"
    other.mkdir()
    gemini_files.mark(home, "a-barn", "/elsewhere")
    again = await desk.continue_session(await desk.session(*TALK, cwd=str(other)), "gemini")
    assert (written(again).parent.parent / ".project_root").read_text() == str(other)
    assert written(again).parent.parent.name == "a-barn-1"


@pytest.mark.parametrize(
    ("agent", "command"),
    [("claude", "claude --resume"), ("codex", "codex resume"), ("gemini", "gemini --resume")],
)
async def test_the_command_opens_it_in_its_folder(desk: Desk, agent: str, command: str) -> None:
    done = await desk.continue_session(await desk.session(*TALK), agent)
    assert done.shell == f"cd '{desk.work}' && {command} {NEW}"
    assert (done.cwd, done.command) == (str(desk.work), (*command.split(), NEW))


async def test_each_of_the_two_names_the_other_also_after_a_sync(desk: Desk) -> None:
    session = await desk.session(*TALK)
    done = await desk.continue_session(session, "codex")
    with written(done).open("a") as file:
        said = '{"type":"message","role":"user","content":[{"type":"input_text","text":"More"}]}'
        file.write(f'{{"timestamp":"2026-11-15T13:00:00Z","type":"response_item","payload":{said}}}\n')
    await desk.sync("codex")
    assert (await desk.context(done.continued))[-1] == ("user", "More")
    assert (await desk.meta(done.continued))[CONTINUES] == session
    assert (await desk.meta(session))[CONTINUED_IN] == [done.continued]


async def test_a_session_of_the_agents_own_needs_nothing(desk: Desk) -> None:
    writer = transcripts.Writer(transcripts.session_id(1), str(desk.work))
    writer.user("Look at the barn")
    path = writer.save(desk.folder / "claude" / "projects")
    await desk.sync("claude")
    before = desk.files()
    native = await desk.continue_session(f"claude:{transcripts.session_id(1)}", "claude")
    assert (native.fidelity, native.path, desk.files()) == ("native", None, before)
    assert native.command == ("claude", "--resume", transcripts.session_id(1))
    path.unlink()
    again = await desk.continue_session(f"claude:{transcripts.session_id(1)}", "claude")
    assert (again.fidelity, again.continued) == ("replayed", f"claude:{NEW}")


async def test_a_session_of_another_agent_goes_on_and_what_is_there_is_not_touched(desk: Desk) -> None:
    writer = transcripts.Writer(transcripts.session_id(1), str(desk.work))
    writer.user("Look at the barn")
    writer.say("It is red.")
    writer.save(desk.folder / "claude" / "projects")
    await desk.sync("claude")
    before = desk.files()
    done = await desk.continue_session(f"claude:{transcripts.session_id(1)}", "codex")
    after = desk.files()
    assert after.pop(str(written(done)))
    assert after == before
    assert b"started in Claude Code" in written(done).read_bytes()


@pytest.mark.parametrize("agent", TARGETS)
async def test_a_file_of_that_name_is_left_alone(desk: Desk, agent: str) -> None:
    session = await desk.session(*TALK)
    done = await desk.continue_session(session, agent)
    written(done).write_bytes(b"somebody else's")
    with pytest.raises(FileExistsError):
        await desk.continue_session(session, agent)
    assert written(done).read_bytes() == b"somebody else's"
    assert list(desk.files()) == [str(written(done))]


@pytest.mark.parametrize("agent", TARGETS)
async def test_a_compacted_session_goes_on_from_its_summary(desk: Desk, agent: str) -> None:
    session = await desk.session(*TALK[:4])
    await desk.sessions.compact(LOCAL, session, say("They looked at a barn.", "system"))
    await desk.sessions.append(LOCAL, session, TALK[4])
    done = await desk.continue_session(session, agent)
    assert (done.fidelity, done.messages) == ("summarised", 1)
    said = await desk.context(done.continued)
    assert said[-1] == ("user", "Blue instead: sk-ant-api03-secret")
    # Gemini CLI has no place for a summary but a note to its model.
    assert agent == "gemini" or said[-2] == ("system", "They looked at a barn.")
    assert b"They looked at a barn." in written(done).read_bytes()


@pytest.mark.parametrize("agent", TARGETS)
async def test_of_a_very_long_session_the_beginning_is_summarised(desk: Desk, agent: str) -> None:
    drafts = []
    for number in range(60):
        drafts += [say(f"Please build stall {number}."), say("word " * 2_500, "assistant")]
    done = await desk.continue_session(await desk.session(*drafts), agent)
    assert done.fidelity == "summarised"
    said = await desk.context(done.continued)
    assert said[-1] == ("assistant", "word " * 2_500)
    assert 2 <= done.messages < 120
    assert written(done).stat().st_size < 1_000_000


@pytest.mark.parametrize("agent", TARGETS)
async def test_without_a_folder_nothing_is_written(desk: Desk, agent: str) -> None:
    nowhere = await desk.session(*TALK, cwd=None)
    with pytest.raises(InvalidCwd, match="--cwd"):
        await desk.continue_session(nowhere, agent)
    gone = await desk.session(*TALK, cwd="/no/such/folder")
    with pytest.raises(InvalidCwd, match="/no/such/folder"):
        await desk.continue_session(gone, agent)
    assert desk.files() == {}
    assert (await desk.continue_session(nowhere, agent, str(desk.work))).cwd == str(desk.work)


async def test_an_empty_session_cannot_be_continued(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="has no messages to continue from"):
        await desk.continue_session(await desk.session(), "codex")
    assert desk.files() == {}


@pytest.mark.parametrize("agent", TARGETS)
async def test_when_writing_fails_nothing_is_left(
    desk: Desk, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await desk.session(*TALK)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        await desk.continue_session(session, agent)
    assert desk.files() == {}
    assert CONTINUED_IN not in await desk.meta(session)
