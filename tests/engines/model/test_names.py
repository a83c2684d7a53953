"""What a user's name for a model means, and what is said when it means nothing."""

from __future__ import annotations

import pytest

from hitherto.engines.model.connect import connect
from hitherto.engines.model_names import full_name
from hitherto.errors import ModelMissing


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("anthropic:claude-sonnet-5", "anthropic:claude-sonnet-5"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("openai-chat:gpt-5", "openai-chat:gpt-5"),
        ("openai-responses:gpt-5", "openai-responses:gpt-5"),
        (" claude-opus-4-5-20251101 ", "anthropic:claude-opus-4-5-20251101"),
        ("gpt-5.1-codex", "openai:gpt-5.1-codex"),
        ("o3", "openai:o3"),
        ("o4-mini", "openai:o4-mini"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
    ],
)
def test_a_name_says_which_provider_it_is_of(given: str, meant: str) -> None:
    assert full_name(given, {}) == meant


@pytest.mark.parametrize(
    ("base_url", "meant"),
    [
        ("http://127.0.0.1:8080/v1", "openai-chat:gpt-5"),
        ("https://openai.com.example.org/v1", "openai-chat:gpt-5"),
        ("https://notopenai.com/v1", "openai-chat:gpt-5"),
        ("https://api.openai.com/v1", "openai:gpt-5"),
        ("https://eu.api.openai.com/v1", "openai:gpt-5"),
        ("", "openai:gpt-5"),
    ],
)
@pytest.mark.parametrize("given", ["gpt-5", "openai:gpt-5"])
def test_servers_that_are_like_openai_are_spoken_to_in_chat_completions(
    given: str, base_url: str, meant: str
) -> None:
    assert full_name(given, {"OPENAI_BASE_URL": base_url}) == meant


@pytest.mark.parametrize("given", [None, "", "  "])
def test_without_a_model_it_is_said_what_to_set(given: str | None) -> None:
    with pytest.raises(ModelMissing, match=r"--model or HITHERTO_MODEL, for example anthropic:"):
        full_name(given, {})


@pytest.mark.parametrize("given", ["llama3", "opus", "test", "o-none", "openai:", ":gpt-5"])
def test_a_name_that_could_be_anybodys_needs_its_provider(given: str) -> None:
    with pytest.raises(ModelMissing, match="provider:name"):
        full_name(given, {})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("anthropic:claude-sonnet-5", "set the environment variable ANTHROPIC_API_KEY"),
        ("openai:gpt-5", "set the environment variable OPENAI_API_KEY"),
        ("google:gemini-2.5-pro", "set the environment variable GOOGLE_API_KEY"),
        ("vercel:x/y", "set the environment variable VERCEL_AI_GATEWAY_API_KEY or VERCEL_OIDC_TOKEN"),
        ("ollama:qwen3", "set the environment variable OLLAMA_BASE_URL"),
        ("cohere:command", "needs the package cohere: install it"),
        ("nonsense:thing", "unknown provider 'nonsense'"),
        ("anthropics:claude-sonnet-5", "did you mean anthropic:claude-sonnet-5"),
    ],
)
def test_what_a_model_lacks_is_named(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "OLLAMA_BASE_URL",
    ):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelMissing) as caught:
        connect(name)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-5", "openai-chat:gpt-5", "openai:gpt-5"])
@pytest.mark.parametrize("key", ["sk-SECRET\n", "sk-SECR\u00c9T", "sk-\x01SECRET", "sk SECRET"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelMissing, match="contains invalid characters") as caught:
        connect(name)
    assert "SECR" not in str(caught.value)


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-5", "openai-chat:gpt-5"])
def test_an_address_that_cannot_be_read_is_not_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC", "OPENAI"):
        monkeypatch.setenv(f"{variable}_API_KEY", "key")
        monkeypatch.setenv(f"{variable}_BASE_URL", "http://[::bad:SECRET")
    with pytest.raises(ModelMissing, match="its address is not a valid URL") as caught:
        connect(name)
    assert "SECRET" not in str(caught.value)
