"""Session functions and sessions to talk in know each other: one list, whichever way a session was made."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import hitherto
from hitherto import claude
from hitherto.claude.paths import config_home
from hitherto.engine import Event, Message, Turn, answering
from hitherto.errors import InvalidInput, SessionNotFound
from hitherto.model import LOCAL, Text, plain_text
from tests.claude.transcripts import Writer, session_id


@answering
async def echo(turn: Turn) -> AsyncIterator[Event]:
    yield Message(parts=(Text(text="You said: " + plain_text(turn.history[-1])),))


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def transcript(number: int, text: str) -> str:
    """A transcript of Claude Code's about the current folder."""
    made = Writer(session_id(number), cwd=os.getcwd())
    made.user(text)
    made.say("Answered.")
    made.save(config_home() / "projects")
    return made.session_id


async def said(text: str, store: str) -> str:
    async with hitherto.create_session(engine=echo, store=store) as session:
        await session.prompt(text)
        return session.session_id


async def test_without_a_store_and_without_files_nothing_is_listed_and_nothing_is_made(
    tmp_path: Path, store: str
) -> None:
    assert await hitherto.list_sessions(store=store) == []
    assert await hitherto.get_session_info("nobody", store=store) is None
    assert await hitherto.get_session_messages("nobody", store=store) == []
    for change in (
        hitherto.rename_session("nobody", "x", store=store),
        hitherto.tag_session("nobody", "x", store=store),
        hitherto.fork_session("nobody", store=store),
        hitherto.delete_session("nobody", store=store),
    ):
        with pytest.raises(SessionNotFound):
            await change
    assert not (tmp_path / "sessions.db").exists()


async def test_a_new_session_is_listed_for_its_folder_named_tagged_and_forked(store: str, work: Path) -> None:
    made = await said("Paint the barn", store)
    (info,) = await hitherto.list_sessions(dir=work, store=store)
    assert (info.session_id, info.summary, info.cwd) == (made, "Paint the barn", str(work))
    assert await hitherto.list_sessions(dir=work.parent, store=store) == []
    await hitherto.rename_session(made, " Barn ", store=store)
    await hitherto.tag_session(made, "red", store=store)
    await hitherto.tag_session(made, "blue", store=store)
    found = await hitherto.get_session_info(made, store=store)
    assert found is not None
    assert (found.custom_title, found.tag) == ("Barn", "blue")
    await hitherto.tag_session(made, None, store=store)
    asked, answered = await hitherto.get_session_messages(made, store=store)
    assert (asked.role, answered.role) == ("user", "assistant")
    assert answered.content == [{"type": "text", "text": "You said: Paint the barn"}]
    (page,) = await hitherto.get_session_messages(made, store=store, limit=1, offset=1)
    assert page == answered
    fork = await hitherto.fork_session(made, up_to_message_id=asked.uuid, store=store)
    async with hitherto.resume_session(fork.session_id, engine=echo, store=store) as session:
        assert (await session.prompt("again")).result == "You said: again"
    assert len(await hitherto.get_session_messages(fork.session_id, store=store)) == 3
    both = await hitherto.list_sessions(dir=work, store=store)
    assert [(each.session_id, each.summary) for each in both] == [
        (fork.session_id, "Barn (fork)"),
        (made, "Barn"),
    ]
    with pytest.raises(InvalidInput, match="not found"):
        await hitherto.fork_session(made, up_to_message_id="nothing", store=store)
    await hitherto.delete_session(made, store=store)
    assert [each.session_id for each in await hitherto.list_sessions(store=store)] == [fork.session_id]


async def test_a_transcript_is_listed_once_also_after_it_was_continued(store: str, work: Path) -> None:
    name = transcript(1, "Count the files")
    (info,) = await hitherto.list_sessions(dir=work, store=store)
    assert info == claude.list_sessions(dir=work)[0]
    async with hitherto.resume_session(info.session_id, engine=echo, store=store) as session:
        await session.prompt("Go on")
        made = session.session_id
    listed = await hitherto.list_sessions(dir=work, store=store)
    assert [each.session_id for each in listed] == [made]
    # Whoever asks for the newest resumes what was said last.
    async with hitherto.resume_session(listed[0].session_id, engine=echo, store=store) as session:
        await session.prompt("And on")
    texts = [str(message.content) for message in await hitherto.get_session_messages(made, store=store)]
    assert [word for word in ("Count", "Go on", "And on") if any(word in text for text in texts)] == [
        "Count", "Go on", "And on",
    ]  # fmt: skip
    assert len(await hitherto.get_session_messages(name, store=store)) == 2


async def test_a_transcript_that_the_store_has_too_is_changed_in_both(store: str, work: Path) -> None:
    name = transcript(1, "Count the files")
    async with hitherto.resume_session(name, engine=echo, store=store):
        pass
    await hitherto.rename_session(name, "Files", store=store)
    await hitherto.tag_session(name, "later", store=store)
    (of_file,) = claude.list_sessions(dir=work)
    assert (of_file.custom_title, of_file.tag) == ("Files", "later")
    async with hitherto.open(store) as sessions:
        assert (await sessions.get(LOCAL, f"claude:{name}")).title == "Files"
    fork = await hitherto.fork_session(name, title="Blue", store=store)
    assert {each.summary for each in claude.list_sessions(dir=work)} == {"Files", "Blue"}
    await hitherto.delete_session(name, store=store)
    assert await hitherto.get_session_info(name, store=store) is None
    (left,) = claude.list_sessions(dir=work)
    assert left.session_id == fork.session_id


async def test_lists_are_paged_over_both_kinds(store: str) -> None:
    names = {transcript(number, f"Transcript {number}") for number in range(1, 4)}
    names |= {await said(f"Session {number}", store) for number in range(3)}
    whole = await hitherto.list_sessions(store=store)
    assert {each.session_id for each in whole} == names
    pages = [await hitherto.list_sessions({"limit": 2, "offset": at}, store=store) for at in (0, 2, 4, 6)]
    assert [each for page in pages for each in page] == whole
    assert [len(page) for page in pages] == [2, 2, 2, 0]


@pytest.mark.parametrize("wrong", [{"limit": 1.5}, {"limit": "many"}, {"folder": "/"}, {"offset": True}])
async def test_what_is_no_option_is_refused(wrong: dict[str, object], store: str) -> None:
    with pytest.raises(InvalidInput):
        await hitherto.list_sessions({**wrong, "store": store})
