"""Whatever is sent, the answer is one of the documented ones, and what is refused has changed nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.gateway.dispatch.errors import MEANINGS, number_of
from hitherto.gateway.dispatch.method import answer
from hitherto.gateway.dispatch.openrpc import document
from hitherto.gateway.methods import METHODS
from hitherto.model import Json, Principal
from hitherto.rpc.errors import Failure
from hitherto.rpc.frames import BadFrame, params_of, read_frame
from hitherto.service import Sessions
from hitherto.service.catalog.sessions import Catalog
from hitherto.stores import connector
from tests.gateway.methods.asker import KEY, Asker
from tests.support.conversations import everything
from tests.support.homes import Clock, counting
from tests.support.scripted_engine import Scripted

DOCUMENT = json.loads(document(METHODS))
SCHEMAS: Json = DOCUMENT["components"]["schemas"]
HOSTILE = [
    KEY,
    "",
    " ",
    "\0",
    "a\0b",
    "x" * 600,
    "é" * 20_000,
    "\u202ereversed",
    "😀",
    "' OR 1=1 --",
    "%",
    "../../etc/passwd",
    "agent:main:x:dm:%00",
    "agent:main:ephemeral:0192f7c4-9b1e-7abc-8def-0123456789ab",
    "[Compacted summary from 2024-01-27]",
    "{{7*7}}",
    "<script>",
    'title:"',
    "1" * 400,
]
NUMBERS = [0, 1, -1, 50, 2**31, 2**53, 2**63, 2**64, -(2**70), 1.5, 1e308]
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20))
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from(NUMBERS), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def fitting(schema: Json) -> st.SearchStrategy[Any]:
    """Values that a schema allows, mostly."""
    if "$ref" in schema:
        return st.deferred(lambda: fitting(SCHEMAS[schema["$ref"].rpartition("/")[2]]))
    if "anyOf" in schema:
        return st.one_of(*map(fitting, schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "properties" in schema:
        return fields(schema)
    kinds: dict[str, Callable[[], st.SearchStrategy[Any]]] = {
        "string": lambda: texts,
        "integer": lambda: st.integers(schema.get("minimum", 0), min(schema.get("maximum", 100), 2**53)),
        "boolean": st.booleans,
        "null": st.none,
        "array": lambda: st.lists(
            fitting(schema.get("items", {})), min_size=schema.get("minItems", 0), max_size=3
        ),
    }
    kind: str = schema.get("type", "")
    return kinds[kind]() if kind in kinds else junk


def fields(schema: Json) -> st.SearchStrategy[Json]:
    required = set(schema.get("required", ()))
    known = {name: fitting(value) for name, value in schema["properties"].items()}
    return st.fixed_dictionaries(
        {name: value for name, value in known.items() if name in required},
        optional={name: value for name, value in known.items() if name not in required},
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, Json]:
    """A request that fits its method, with something missing, more, or of another kind now and then."""
    name = draw(st.sampled_from(sorted(METHODS)))
    params = draw(fields(SCHEMAS[METHODS[name].params.__name__]))
    if "session_key" in METHODS[name].params.__struct_fields__ and draw(st.integers(0, 3)):
        params = {**params, "session_key": KEY}
        params.pop("session_id", None)
    change = draw(st.sampled_from(["none", "none", "missing", "more", "other", "junk"]))
    if change == "missing" and params:
        params.pop(draw(st.sampled_from(sorted(params))))
    elif change == "more":
        params[draw(texts)] = draw(junk)
    elif change == "other" and params:
        params[draw(st.sampled_from(sorted(params)))] = draw(junk)
    elif change == "junk":
        params = draw(st.dictionaries(st.text(max_size=10), junk, max_size=3))
    return name, params


@settings(max_examples=400)
@given(st.lists(requests(), min_size=1, max_size=5))
def test_every_request_is_answered_by_the_book(asked: list[tuple[str, Json]]) -> None:
    asyncio.run(answered(asked))


async def answered(asked: list[tuple[str, Json]]) -> None:
    clock = Clock()
    async with connector("memory:")("memory:", clock) as store:
        sessions = Sessions(store, now=clock, new_id=counting().__next__)
        asker, ann = Asker(sessions, engine=Scripted()), Principal(owner="ann")
        await asker.say("one", "two")
        for name, params in asked:
            before = await everything(sessions, ann)
            outcome = await asker.outcome(name, **params)
            if set(outcome) == {"code", "message", "data"}:
                check_refusal(name, outcome)
                assert await everything(sessions, ann) == before, (name, params, outcome)


DEEP: Any = "x"
for _ in range(500):
    DEEP = [DEEP]
BAD: list[Any] = [
    None, True, 7, -1, 1.5, 2**70, "", "\0", "\ud800", "x" * 200_000, "../../etc/passwd", "' OR 1=1 --", [], [None], ["x"] * 10_001,
    {}, {"": 1}, {"type": "text"}, DEEP,
]  # fmt: skip
"""Empty, wrong, huge and hostile, for a parameter of whatever kind."""


def plain(schema: Json) -> Any:
    """The plainest value that a schema allows."""
    if "$ref" in schema:
        return plain(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return plain(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: plain(schema["properties"][name]) for name in schema.get("required", ())}
    if schema.get("type") == "array":
        return [plain(schema.get("items", {}))] * schema.get("minItems", 0)
    return {"string": "x", "integer": 1, "boolean": False, "null": None}.get(schema.get("type", ""), {})


def spoilt(name: str) -> Iterator[Json]:
    """Requests of a method in which one thing is wrong: a parameter is missing, or one too many, or not what it is."""
    schema = SCHEMAS[METHODS[name].params.__name__]
    named = {"session_key": KEY} if "session_key" in schema["properties"] else {}
    good = {**plain(schema), **named}
    yield from ({key: value for key, value in good.items() if key != missing} for missing in good)
    yield from (
        {**good, extra: bad} for extra in ("", "owner", "__class__", "x" * 100_000) for bad in (1, DEEP)
    )
    yield from ({**good, known: bad} for known in schema["properties"] for bad in BAD)


@pytest.mark.parametrize("name", METHODS)
async def test_every_parameter_of_every_method_may_be_wrong(name: str) -> None:
    clock, ann = Clock(), Principal(owner="ann")
    async with connector("memory:")("memory:", clock) as store:
        sessions = Sessions(store, now=clock, new_id=counting().__next__)
        asker = Asker(sessions, engine=Scripted())
        refused = 0
        for params in spoilt(name):
            await asker.say("one")
            before = await sessions.changes.newest(ann)
            outcome = await asker.outcome(name, **params)
            if set(outcome) == {"code", "message", "data"}:
                refused += 1
                check_refusal(name, outcome)
                assert await sessions.changes.newest(ann) == before, (name, str(params)[:300], outcome)
        assert refused >= 8, name


def check_refusal(name: str, refused: Json) -> None:
    """An error as the table has it, in few words."""
    code = refused["data"]["code"]
    assert code != "error", name
    assert refused["code"] == number_of(code)
    assert set(refused["data"]) <= {"code", *MEANINGS[code].data}
    assert len(json.dumps(refused, ensure_ascii=False)) < 3_000


@pytest.mark.parametrize(
    "params",
    [b"", b"null", b"[]", b'["agent:main:main"]', b"7", b'"x"', b"{", b'{"session_key": "\xff"}', b"[" * 200_000,
     b'{"session_key":' + b"[" * 200_000, b'{"session_key": "\\ud800"}', b'{"limit": 1e999}'],
)  # fmt: skip
@pytest.mark.parametrize("name", METHODS)
async def test_what_is_no_object_is_refused(name: str, params: bytes) -> None:
    async with connector("memory:")("memory:", None) as store:
        asker = Asker(Sessions(store))
        if name == "rpc.discover" and params in (b'{"session_key": "\\ud800"}', b'{"limit": 1e999}'):
            return
        refused = await asker.refusal(name, params)
    assert (refused["code"], refused["data"]["code"]) == (-32602, "invalid_input")


@pytest.mark.parametrize(
    "params",
    [
        {"peer_id": "u\ud800"},
        {"idempotency_key": "k\udfff"},
        {"messages": [{"role": "user", "content": "x", "message_id": "\ud800"}]},
        {"cwd": "/\ud800"},
        {"\ud800": 1},
    ],
)
def test_a_name_that_cannot_be_kept_as_it_is_is_refused_and_never_becomes_another(params: Json) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "session.append", "params": params}).encode()
    with pytest.raises(BadFrame) as refused:
        read_frame(line)
    told = json.loads(refused.value.answer)
    assert (told["id"], told["error"]["code"], told["error"]["data"]) == (
        7,
        -32602,
        {"code": "invalid_input"},
    )


@pytest.mark.parametrize("content", ["half \ud83d", [{"type": "text", "text": "half \ud83d"}]])
def test_half_an_emoji_in_what_was_said_is_replaced(content: Any) -> None:
    params = {"session_key": "k", "messages": [{"role": "user", "content": content}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "session.append", "params": params}).encode()
    kept = json.loads(bytes(params_of(read_frame(line))))
    assert kept == json.loads(json.dumps(params).replace("\\ud83d", "\ufffd"))


async def test_a_refusal_says_where() -> None:
    async with connector("memory:")("memory:", None) as store:
        asker = Asker(Sessions(store))
        await asker.say("one")
        refused = await asker.refused("session.list", filter={"status": "sleepy"})
        assert refused == {
            "code": -32602,
            "message": "Invalid params: Invalid enum value 'sleepy'",
            "data": {"code": "invalid_input", "path": "$.filter.status"},
        }
        refused = await asker.refused("session.history", session_key=KEY, limit=0)
        assert refused["data"]["path"] == "$.limit"
        refused = await asker.refused("session.get", session_key=KEY, verbose=True)
        assert refused["message"] == "Invalid params: Object contains unknown field `verbose`"
        both = await asker.refused("session.get", session_key=KEY, session_id=KEY)
        assert both["message"] == "Invalid params: give session_key or session_id, not both"
        for wrong in (7, list[str](), True):
            assert (await asker.refused("session.get", session_key=wrong))["data"]["code"] == "invalid_input"


@pytest.mark.parametrize(
    ("name", "params", "code"),
    [
        ("session.list", {"limit": 501}, "invalid_limit"),
        ("session.list", {"limit": 0}, "invalid_limit"),
        ("session.list", {"limit": "x"}, "invalid_input"),
        ("session.list", {"offset": -1}, "invalid_input"),
        ("session.history", {"session_key": KEY, "limit": 10_001}, "invalid_limit"),
        ("session.search", {"query": "x", "limit": 101}, "invalid_limit"),
        ("memory.search", {"query": "x", "limit": 201}, "invalid_limit"),
        ("sessions.set_topic", {"session_key": KEY, "topic": "x" * 501}, "too_large"),
        (
            "session.append",
            {"session_key": KEY, "messages": [{"role": "user", "content": "x"}] * 10_001},
            "too_large",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_one_more_than_a_published_limit_has_the_code_for_that(
    name: str, params: Json, code: str
) -> None:
    async with connector("memory:")("memory:", None) as store:
        asker = Asker(Sessions(store))
        await asker.say("one")
        refused = await asker.refused(name, **params)
        assert (refused["code"], refused["data"]["code"]) == (-32602, code)
        assert refused["data"]["path"].startswith("$.")


async def test_a_fault_of_ours_is_told_without_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with connector("memory:")("memory:", None) as store:
        asker = Asker(Sessions(store))
        await asker.say("one")

        async def broken(*_: Any, **__: Any) -> None:
            raise RuntimeError("secret words")

        monkeypatch.setattr(Catalog, "count", broken)
        refused = await asker.refused("session.list")
        assert refused == {"code": -32603, "message": "Internal error", "data": {"code": "error"}}
        assert "secret words" in caplog.text


async def test_a_name_of_any_length_is_answered_in_few_words() -> None:
    async with connector("memory:")("memory:", None) as store:
        asker = Asker(Sessions(store))
        refused = await asker.refused("session.get", session_key="x" * 1_000_000)
        assert refused["data"]["code"] == "session_not_found"
        assert len(json.dumps(refused)) < 2_000
        await asker.say("one")
        long: dict[str, Json] = {
            "sessions.compaction.restore": {"session_key": KEY, "checkpoint_id": "x" * 1_000_000},
            "session.erase": {"session_key": KEY, "message_id": "x" * 1_000_000},
            "session.resolve": {"session_key": "x" * 1_000_000},
            "memory.forget": {"id": "x" * 1_000_000},
            "session.create": {"session_key": "x" * 1_000_000},
        }
        for name, params in long.items():
            assert len(json.dumps(await asker.refused(name, **params))) < 2_000, name
        with pytest.raises(Failure) as failed:
            await answer(METHODS, asker.context, "y" * 1_000_000, b"{}")
        assert len(failed.value.message) < 200
