"""The store functions of `hitherto.claude` beside those of the SDK itself: the same names, the same arguments, the same results."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk._internal.session_store_validation import _store_implements
from claude_agent_sdk.testing import run_session_store_conformance

from hitherto import claude
from hitherto.claude.session_stores.protocol import implements
from tests.claude.transcripts import Writer
from tests.sources.claude.random_transcripts import SESSION, writer

FUNCTIONS = (
    "fold_session_summary", "import_session_to_store", "list_sessions_from_store", "get_session_info_from_store",
    "get_session_messages_from_store", "list_subagents_from_store", "get_subagent_messages_from_store",
    "rename_session_via_store", "tag_session_via_store", "delete_session_via_store", "fork_session_via_store",
)  # fmt: skip
VALUES = (
    "SessionKey", "SessionStoreEntry", "SessionStoreListEntry", "SessionSummaryEntry", "SessionListSubkeysKey",
)  # fmt: skip
METHODS = ("append", "load", "list_sessions", "list_session_summaries", "delete", "list_subkeys")


def test_every_name_of_the_sdk_about_sessions_is_there() -> None:
    about = {name for name in sdk.__all__ if "session" in name.lower() and not name.startswith("SessionCron")}
    hooks = {name for name in about if "Hook" in name}
    assert about - hooks <= set(claude.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_the_function_of_the_sdk_takes(name: str) -> None:
    assert _parameters(getattr(claude, name)) == _parameters(getattr(sdk, name))


@pytest.mark.parametrize("name", VALUES)
def test_a_value_has_the_fields_that_the_value_of_the_sdk_has(name: str) -> None:
    ours, theirs = getattr(claude, name), getattr(sdk, name)
    assert (ours.__required_keys__, ours.__optional_keys__) == (
        theirs.__required_keys__,
        theirs.__optional_keys__,
    )


@pytest.mark.parametrize("kind", [claude.InMemorySessionStore, claude.HithertoSessionStore])
@pytest.mark.parametrize("method", METHODS)
def test_a_store_of_ours_has_the_methods_of_the_protocol(kind: type, method: str) -> None:
    assert _parameters(getattr(kind, method)) == _parameters(getattr(sdk.SessionStore, method))
    assert list(get_type_hints(getattr(kind, method))) == list(
        get_type_hints(getattr(sdk.SessionStore, method))
    )


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


async def test_the_store_in_memory_passes_the_conformance_suite_of_the_sdk() -> None:
    await run_session_store_conformance(claude.InMemorySessionStore)


def test_a_method_that_a_store_only_inherits_is_one_that_it_does_not_have() -> None:
    class OfOurs(claude.SessionStore):
        async def load(self, key: Any) -> Any: ...

    class OfTheirs(sdk.SessionStore):
        async def load(self, key: Any) -> Any: ...

    kinds: list[Any] = [OfOurs, OfTheirs]
    for kind in kinds:
        assert implements(kind(), "load")
        assert not implements(kind(), "list_sessions")
    # The SDK itself asks ours the same.
    assert not _store_implements(kinds[0](), "list_sessions")


def _written(projects: Path, seed: int) -> Writer:
    """A session with a subagent, in a file."""
    made = writer(seed)
    for number in range(3 + seed):
        made.user(f"ask {number}")
        _, call = made.call("Read", {"file_path": f"file {number}"})
        made.result(call, f"output {number}")
        made.say(f"answer {number}")
    made.ai_title("Asking")
    made.tag("later")
    path = made.save(projects)
    agent = Writer(SESSION, cwd=made.cwd)
    agent.user("Look for a brush", isSidechain=True, agentId="a1")
    agent.say("Found.", isSidechain=True, agentId="a1")
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_bytes(agent.data())
    (folder / "agent-a1.meta.json").write_text('{"agentType":"general","toolUseId":"toolu_1"}')
    return made


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_imported_is_listed_read_and_forked_as_by_the_sdk(projects: Path, seed: int) -> None:
    cwd = _written(projects, seed).cwd
    ours, theirs = claude.InMemorySessionStore(), sdk.InMemorySessionStore()
    await claude.import_session_to_store(SESSION, ours, batch_size=7)
    await sdk.import_session_to_store(SESSION, theirs, batch_size=7)
    assert ours._entries == {
        (project, session, "/".join(rest)): entries
        for (project, session, *rest), entries in (
            (key.split("/"), each) for key, each in theirs._store.items()
        )
    }
    pairs: list[tuple[Any, Any]] = [(ours, ours), (theirs, theirs), (ours, theirs)]
    for one, other in pairs:
        await _compare(one, other, cwd)
    fork = await claude.fork_session_via_store(ours, SESSION, cwd, title="Blue")
    copied = await claude.get_session_messages_from_store(ours, fork.session_id, cwd)
    said = await claude.get_session_messages_from_store(ours, SESSION, cwd)
    assert [message.message for message in copied] == [message.message for message in said]
    assert (await claude.list_sessions_from_store(ours, cwd))[0].summary == "Blue"


async def _compare(ours: Any, theirs: Any, cwd: str) -> None:
    """Our functions over one store say what the SDK's say over the other."""
    (one,), (other,) = (
        await claude.list_sessions_from_store(ours, cwd),
        await sdk.list_sessions_from_store(theirs, cwd),
    )
    same = ("session_id", "summary", "custom_title", "first_prompt", "git_branch", "cwd", "tag", "created_at")
    assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
    found = await claude.get_session_info_from_store(ours, SESSION, cwd)
    assert found is not None
    assert [getattr(found, name) for name in same] == [getattr(one, name) for name in same]
    messages = await claude.get_session_messages_from_store(ours, SESSION, cwd)
    expected = await sdk.get_session_messages_from_store(theirs, SESSION, cwd)
    assert [(each.type, each.uuid, each.message) for each in messages] == [
        (each.type, each.uuid, each.message) for each in expected
    ]
    assert messages == claude.get_session_messages(SESSION, cwd)
    assert await claude.list_subagents_from_store(ours, SESSION, cwd) == ["a1"]
    (asked, _) = await claude.get_subagent_messages_from_store(ours, SESSION, "a1", cwd)
    assert (asked.content, asked.parent_tool_use_id) == ("Look for a brush", "toolu_1")


