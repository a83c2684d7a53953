"""What a provider's failures become, over both wires."""

from __future__ import annotations

import socket
import ssl

import pytest
from pydantic_ai.exceptions import ModelConnectionError

from hitherto.engine import Delta, Message, Notice
from hitherto.engines.model.errors import engine_error
from hitherto.errors import (
    ContextTooLong,
    EngineError,
    ModelBusy,
    ModelRefused,
    ModelUnreachable,
)
from tests.engines.model.conversation import ANTHROPIC, Talk, both_wires, echo, only, stop_reason
from tests.engines.provider import (
    CUT,
    END,
    KEY,
    Failure,
    Provider,
    Step,
    ToolUse,
    overloaded,
    too_long,
    too_many,
)

SECRET = "sk-very-secret-key"  # noqa: S105 - a key that no provider knows


@both_wires
async def test_a_provider_that_wants_fewer_requests_gets_its_pause(provider: Provider, name: str) -> None:
    provider.script([too_many(retry_after="7")], [too_many(retry_after="2")])
    talk = Talk(name)
    events = await talk.prompt("Go")
    assert talk.pauses == [7.0, 2.0]
    model = name.partition(":")[2]
    assert [notice.text for notice in only(Notice, events)] == [
        f"{model}: 429 too many requests; trying again in 7.0 s",
        f"{model}: 429 too many requests; trying again in 2.0 s",
    ]
    assert stop_reason(events) == "end_turn"
    assert provider.requests[0] == provider.requests[2]


@both_wires
@pytest.mark.parametrize("failure", [overloaded(), Failure(500), Failure(503), too_many()])
async def test_a_failure_that_may_pass_is_tried_four_times(
    provider: Provider, name: str, failure: Failure
) -> None:
    provider.otherwise = [failure]
    talk = Talk(name)
    with pytest.raises(ModelUnreachable if failure.status == 500 else ModelBusy):
        await talk.prompt("Go")
    assert len(provider.requests) == 4
    assert [0.5 * 2**n <= pause <= 2**n for n, pause in enumerate(talk.pauses)] == [True] * 3


async def test_a_pause_longer_than_anyone_waits_is_told_at_once(provider: Provider) -> None:
    provider.script([too_many(retry_after="3600")])
    talk = Talk(ANTHROPIC)
    with pytest.raises(ModelBusy):
        await talk.prompt("Go")
    assert talk.pauses == []


@both_wires
async def test_a_refused_key_is_told_plainly_and_never_shown(
    provider: Provider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script([Failure(401, f"Incorrect API key provided: {KEY}", "authentication_error")])
    for key in (KEY, SECRET):
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ModelRefused, match="does not accept the key") as caught:
            await Talk(name).prompt("Go")
        assert key not in str(caught.value)
    assert len(provider.requests) == 2, "a refused key is not tried again"


@both_wires
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (too_long(), ContextTooLong),
        (Failure(400, "This model's maximum context length is 8192 tokens."), ContextTooLong),
        (Failure(413, "Request exceeds the maximum size", "request_too_large"), ContextTooLong),
        (Failure(400, "messages[2].tool_calls[0].id: string too long"), EngineError),
        (Failure(403, "not allowed", "permission_error"), ModelRefused),
        (Failure(404, "model: no-such-model", "not_found_error"), ModelRefused),
        (Failure(400, "tools.0.name: bad", "invalid_request_error"), EngineError),
    ],
)
async def test_each_refusal_has_its_error(
    provider: Provider, name: str, failure: Failure, error: type[EngineError]
) -> None:
    provider.script([failure])
    with pytest.raises(EngineError) as caught:
        await Talk(name).prompt("Go")
    assert type(caught.value) is error
    assert len(provider.requests) == 1


async def test_what_the_provider_says_about_a_bad_request_is_passed_on(provider: Provider) -> None:
    provider.script([Failure(400, "tools.0.name: bad", "invalid_request_error")])
    with pytest.raises(EngineError, match=r"rejected the request: tools\.0\.name: bad"):
        await Talk(ANTHROPIC).prompt("Go")


