"""A call of one agent's tool in the words of another: what it did stays the same."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.model import ToolCall
from hitherto.presentation.plain_conversation import Tool
from hitherto.sources.handoff.tools import CLAUDE, CODEX, GEMINI, tools_of

EDIT = {"file_path": "/a", "old_string": "x", "new_string": "y"}


@pytest.mark.parametrize(
    ("name", "given", "claude", "gemini"),
    [
        ("exec_command", {"cmd": "ls"}, ("Bash", {"command": "ls"}), ("run_shell_command", {"command": "ls"})),
        ("shell", {"command": ["bash", "-lc", "ls"]}, ("Bash", {"command": "ls"}), ("run_shell_command", {"command": "ls"})),
        ("read", {"filePath": "/a"}, ("Read", {"file_path": "/a"}), ("read_file", {"file_path": "/a"})),
        ("apply_patch", {"path": "/a", "edits": [{"path": "/a", "old_string": "x", "new_string": "y"}]}, ("Edit", EDIT), ("replace", EDIT)),
        ("edit", {"filePath": "/a", "oldString": "x", "newString": "y"}, ("Edit", EDIT), ("replace", EDIT)),
        ("write_file", {"path": "/a", "content": ""}, ("Write", {"file_path": "/a", "content": ""}), ("write_file", {"file_path": "/a", "content": ""})),
        ("grep", {"pattern": "x", "path": "/a"}, ("Grep", {"pattern": "x", "path": "/a"}), ("grep_search", {"pattern": "x", "path": "/a"})),
        ("apply_patch", {"path": "/a", "edits": [{}, {}]}, None, None),
        ("view_image", {"path": "/a"}, None, None),
        ("Task", {"prompt": "Mow"}, None, None),
        ("bash", "no object", None, None),
    ],
)  # fmt: skip
def test_a_call_is_told_with_the_tool_of_the_other_agent(
    name: str, given: Any, claude: Any, gemini: Any
) -> None:
    call = ToolCall(id="1", name=name, input=given)
    assert tools_of(CLAUDE)(call) == (claude and Tool(*claude))
    assert tools_of(GEMINI)(call) == (gemini and Tool(*gemini))
    runs = claude is not None and claude[0] == "Bash"
    assert tools_of(CODEX)(call) == (Tool("exec_command", {"cmd": "ls"}) if runs else None)
