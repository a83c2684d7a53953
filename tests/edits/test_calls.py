"""From tool calls, as each agent writes them, to edits."""

from __future__ import annotations

from typing import Any

import pytest

from hitherto.edits.calls import edits_of
from hitherto.edits.edit import Edit, Hunk
from hitherto.model import Text, ToolCall, ToolResult, Unknown

PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def f():
 keep
-old line
+new line
+another
*** Add File: b.txt
+hello
*** Delete File: c.txt
*** Update File: d.txt
*** Move to: e.txt
@@
-x
+y
*** End Patch"""
PATCHED = [
    Edit(path="src/a.py", kind="edit", hunks=(Hunk(("old line",), ("new line", "another")),)),
    Edit(path="b.txt", kind="create", hunks=(Hunk((), ("hello",)),)),
    Edit(path="c.txt", kind="delete"),
    Edit(path="d.txt", kind="move", hunks=(Hunk(("x",), ("y",)),), to="e.txt"),
]
CHANGED = [Edit(path="/w/a.py", kind="edit", hunks=(Hunk(("b",), ("B", "b2")),))]
WRITTEN = [Edit(path="/w/a.py", kind="write", hunks=(Hunk((), ("one", "two")),))]
IN_PROGRAM = f"const out = await tools.apply_patch(`{PATCH}`);\nconsole.log(out);\n"
IN_STRING = "await tools.apply_patch(" + repr(PATCH).replace("'", '"') + ");"


def edits(name: str, given: Any, result: ToolResult | None = None, kind: str | None = None) -> list[Edit]:
    return edits_of(ToolCall(id="c", name=name, input=given, kind=kind), result)


@pytest.mark.parametrize(
    ("name", "given", "made"),
    [
        ("Edit", {"file_path": "/w/a.py", "old_string": "a\nb\nc", "new_string": "a\nB\nb2\nc"}, CHANGED),
        (
            "MultiEdit",
            {"file_path": "/w/a.py", "edits": [{"old_string": "b", "new_string": "B\nb2"}]},
            CHANGED,
        ),
        ("Write", {"file_path": "/w/a.py", "content": "one\r\ntwo\r\n"}, WRITTEN),
        (
            "NotebookEdit",
            {"notebook_path": "/n.ipynb", "new_source": "x = 1"},
            [Edit(path="/n.ipynb", kind="edit", hunks=(Hunk((), ("x = 1",)),))],
        ),
        ("replace", {"file_path": "/w/a.py", "old_string": "b", "new_string": "B\nb2"}, CHANGED),
        ("write_file", {"file_path": "/w/a.py", "content": "one\ntwo"}, WRITTEN),
        ("edit", {"filePath": "/w/a.py", "oldString": "b", "newString": "B\nb2"}, CHANGED),
        ("edit", {"path": "/w/a.py", "edits": [{"oldText": "b", "newText": "B\nb2"}]}, CHANGED),
        (
            "developer__text_editor",
            {"command": "str_replace", "path": "/w/a.py", "old_str": "b", "new_str": "B\nb2"},
            CHANGED,
        ),
        ("developer__text_editor", {"command": "view", "path": "/w/a.py", "text": "no"}, []),
        ("edit_file", {"path": "/w/a.py", "old": "b", "new": "B\nb2"}, CHANGED),
        ("apply_patch", {"input": PATCH}, PATCHED),
        ("patch", {"patchText": PATCH}, PATCHED),
        ("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"]}, PATCHED),
        ("exec", {"input": IN_PROGRAM}, PATCHED),
        ("exec", {"input": IN_STRING}, PATCHED),
        ("delete_file", {"path": "a"}, [Edit(path="a", kind="delete")]),
        ("move_file", {"source": "a", "destination": "b"}, [Edit(path="a", kind="move", to="b")]),
        ("Read", {"file_path": "/w/a.py", "content": "no"}, []),
        ("Edit", {"file_path": 3, "old_string": None, "new_string": ["x"]}, []),
        ("Edit", None, []),
        ("Bash", {"command": 7}, []),
    ],
)
def test_the_edits_of_each_agent_s_tools_are_read(name: str, given: Any, made: list[Edit]) -> None:
    assert edits(name, given) == made


@pytest.mark.parametrize(
    ("output", "content", "made"),
    [
        (
            {
                "filePath": "/w/a.py",
                "structuredPatch": [{"oldStart": 1, "lines": [" a", "-b", "+B", "+b2", " c"]}],
            },
            (),
            CHANGED,
        ),
        (
            {"type": "create", "filePath": "/w/a.py", "content": "one\ntwo\n", "structuredPatch": []},
            (),
            [Edit(path="/w/a.py", kind="create", hunks=(Hunk((), ("one", "two")),))],
        ),
        ({"fileDiff": "--- a\n+++ b\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+b2\n c\n"}, (), CHANGED),
        ({"diff": {"path": "/w/a.py", "oldText": "a\nb\n", "newText": "a\nB\nb2\n"}}, (), CHANGED),
        (
            None,
            (Unknown(raw={"type": "diff", "path": "/w/a.py", "oldText": "b", "newText": "B\nb2"}),),
            CHANGED,
        ),
        (None, (Text(text="ok"),), WRITTEN),
    ],
)
def test_what_a_result_says_it_changed_goes_before_what_was_asked_for(
    output: Any, content: tuple[Any, ...], made: list[Edit]
) -> None:
    result = ToolResult(id="c", content=content, output=output)
    assert edits("Write", {"file_path": "/w/a.py", "content": "one\ntwo"}, result) == made


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (
            "cd src && cat > a.py <<'EOF'\none\ntwo\nEOF\nls",
            [Edit(path="src/a.py", kind="write", hunks=(Hunk((), ("one", "two")),))],
        ),
        (
            "cat >> log.txt << END\nmore\nEND",
            [Edit(path="log.txt", kind="edit", hunks=(Hunk((), ("more",)),))],
        ),
        ("tee a.txt <<EOF >/dev/null\nx\nEOF", [Edit(path="a.txt", kind="write", hunks=(Hunk((), ("x",)),))]),
        (
            "sed -i 's/a/b/' src/a.py b.py",
            [Edit(path="src/a.py", kind="edit"), Edit(path="b.py", kind="edit")],
        ),
        (
            "sed -i -e s/a/b/ b.py; sed s/a/b/ c.py",
            [Edit(path="b.py", kind="edit")],
        ),
        (
            "git mv a.py b.py && mv c.py d.py",
            [Edit(path="a.py", kind="move", to="b.py"), Edit(path="c.py", kind="move", to="d.py")],
        ),
        (
            "rm -f old.py; git rm gone.py",
            [Edit(path="old.py", kind="delete"), Edit(path="gone.py", kind="delete")],
        ),
        ("rm $(find . -name x) *.pyc", []),
        ("echo 'unclosed", []),
        ("cat file <<EOF", []),
    ],
)
def test_what_a_shell_command_plainly_does_is_an_edit(command: str, made: list[Edit]) -> None:
    assert edits("Bash", {"command": command}) == made
