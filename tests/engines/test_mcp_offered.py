"""Names for tools, and what their results become."""

from __future__ import annotations

import re

import mcp_types
from hypothesis import given
from hypothesis import strategies as st

from recollect.engines.mcp.offered import names, offered
from recollect.engines.mcp.results import ran, showing
from recollect.engines.toolbox import Ran, Show
from recollect.model import Json, Text, Unknown

PAIRS = st.lists(st.tuples(st.text(min_size=1, max_size=70), st.text(min_size=1, max_size=70)), unique=True)


@given(PAIRS)
def test_each_tool_gets_a_name_of_its_own_that_every_provider_takes(pairs: list[tuple[str, str]]) -> None:
    found = dict(zip(pairs, names(pairs), strict=True))
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in found.values())
    assert len(set(found.values())) == len(pairs)
    shuffled = pairs[::-1]
    assert dict(zip(shuffled, names(shuffled), strict=True)) == found


def test_a_name_says_which_server_and_which_tool() -> None:
    assert names([("git hub", "list.issues"), ("sh", "run")]) == ["mcp__git_hub__list_issues", "mcp__sh__run"]


def test_names_that_would_be_the_same_are_told_apart_whatever_the_order() -> None:
    pairs = [("a b", "c"), ("a_b", "c"), ("a", "b__c"), ("a__b", "c")]
    found = names(pairs)
    assert len(set(found)) == 4
    assert [name[: len("mcp__a_b__c_")] for name in found[:2]] == ["mcp__a_b__c_"] * 2
    assert names(pairs[::-1]) == found[::-1]


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    first, second = names([("server", "x" * 80 + "1"), ("server", "x" * 80 + "2")])
    assert len(first) == len(second) == 64
    assert first != second


async def _answer(tool: str, given: Json, show: Show) -> Ran:  # noqa: ARG001
    return Ran(content=(Text(text=tool),))


HINTS: tuple[tuple[mcp_types.ToolAnnotations | None, str], ...] = (
    (None, "other"),
    (mcp_types.ToolAnnotations(), "other"),
    (mcp_types.ToolAnnotations(read_only_hint=True), "read"),
    (mcp_types.ToolAnnotations(read_only_hint=False), "other"),
    (mcp_types.ToolAnnotations(read_only_hint=False, destructive_hint=False), "other"),
    (mcp_types.ToolAnnotations(destructive_hint=True), "other"),
)


def test_only_a_tool_that_says_so_counts_as_reading() -> None:
    for hints, kind in HINTS:
        tool = mcp_types.Tool(name="t", input_schema={"type": "object"}, annotations=hints)
        assert [found.kind for found in offered([("s", _answer, tool)])] == [kind]


async def test_a_tool_that_is_listed_twice_is_offered_once() -> None:
    first = mcp_types.Tool(name="odd name", description="first", input_schema={"type": "object"})
    second = mcp_types.Tool(name="odd name", description="second", input_schema={"type": "object"})
    (tool,) = offered([("s", _answer, first), ("s", _answer, second)])
    assert (tool.name, tool.description) == ("mcp__s__odd_name", "first")
    assert await tool.call({}, lambda _: None) == Ran(content=(Text(text="odd name"),))


def test_a_result_that_is_all_structure_is_given_to_the_model_as_text() -> None:
    result = mcp_types.CallToolResult(content=[], structured_content={"a": [1, None]})
    assert ran(result) == Ran(content=(Text(text='{"a":[1,null]}'),), output={"a": [1, None]})


def test_a_failure_stays_one() -> None:
    result = mcp_types.CallToolResult(content=[mcp_types.TextContent(text="no")], is_error=True)
    assert ran(result) == Ran(content=(Text(text="no"),), is_error=True)


async def test_progress_is_shown_line_by_line() -> None:
    shown: list[str] = []
    progress = showing(shown.append)
    await progress(1, 3, None)
    await progress(2.5, None, None)
    await progress(3, 3, "done")
    assert shown == ["1/3", "1/3\n2.5", "1/3\n2.5\ndone"]


def test_content_of_an_unknown_kind_is_kept_as_it_came() -> None:
    block = mcp_types.ToolUseContent(id="1", name="n", input={"a": 1})
    result = mcp_types.CallToolResult.model_construct(
        content=[block], structured_content=None, is_error=False
    )
    (kept,) = ran(result).content
    assert isinstance(kept, Unknown)
    assert kept.raw["input"] == {"a": 1}
