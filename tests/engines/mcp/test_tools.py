"""Names for tools, and what their results become."""

from __future__ import annotations

import re

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.engines.mcp.tools import (
    DESCRIPTION_CHARS,
    offered_name,
    offered_tools,
    progress_callback,
    tool_output,
)
from hitherto.engines.tool_calls import Show, ToolOutput
from hitherto.engines.tools.limits import TITLE_CHARS
from hitherto.model import Image, Json, Resource, Text, Unknown

PAIRS = st.lists(st.tuples(st.text(min_size=1, max_size=70), st.text(min_size=1, max_size=70)), unique=True)


@given(PAIRS)
def test_each_tool_gets_a_name_of_its_own_that_every_provider_takes(pairs: list[tuple[str, str]]) -> None:
    found = [offered_name(*pair) for pair in pairs]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in found)
    assert len(set(found)) == len(pairs)


def test_a_name_says_which_server_and_which_tool() -> None:
    assert offered_name("git-hub", "list_issues") == "mcp__git-hub__list_issues"
    assert offered_name("git hub", "list.issues").startswith("mcp__git_hub__list_issues_")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a b", "c"), ("a_b", "c")),
        (("a", "b.c"), ("a", "b_c")),
        (("a", "b__c"), ("a__b", "c")),
        (("a", "_b"), ("a_", "b")),
        (("server", "x" * 80 + "1"), ("server", "x" * 80 + "2")),
        (("a b", "c"), ("a_b", offered_name("a b", "c").removeprefix("mcp__a_b__"))),
    ],
)
def test_no_two_tools_ever_have_the_same_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert offered_name(*one) != offered_name(*other)
    assert len(offered_name(*one)) <= 64


async def _answer(tool: str, given: Json, show: Show) -> ToolOutput:  # noqa: ARG001
    return ToolOutput(content=(Text(text=tool),))


HINTS = (
    None,
    mcp_types.ToolAnnotations(read_only_hint=True),
    mcp_types.ToolAnnotations(read_only_hint=True, destructive_hint=True),
    mcp_types.ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False),
)


@pytest.mark.parametrize("hints", HINTS)
def test_a_tool_is_not_harmless_because_it_says_so(hints: mcp_types.ToolAnnotations | None) -> None:
    tool = mcp_types.Tool(name="t", input_schema={"type": "object"}, annotations=hints)
    assert [found.kind for found in offered_tools([("s", _answer, tool)])] == ["other"]


def test_what_a_tool_says_of_itself_is_cleaned_and_bounded() -> None:
    described = mcp_types.Tool(
        name="t",
        title="Look\x1b[2J at\nit " + "x" * 100_000,
        description="One\x1b[31m line\nand \x00another " + "y" * 3_000_000,
        input_schema={"type": "object"},
    )
    (tool,) = offered_tools([("s", _answer, described)])
    title = tool.title({})
    assert title is not None
    assert title.startswith("Look at it xxx")
    assert len(title) == TITLE_CHARS
    assert tool.description.startswith("One line\nand another yyy")
    assert len(tool.description) == DESCRIPTION_CHARS


def test_a_result_is_bounded_all_together() -> None:
    blocks: list[mcp_types.ContentBlock] = [
        mcp_types.TextContent(text="ä" * 40_000),
        mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents(uri="a:b", text="z" * 30_000)),
        mcp_types.ResourceLink(uri="a:c", name="c", description="d" * 1_000_000),
        mcp_types.ImageContent(data="AAAA", mime_type="image/png"),
        mcp_types.TextContent(text="end"),
    ]
    assert tool_output(mcp_types.CallToolResult(content=blocks)).content == (
        Text(text="ä" * 40_000),
        Resource(uri="a:b", text="z" * 19_997),
        Image(mime_type="image/png", data="AAAA"),
        Text(text="(1010010 more bytes omitted)"),
    )


async def test_a_tool_that_is_listed_twice_is_offered_once() -> None:
    first = mcp_types.Tool(name="odd name", description="first", input_schema={"type": "object"})
    second = mcp_types.Tool(name="odd name", description="second", input_schema={"type": "object"})
    (tool,) = offered_tools([("s", _answer, first), ("s", _answer, second)])
    assert (tool.name, tool.description) == (offered_name("s", "odd name"), "first")
    assert await tool.call({}, lambda _: None) == ToolOutput(content=(Text(text="odd name"),))


def test_a_result_that_is_all_structure_is_given_to_the_model_as_text() -> None:
    result = mcp_types.CallToolResult(content=[], structured_content={"a": [1, None]})
    assert tool_output(result) == ToolOutput(content=(Text(text='{"a":[1,null]}'),), output={"a": [1, None]})


def test_a_failure_stays_one() -> None:
    result = mcp_types.CallToolResult(content=[mcp_types.TextContent(text="no")], is_error=True)
    assert tool_output(result) == ToolOutput(content=(Text(text="no"),), is_error=True)


async def test_progress_is_shown_line_by_line() -> None:
    shown: list[str] = []
    progress = progress_callback(shown.append)
    await progress(1, 3, None)
    await progress(2.5, None, None)
    await progress(3, 3, "done")
    assert shown == ["1/3", "1/3\n2.5", "1/3\n2.5\ndone"]


def test_content_of_an_unknown_kind_is_kept_as_it_came() -> None:
    block = mcp_types.ToolUseContent(id="1", name="n", input={"a": 1})
    result = mcp_types.CallToolResult.model_construct(
        content=[block], structured_content=None, is_error=False
    )
    (kept,) = tool_output(result).content
    assert isinstance(kept, Unknown)
    assert kept.raw["input"] == {"a": 1}
