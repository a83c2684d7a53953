"""Options: given as keywords, as a mapping or as an object; what is wrong with one is told at once."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hitherto
from hitherto.engine import HttpServer, SseServer, StdioServer
from hitherto.errors import InvalidInput
from hitherto.sdk.options import CHECKS, Options, SDKSessionOptions, read_options, servers_of
from tests.support.scripted_engine import Scripted

MODEL = "claude-opus-4-5"


def test_options_are_the_same_as_keywords_as_a_mapping_in_either_spelling_and_as_an_object() -> None:
    expected = read_options(None, {"model": MODEL, "max_turns": 3, "permission_mode": "plan"})
    camel = {"model": MODEL, "maxTurns": 3, "permissionMode": "plan"}
    snake = {"model": MODEL, "max_turns": 3, "permission_mode": "plan"}
    for given in (camel, snake, SimpleNamespace(**snake)):
        assert read_options(given, {}) == expected
    assert (expected.max_turns, expected.permission_mode) == (3, "plan")


def test_a_keyword_goes_before_the_mapping_and_none_is_not_given() -> None:
    read = read_options({"model": MODEL, "title": "Old", "store": None}, {"title": "New", "cwd": None})
    assert (read.title, read.store, read.cwd) == ("New", None, None)


def test_every_option_of_the_type_is_read_and_no_other() -> None:
    assert set(SDKSessionOptions.__annotations__) == set(CHECKS) == set(Options.__struct_fields__)


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    read = read_options(None, {"model": MODEL, "cwd": Path("a/../b"), "additional_directories": ["c", "/d/"]})
    assert read.cwd == os.path.join(os.getcwd(), "b")
    assert read.additional_directories == (os.path.join(os.getcwd(), "c"), "/d")


def test_what_a_turn_chooses_comes_from_the_options() -> None:
    read = read_options(
        {"model": MODEL, "systemPrompt": "Be brief.", "appendSystemPrompt": "In verse.", "maxTurns": 2}, {}
    )
    choices = read.choices
    assert (choices.model, choices.max_requests, choices.mode) == (MODEL, 2, "default")
    assert (choices.system_prompt, choices.append_system_prompt) == ("Be brief.", "In verse.")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "model"),
        ({"model": ""}, "model"),
        ({"model": 4}, "model"),
        ({"modell": MODEL}, "unknown option: modell; known: model, cwd"),
        ({"maxTurns": 1, "max_turns": 1}, "max_turns is given twice"),
        ({"max_turns": 0}, "of at least 1"),
        ({"max_turns": True}, "of at least 1"),
        ({"max_turns": "3"}, "of at least 1"),
        ({"permission_mode": "yolo"}, "default, acceptEdits, plan, dontAsk, bypassPermissions"),
        ({"cwd": 3}, "cwd must be a path"),
        ({"cwd": ""}, "cwd must be a path"),
        ({"cwd": "/a\0b"}, "NUL"),
        ({"additional_directories": "/a"}, "list of paths"),
        ({"additional_directories": [3]}, "must be a path"),
        ({"additional_directories": ["/a"] * 65}, "at most 64"),
        ({"title": "x" * 501}, "at most 500"),
        ({"title": ["x"]}, "title must be a string"),
        ({"system_prompt": 3}, "system_prompt must be a string"),
        ({"can_use_tool": "yes"}, "must be a function"),
        ({"include_partial_messages": 1}, "True or False"),
        ({"store": "mongodb://x"}, "no store for"),
        ({"store": 3}, "store must be a string"),
        ({"engine": object()}, "hitherto.engine.Engine"),
        ({"mcp_servers": ["a"]}, "mapping of names"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_at_once(given: dict[str, Any], told: str) -> None:
    whole = given if given.keys() & {"model", "modell"} or not given else {"model": MODEL, **given}
    for make in (
        hitherto.create_session,
        lambda options: hitherto.resume_session("some-id", options),
    ):
        with pytest.raises(InvalidInput, match=told):
            make(whole)


def test_options_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidInput, match="a mapping or keywords, not str"):
        hitherto.create_session("claude-opus-4-5")


def test_a_session_cannot_be_resumed_by_nothing_or_with_other_directories() -> None:
    with pytest.raises(InvalidInput, match="session_id must be a non-empty string"):
        hitherto.resume_session("", model=MODEL)
    with pytest.raises(InvalidInput, match="additional_directories"):
        hitherto.resume_session("some-id", model=MODEL, additional_directories=["/a"])


def test_an_engine_needs_no_model() -> None:
    assert hitherto.create_session(engine=Scripted()).session_id


def test_a_query_is_checked_before_anybody_reads_it() -> None:
    with pytest.raises(InvalidInput, match="unknown option: modell"):
        hitherto.query(prompt="Hello.", options={"modell": MODEL})
    with pytest.raises(InvalidInput, match="cannot be empty"):
        hitherto.query(prompt=" ")
    with pytest.raises(InvalidInput, match="not model"):
        hitherto.query({"prompt": "Hello.", "model": MODEL})


# MCP servers


def test_servers_are_configured_by_name_over_each_transport() -> None:
    servers = servers_of(
        {
            "files": {"command": "serve-files", "args": ["--root", "/a"], "env": {"DEBUG": "1"}},
            "plain": {"type": "stdio", "command": "serve"},
            "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Key": "k"}},
            "short": {"url": "https://example.org/mcp"},
            "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
        }
    )
    assert servers == (
        StdioServer(name="files", command="serve-files", args=("--root", "/a"), env={"DEBUG": "1"}),
        StdioServer(name="plain", command="serve"),
        HttpServer(name="web", url="https://example.org/mcp", headers={"X-Key": "k"}),
        HttpServer(name="short", url="https://example.org/mcp"),
        SseServer(name="old", url="http://127.0.0.1:9/sse"),
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("serve", "a mapping as its configuration"),
        ({"type": "carrier-pigeon", "url": "x"}, "types are stdio, http, streamable-http, sse"),
        (
            {"command": "serve", "url": "https://example.org"},
            "'files' is stdio and has command, args, env, not url",
        ),
        ({"command": "serve", "cwd": "/a"}, "not cwd"),
        ({"type": "http", "command": "serve"}, "not command"),
        ({}, "command"),
        ({"command": ""}, "no command"),
        ({"command": "serve", "args": "--root"}, "args"),
        ({"command": "serve", "env": {"A": 1}}, "env"),
        ({"command": "serve", "env": {"A=B": "1"}}, "environment"),
        ({"type": "http", "url": "ftp://example.org"}, "cannot be used"),
        ({"type": "http", "url": "https://example.org", "headers": {"bad name": "x"}}, "header"),
    ],
)
def test_a_server_that_is_configured_wrongly_is_named(config: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        servers_of({"files": config})
    assert "files" in caught.value.message


def test_what_a_server_is_configured_with_is_not_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        servers_of({"files": {"command": "serve", "env": {"TOKEN": "hunter2", "COUNT": 1}}})
    assert "hunter2" not in caught.value.message