@both_wires
@pytest.mark.parametrize("status", [400, 429, 500])
@pytest.mark.parametrize("key", [KEY, "sk-ant-api03-" + "a1B2" * 8])
async def test_no_key_is_passed_on_whatever_the_provider_says(
    provider: Provider, name: str, status: int, key: str
) -> None:
    provider.otherwise = [Failure(status, f"your key {key} is odd, says {key}")]
    talk = Talk(name)
    with pytest.raises(EngineError, match=r"your key .* is odd") as caught:
        await talk.prompt("Go")
    assert key not in str(caught.value)
    assert key not in str(talk.events)


@both_wires
async def test_a_stream_that_is_cut_off_keeps_what_was_said_and_is_not_begun_again(
    provider: Provider, name: str
) -> None:
    provider.script(["Half an ", "ans", CUT])
    talk = Talk(name)
    with pytest.raises(ModelUnreachable):
        await talk.prompt("Go")
    assert "".join(delta.text for delta in only(Delta, talk.events)) == "Half an ans"
    assert only(Message, talk.events) == []
    assert len(provider.requests) == 1


@both_wires
@pytest.mark.parametrize("more", [[], [ToolUse("echo", {"a": 1}, "t")]])
async def test_an_answer_that_ends_without_saying_so_broke_off_and_none_of_its_tools_runs(
    provider: Provider, name: str, more: list[Step]
) -> None:
    provider.script(["Half an ans", *more, END])
    talk = Talk(name, [echo()])
    with pytest.raises(ModelUnreachable, match="broke off"):
        await talk.prompt("Go")
    assert only(Delta, talk.events) == [Delta(text="Half an ans")]
    assert only(Message, talk.events) == []
    assert talk.stream_request == []


@both_wires
async def test_a_failure_in_the_middle_of_an_answer_ends_the_turn(provider: Provider, name: str) -> None:
    provider.script(["Half an ans", overloaded()])
    with pytest.raises(ModelBusy):
        await Talk(name).prompt("Go")
    assert len(provider.requests) == 1


@both_wires
async def test_a_connection_that_breaks_before_the_first_word_is_tried_again(
    provider: Provider, name: str
) -> None:
    provider.script([CUT])
    talk = Talk(name)
    assert stop_reason(await talk.prompt("Go")) == "end_turn"
    assert len(talk.pauses) == 1


@both_wires
async def test_a_provider_that_is_not_there_is_unreachable(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for variable in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{variable}_API_KEY", SECRET)
        monkeypatch.setenv(f"{variable}_BASE_URL", f"http://127.0.0.1:{port}")
    talk = Talk(name)
    with pytest.raises(ModelUnreachable, match="failed: connection refused"):
        await talk.prompt("Go")
    assert len(talk.pauses) == 3
    assert all("connection refused" in notice.text for notice in only(Notice, talk.events))


@both_wires
@pytest.mark.parametrize("address", ["somewhere:SECRET", "ftp://SECRET@127.0.0.1"])
async def test_an_address_that_cannot_be_one_is_told_at_once(
    name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{variable}_API_KEY", SECRET)
        monkeypatch.setenv(f"{variable}_BASE_URL", address)
    talk = Talk(name)
    with pytest.raises(ModelUnreachable, match="must begin with http") as caught:
        await talk.prompt("Go")
    assert talk.pauses == []
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ConnectionRefusedError(111, "SECRET"), "connection refused"),
        (ExceptionGroup("SECRET", [ConnectionRefusedError(111, "SECRET")]), "connection refused"),
        (socket.gaierror(-2, "SECRET"), "unknown host name"),
        (ssl.SSLCertVerificationError(1, "SECRET"), "its certificate is not trusted"),
        (ssl.SSLError(1, "SECRET"), "no secure connection could be made"),
        (TimeoutError("SECRET"), "it does not answer"),
        (ConnectionResetError("SECRET"), "the connection was interrupted"),
    ],
)
def test_why_a_connection_failed_is_told_by_its_kind(cause: Exception, said: str) -> None:
    failed = ModelConnectionError("m", "Connection error.")
    failed.__cause__ = OSError("All connection attempts failed")
    failed.__cause__.__cause__ = cause
    assert str(engine_error(failed, "m")) == f"the connection to the provider of m failed: {said}"
