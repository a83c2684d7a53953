"""Programs that are written down run as they are: those of the V2 session API, and those of our own pages."""

# ruff: noqa: T201 - programs that are written down print what they get

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hitherto import (
    fork_session,
    get_session_info,
    get_session_messages,
    list_sessions,
    query,
    rename_session,
    tag_session,
    unstable_v2_create_session,
    unstable_v2_prompt,
    unstable_v2_resume_session,
)
from hitherto.claude.paths import config_home
from hitherto.errors import Busy, InvalidInput, LeaseLost, ModelMissing, SessionNotFound, StoreError
from hitherto.permissions import CHOICES, MODES
from hitherto.sdk import messages
from hitherto.sdk.options import CHECKS
from tests.claude.transcripts import Writer, session_id
from tests.engines.provider import Provider
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "sdk.md").read_text(encoding="utf-8")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXAMPLES = CODE.findall(PAGE)
TURNS = CODE.findall((DOCS / "turns.md").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def here(provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in, with a transcript of Claude Code's about it, and a provider for every model."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HITHERTO_MODEL", "claude-sonnet-4-6")
    made = Writer(session_id(1), cwd=str(folder))
    made.user("Count the files.")
    made.say("There is none.")
    made.save(config_home() / "projects")
    provider.otherwise = ["Done."]


def test_a_session_retains_the_conversation(provider: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        session = unstable_v2_create_session({
            "model": "claude-opus-4-5",
            "cwd": "/home/user/my-project",
            "permissionMode": "acceptEdits",
        })  # fmt: skip

        # Send first prompt
        result1 = await session.prompt("Add a README.")
        print(result1.result)

        # Session retains full conversation history
        result2 = await session.prompt("Now add a CONTRIBUTING guide that cross-references the README.")
        print(result2.result)

    asyncio.run(main())
    assert capsys.readouterr().out == "Done.\nDone.\n"
    told = [str(body["messages"]) for body in provider.requests]
    assert any("Add a README." in each and "CONTRIBUTING" in each for each in told)


def test_the_newest_session_of_a_project_is_resumed(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        # Find the most recent session for this project
        sessions = await list_sessions({"dir": os.getcwd(), "limit": 1})
        session_id = sessions[0].session_id if sessions else None

        if session_id:
            session = unstable_v2_resume_session(session_id, {
                "model": "claude-opus-4-5",
            })  # fmt: skip

            result = await session.prompt("What were we working on?")
            print(result.result)

    asyncio.run(main())
    assert capsys.readouterr().out == "Done.\n"
    assert "Count the files." in str(provider.requests[0]["messages"])


def test_one_prompt_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        result = await unstable_v2_prompt("What files are in this directory?", {
            "model": "claude-sonnet-4-6",
            "cwd": os.getcwd(),
        })  # fmt: skip

        if result.subtype == "success":
            print(result.result)

    asyncio.run(main())
    assert capsys.readouterr().out == "Done.\n"


def test_every_message_of_a_query_has_the_sessions_id(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        active_session_id: str | None = None

        async for message in query({"prompt": "Hello."}):
            if not active_session_id and "session_id" in message:
                active_session_id = message.session_id

        print("Session ID:", active_session_id)

    asyncio.run(main())
    assert re.fullmatch(r"Session ID: [0-9a-f-]{36}\n", capsys.readouterr().out)


def test_sessions_of_both_kinds_are_listed_read_and_changed_alike(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        session = unstable_v2_create_session({"model": "claude-opus-4-5", "cwd": os.getcwd()})
        await session.prompt("Add a README.")
        await session.close()

        # List the 10 most recent sessions for this project
        sessions = await list_sessions({"dir": os.getcwd(), "limit": 10})
        for s in sessions:
            print(f"{s.session_id} {s.summary}")

        for s in sessions:
            info = await get_session_info(s.session_id)
            if info:
                print(info.summary, info.cwd)

            messages = await get_session_messages(s.session_id, {"includeSystemMessages": False})
            for msg in messages:
                print(f"[{msg.role}]", msg.content)

            await rename_session(s.session_id, f"Refactor auth module, {s.summary}")
            await tag_session(s.session_id, "needs-review")
            await tag_session(s.session_id, None)

            # Fork at the first message
            forked = await fork_session(s.session_id, {
                "upToMessageId": messages[0].uuid,
                "title": "Alternate approach from step 1",
            })  # fmt: skip
            print("New session:", forked.session_id)

        # Paginate: get the second page of 2 sessions across all projects
        page2 = await list_sessions({"limit": 2, "offset": 2})
        print([s.summary for s in page2])

    asyncio.run(main())
    printed = capsys.readouterr().out
    assert printed.count("New session: ") == 2
    assert "[user] Count the files." in printed
    assert "[user] [{'type': 'text', 'text': 'Add a README.'}]" in printed
    assert "Refactor auth module" in printed.splitlines()[-1]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_of_the_page_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {"__name__": "__main__"})  # noqa: S102
    printed = capsys.readouterr().out
    assert re.search(r"Done\.|result", printed)
    assert not re.search("error|fail", printed)


def test_the_example_of_a_turn_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(TURNS[0], "example", "exec"), {"__name__": "__main__"})  # noqa: S102
    *told, last = capsys.readouterr().out.splitlines()
    assert last == "end_turn Done."
    assert "Why does the build fail?" in told[0]


async def test_the_example_of_an_engine_answers() -> None:
    names: dict[str, Any] = {}
    exec(compile(TURNS[1], "example", "exec"), names)  # noqa: S102
    result = await unstable_v2_prompt("Hello", engine=names["echo"], store="memory:")
    assert result.result == "You said: Hello"


def test_the_page_names_every_option_message_mode_and_answer() -> None:
    assert len(EXAMPLES) == 6
    for option in CHECKS:
        assert f"| `{option}` |" in PAGE
    kinds = [name for name in vars(messages) if name.startswith("SDK") and name != "SDKMessage"]
    assert len(kinds) == 7
    for name in (*kinds, *messages.SDKResultMessage.__struct_fields__, *MODES):
        assert f"`{name}`" in PAGE
    for choice in CHOICES:
        assert f'`"{choice}"`' in PAGE
    for error in (InvalidInput, ModelMissing, SessionNotFound, Busy, LeaseLost, StoreError):
        assert f"| `{error.__name__}` |" in PAGE