async def test_titles_and_tags_set_through_a_store_are_those_that_lists_show(projects: Path) -> None:
    cwd = _written(projects, 1).cwd
    store = sdk.InMemorySessionStore()
    await claude.import_session_to_store(SESSION, store, directory=cwd, include_subagents=False)
    assert await claude.list_subagents_from_store(store, SESSION, cwd) == []
    await claude.rename_session_via_store(store, SESSION, "  The red barn ", cwd)
    await claude.tag_session_via_store(store, SESSION, "lat\u200ber", cwd)
    (listed,) = await sdk.list_sessions_from_store(store, cwd)
    assert (listed.custom_title, listed.tag) == ("The red barn", "later")
    await claude.tag_session_via_store(store, SESSION, None, cwd)
    assert (await claude.list_sessions_from_store(store, cwd))[0].tag is None
    await claude.delete_session_via_store(store, SESSION, cwd)
    assert await claude.list_sessions_from_store(store, cwd) == []


@pytest.mark.usefixtures("projects")
async def test_what_cannot_be_done_raises_what_the_sdk_raises() -> None:
    store = claude.InMemorySessionStore()
    for refused in (
        claude.rename_session_via_store(store, "no-id", "x"),
        claude.rename_session_via_store(store, SESSION, " "),
        claude.tag_session_via_store(store, SESSION, "\u200b"),
        claude.delete_session_via_store(store, "no-id"),
        claude.fork_session_via_store(store, SESSION, up_to_message_id="no-id"),
        claude.import_session_to_store("no-id", store),
    ):
        with pytest.raises(ValueError, match=r"session_id|message_id|title|tag"):
            await refused
    for missing in (
        claude.fork_session_via_store(store, SESSION),
        claude.import_session_to_store(SESSION, store),
    ):
        with pytest.raises(FileNotFoundError):
            await missing
    assert await claude.get_session_info_from_store(store, SESSION) is None
    assert await claude.get_session_messages_from_store(store, SESSION) == []
    assert store.size == 0
