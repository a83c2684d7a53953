"""The page about Claude Code's files says what the tests show."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import claude_agent_sdk as sdk
import pytest

import hitherto.claude
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "claude.md"
DIFFERENCE = re.compile(r"^\|.*\| `(test_\w+)` \|$", re.MULTILINE)


def test_every_intended_difference_has_a_test() -> None:
    named = set(DIFFERENCE.findall(PAGE.read_text(encoding="utf-8")))
    assert len(named) > 20
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    written = {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)}
    assert named <= written


NAMES = (
    "list_sessions", "get_session_info", "get_session_messages", "list_subagents", "get_subagent_messages",
    "rename_session", "tag_session", "delete_session", "fork_session", "project_key_for_directory",
    "SDKSessionInfo", "SessionMessage", "ForkSessionResult",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_name_takes_what_the_sdks_takes(name: str) -> None:
    """Changing the import is enough: the same arguments by the same names, in the same places, with the same defaults."""
    ours = inspect.signature(getattr(hitherto.claude, name)).parameters
    theirs = inspect.signature(getattr(sdk, name)).parameters
    for place, (argument, expected) in enumerate(theirs.items()):
        assert list(ours)[place] == argument
        assert ours[argument].kind == expected.kind
        assert ours[argument].default == expected.default
    for argument in list(ours)[len(theirs) :]:
        assert ours[argument].default is not inspect.Parameter.empty


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute"):
        hitherto.claude.list_everything  # noqa: B018
    assert set(NAMES) <= set(hitherto.claude.__all__)
